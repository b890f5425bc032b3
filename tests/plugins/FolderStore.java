import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** Keeps segments in a folder, for releases of which Kafka publishes no LocalTieredStorage. */
public final class FolderStore implements RemoteStorageManager {
    private Path root;

    @Override
    public void configure(Map<String, ?> configs) {
        root = Path.of(String.valueOf(configs.get("dir")));
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata of, LogSegmentData data)
            throws RemoteStorageException {
        try {
            Path folder = Files.createDirectories(folder(of));
            Files.copy(data.logSegment(), folder.resolve("SEGMENT"));
            Files.copy(data.offsetIndex(), folder.resolve("OFFSET"));
            Files.copy(data.timeIndex(), folder.resolve("TIMESTAMP"));
            Files.copy(data.producerSnapshotIndex(), folder.resolve("PRODUCER_SNAPSHOT"));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(), folder.resolve("TRANSACTION"));
            }
            ByteBuffer epochs = data.leaderEpochIndex().duplicate();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.get(bytes);
            Files.write(folder.resolve("LEADER_EPOCH"), bytes);
            return Optional.empty();
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata of, int start)
            throws RemoteStorageException {
        return fetchLogSegment(of, start, Integer.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata of, int start, int end)
            throws RemoteStorageException {
        InputStream stream = opened(of, "SEGMENT");
        try {
            stream.skipNBytes(start);
            return stream;
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata of, IndexType type)
            throws RemoteStorageException {
        return opened(of, type.name());
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata of) throws RemoteStorageException {
        try (var files = Files.list(folder(of))) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
            Files.delete(folder(of));
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public void close() {}

    private Path folder(RemoteLogSegmentMetadata of) {
        return root.resolve(of.remoteLogSegmentId().id().toString());
    }

    private InputStream opened(RemoteLogSegmentMetadata of, String name)
            throws RemoteStorageException {
        Path file = folder(of).resolve(name);
        if (!Files.exists(file)) {
            throw new RemoteResourceNotFoundException(file.toString());
        }
        try {
            return Files.newInputStream(file);
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }
}
