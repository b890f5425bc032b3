import io.aiven.kafka.tieredstorage.storage.BytesRange;
import io.aiven.kafka.tieredstorage.storage.ObjectKey;
import io.aiven.kafka.tieredstorage.storage.StorageBackend;
import io.aiven.kafka.tieredstorage.storage.StorageBackendException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.Set;

/** A folder of objects that notes each GET: a line with the key in the file that notes.file names. */
public final class NotedStore implements StorageBackend {
    private Path folder;
    private Path notes;

    @Override
    public void configure(Map<String, ?> settings) {
        folder = Path.of(settings.get("folder").toString());
        notes = Path.of(settings.get("notes.file").toString());
    }

    @Override
    public InputStream fetch(ObjectKey key) throws StorageBackendException {
        try {
            note(key);
            return Files.newInputStream(folder.resolve(key.value()));
        } catch (IOException error) {
            throw new StorageBackendException("GET " + key.value(), error);
        }
    }

    @Override
    public InputStream fetch(ObjectKey key, BytesRange range) throws StorageBackendException {
        try (InputStream object = fetch(key)) {
            object.skipNBytes(range.firstPosition());
            return new ByteArrayInputStream(object.readNBytes(range.size()));
        } catch (IOException error) {
            throw new StorageBackendException("GET of a range of " + key.value(), error);
        }
    }

    private synchronized void note(ObjectKey key) throws IOException {
        Files.writeString(notes, key.value() + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    @Override
    public long upload(InputStream content, ObjectKey key) throws StorageBackendException {
        try {
            Path made = Files.createTempFile(Files.createDirectories(folder), "made", null);
            Files.write(made, content.readAllBytes());
            return Files.size(Files.move(made, folder.resolve(key.value())));
        } catch (IOException error) {
            throw new StorageBackendException("PUT " + key.value(), error);
        }
    }

    @Override
    public void delete(ObjectKey key) throws StorageBackendException {
        try {
            Files.deleteIfExists(folder.resolve(key.value()));
        } catch (IOException error) {
            throw new StorageBackendException("DELETE " + key.value(), error);
        }
    }

    @Override
    public void delete(Set<ObjectKey> keys) throws StorageBackendException {
        for (ObjectKey key : keys) {
            delete(key);
        }
    }
}
