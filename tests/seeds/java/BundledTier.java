import io.aiven.kafka.tieredstorage.storage.BytesRange;
import io.aiven.kafka.tieredstorage.storage.ObjectKey;
import io.aiven.kafka.tieredstorage.storage.StorageBackend;
import io.aiven.kafka.tieredstorage.storage.StorageBackendException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * A plugin that stores all indexes of a segment in one object, over a storage backend of Aiven's interface.
 *
 * <p>The sizes of the indexes are in the segment's metadata, so each index is one request for a range. It also has
 * the method of KIP-1002: one request for the range that covers several indexes.
 */
public class BundledTier implements RemoteStorageManager {
    private static final String PREFIX = "storage.";
    private static final int MISSING = -1;

    private StorageBackend store;

    @Override
    public void configure(Map<String, ?> settings) {
        Map<String, Object> rest = new HashMap<>();
        settings.forEach((key, value) -> {
            if (key.startsWith(PREFIX)) {
                rest.put(key.substring(PREFIX.length()), value);
            }
        });
        try {
            store = Utils.newInstance(rest.get("backend.class").toString(), StorageBackend.class);
        } catch (ClassNotFoundException error) {
            throw new IllegalArgumentException(error);
        }
        store.configure(rest);
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        try (InputStream log = Files.newInputStream(data.logSegment())) {
            store.upload(log, key(segment, ".log"));
            List<byte[]> indexes = new ArrayList<>();
            ByteBuffer sizes = ByteBuffer.allocate(Integer.BYTES * IndexType.values().length);
            for (IndexType type : IndexType.values()) {
                byte[] index = content(data, type);
                sizes.putInt(index == null ? MISSING : index.length);
                indexes.add(index == null ? new byte[0] : index);
            }
            store.upload(new ByteArrayInputStream(joined(indexes)), key(segment, ".indexes"));
            return Optional.of(new CustomMetadata(sizes.array()));
        } catch (IOException | StorageBackendException error) {
            throw new RemoteStorageException(error);
        }
    }

    private static byte[] content(LogSegmentData data, IndexType type) throws IOException {
        switch (type) {
            case OFFSET:
                return Files.readAllBytes(data.offsetIndex());
            case TIMESTAMP:
                return Files.readAllBytes(data.timeIndex());
            case PRODUCER_SNAPSHOT:
                return Files.readAllBytes(data.producerSnapshotIndex());
            case TRANSACTION:
                Optional<Path> file = data.transactionIndex();
                return file.isPresent() ? Files.readAllBytes(file.get()) : null;
            default:
                return Utils.toArray(data.leaderEpochIndex());
        }
    }

    private static byte[] joined(List<byte[]> parts) {
        ByteBuffer all = ByteBuffer.allocate(parts.stream().mapToInt(part -> part.length).sum());
        parts.forEach(all::put);
        return all.array();
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        InputStream index = fetchIndexes(segment, Set.of(type)).get(type);
        if (index == null) {
            throw new RemoteResourceNotFoundException("no " + type);
        }
        return index;
    }

    /** The method of KIP-1002. */
    public Map<IndexType, InputStream> fetchIndexes(RemoteLogSegmentMetadata segment, Set<IndexType> types)
            throws RemoteStorageException {
        Map<IndexType, int[]> places = places(segment);
        places.keySet().retainAll(types);
        int from = places.values().stream().mapToInt(place -> place[0]).min().orElse(0);
        int to = places.values().stream().mapToInt(place -> place[0] + place[1]).max().orElse(0);
        Map<IndexType, InputStream> found = new EnumMap<>(IndexType.class);
        byte[] all = to > from ? read(key(segment, ".indexes"), from, to - from) : new byte[0];
        places.forEach((type, place) ->
                found.put(type, new ByteArrayInputStream(all, place[0] - from, place[1])));
        return found;
    }

    /** Return first byte and size of each index that exists. */
    private static Map<IndexType, int[]> places(RemoteLogSegmentMetadata segment) {
        ByteBuffer sizes = ByteBuffer.wrap(segment.customMetadata().orElseThrow().value());
        Map<IndexType, int[]> places = new EnumMap<>(IndexType.class);
        int from = 0;
        for (IndexType type : IndexType.values()) {
            int size = sizes.getInt();
            if (size != MISSING) {
                places.put(type, new int[] {from, size});
                from += size;
            }
        }
        return places;
    }

    private byte[] read(ObjectKey key, int from, int size) throws RemoteStorageException {
        try (InputStream bytes = store.fetch(key, BytesRange.ofFromPositionAndSize(from, size))) {
            return bytes.readAllBytes();
        } catch (IOException | StorageBackendException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return fetchLogSegment(segment, start, segment.segmentSizeInBytes() - 1);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        int last = Math.min(end, segment.segmentSizeInBytes() - 1);
        return new ByteArrayInputStream(read(key(segment, ".log"), start, last - start + 1));
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        try {
            store.delete(Set.of(key(segment, ".log"), key(segment, ".indexes")));
        } catch (StorageBackendException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public void close() {
    }

    private static ObjectKey key(RemoteLogSegmentMetadata segment, String suffix) {
        String id = segment.remoteLogSegmentId().id() + suffix;
        return () -> id;
    }
}
