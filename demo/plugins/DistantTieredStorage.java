import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LocalTieredStorage;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * LocalTieredStorage, but each index takes as long as from an object store, and each request for one is noted.
 *
 * <p>A line a request, into the file that notes.file names: when it came (ms), who asked (thread), for which
 * segment and type, how long it took (ns), and bytes of the index; -1 if there is none.
 */
public final class DistantTieredStorage implements RemoteStorageManager {
    private final LocalTieredStorage storage = new LocalTieredStorage();
    private Path notes;
    private long delay;

    @Override
    public void configure(Map<String, ?> settings) {
        notes = Path.of(settings.get("notes.file").toString());
        delay = Long.parseLong(settings.get("delay.ms").toString());
        storage.configure(settings);
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata metadata, IndexType type) throws RemoteStorageException {
        long at = System.currentTimeMillis();
        long began = System.nanoTime();
        int bytes = -1;
        try {
            Thread.sleep(delay);
            try (InputStream stored = storage.fetchIndex(metadata, type)) {
                byte[] index = stored.readAllBytes();
                bytes = index.length;
                return new ByteArrayInputStream(index);
            }
        } catch (InterruptedException | IOException error) {
            throw new RemoteStorageException(error);
        } finally {
            note(String.join("\t", Long.toString(at), Thread.currentThread().getName(),
                    metadata.remoteLogSegmentId().id().toString(), type.name(),
                    Long.toString(System.nanoTime() - began), Integer.toString(bytes)));
        }
    }

    private synchronized void note(String line) throws RemoteStorageException {
        try {
            Files.writeString(notes, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata metadata, LogSegmentData data)
            throws RemoteStorageException {
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
    public void deleteLogSegmentData(RemoteLogSegmentMetadata metadata) throws RemoteStorageException {
        storage.deleteLogSegmentData(metadata);
    }

    @Override
    public void close() {
        storage.close();
    }
}
