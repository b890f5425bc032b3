import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LocalTieredStorage;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** LocalTieredStorage, but slow: a copy lasts as long as there is a file "hold" beside its folder. */
public class SlowTieredStorage implements RemoteStorageManager {
    private final LocalTieredStorage storage = new LocalTieredStorage();
    private Path hold;

    @Override
    public void configure(Map<String, ?> settings) {
        hold = Path.of(settings.get("dir") + ".hold");
        storage.configure(settings);
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata metadata, LogSegmentData data)
            throws RemoteStorageException {
        try {
            while (Files.exists(hold)) {
                Thread.sleep(100);
            }
        } catch (InterruptedException error) {
            throw new RemoteStorageException(error);
        }
        return storage.copyLogSegmentData(metadata, data);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start) throws RemoteStorageException {
        return storage.fetchLogSegment(metadata, start);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start, int end)
            throws RemoteStorageException {
        return storage.fetchLogSegment(metadata, start, end);
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata metadata, IndexType type) throws RemoteStorageException {
        return storage.fetchIndex(metadata, type);
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata metadata) throws RemoteStorageException {
        storage.deleteLogSegmentData(metadata);
    }

    @Override
    public void close() throws IOException {
        storage.close();
    }
}
