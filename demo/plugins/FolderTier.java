import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * Remote storage in a folder, with faults on demand and an account of its own.
 *
 * <p>Files of a segment: {@code DIR/TOPIC-PARTITION/TOPIC_ID/FIRST_OFFSET-SEGMENT_ID.log}, and one for each index.
 * The file {@code .log} appears last and disappears first.
 *
 * <p>Settings: {@code dir}; {@code faults.dir}, where a file {@code hang-copy}, {@code fail-copy} or
 * {@code fail-delete} causes that fault while it exists; {@code account.file} ({@link Account});
 * {@code index.delay.ms}, the time that each fetch of an index takes.
 */
public final class FolderTier implements RemoteStorageManager {
    private static final String LOG = "log";
    private static final long POLL_MS = 20;

    private Path root;
    private Path faults;
    private long delay;
    private Account account;

    @Override
    public void configure(Map<String, ?> settings) {
        root = Path.of(settings.get("dir").toString());
        faults = Path.of(settings.get("faults.dir").toString());
        account = new Account(Path.of(settings.get("account.file").toString()));
        Object index = settings.get("index.delay.ms");
        delay = index == null ? 0 : Long.parseLong(index.toString());
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        account.run("copy", segment, () -> {
            while (has("hang-copy")) {
                Thread.sleep(POLL_MS);
            }
            refuseIf("fail-copy");
            store(segment, data);
        });
        return Optional.empty();
    }

    private void store(RemoteLogSegmentMetadata segment, LogSegmentData data) throws IOException {
        Files.createDirectories(file(segment, LOG).getParent());
        copy(data.offsetIndex(), file(segment, IndexType.OFFSET));
        copy(data.timeIndex(), file(segment, IndexType.TIMESTAMP));
        copy(data.producerSnapshotIndex(), file(segment, IndexType.PRODUCER_SNAPSHOT));
        if (data.transactionIndex().isPresent()) {
            copy(data.transactionIndex().get(), file(segment, IndexType.TRANSACTION));
        }
        ByteBuffer epochs = data.leaderEpochIndex().duplicate();
        byte[] bytes = new byte[epochs.remaining()];
        epochs.get(bytes);
        Files.write(file(segment, IndexType.LEADER_EPOCH), bytes);
        Path unfinished = file(segment, "part");
        copy(data.logSegment(), unfinished);
        Files.move(unfinished, file(segment, LOG), StandardCopyOption.ATOMIC_MOVE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return fetchLogSegment(segment, start, Integer.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        try (InputStream stored = opened(segment, LOG)) {
            stored.skipNBytes(start);
            long length = (long) end - start + 1; // the end belongs to the range
            return new ByteArrayInputStream(stored.readNBytes((int) Math.min(length, Integer.MAX_VALUE)));
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        byte[][] index = new byte[1][];
        account.fetched(segment, type, () -> {
            Thread.sleep(delay);
            try (InputStream stored = opened(segment, name(type))) {
                index[0] = stored.readAllBytes();
            }
            return index[0].length;
        });
        return new ByteArrayInputStream(index[0]);
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        account.run("delete", segment, () -> {
            refuseIf("fail-delete");
            Files.deleteIfExists(file(segment, LOG));
            for (IndexType type : IndexType.values()) {
                Files.deleteIfExists(file(segment, type));
            }
        });
    }

    @Override
    public void close() {}

    private boolean has(String fault) {
        return Files.exists(faults.resolve(fault));
    }

    private void refuseIf(String fault) throws RemoteStorageException {
        if (has(fault)) {
            throw new RemoteStorageException(fault + " is in " + faults);
        }
    }

    private InputStream opened(RemoteLogSegmentMetadata segment, String suffix)
            throws IOException, RemoteResourceNotFoundException {
        try {
            return Files.newInputStream(file(segment, suffix));
        } catch (NoSuchFileException error) {
            throw new RemoteResourceNotFoundException(error.getMessage());
        }
    }

    private Path file(RemoteLogSegmentMetadata segment, IndexType type) {
        return file(segment, name(type));
    }

    private Path file(RemoteLogSegmentMetadata segment, String suffix) {
        var partition = segment.topicIdPartition();
        return root.resolve(partition.topicPartition().toString()).resolve(partition.topicId().toString())
                .resolve(String.format("%020d-%s.%s", segment.startOffset(), segment.remoteLogSegmentId().id(), suffix));
    }

    private static String name(IndexType type) {
        return type.name().toLowerCase(Locale.ROOT);
    }

    private static void copy(Path from, Path to) throws IOException {
        Files.copy(from, to, StandardCopyOption.REPLACE_EXISTING);
    }
}
