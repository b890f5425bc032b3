package jmxlake.kafka.aiven;

import io.aiven.kafka.tieredstorage.storage.BytesRange;
import io.aiven.kafka.tieredstorage.storage.ObjectKey;
import io.aiven.kafka.tieredstorage.storage.StorageBackend;
import io.aiven.kafka.tieredstorage.storage.StorageBackendException;
import java.io.ByteArrayInputStream;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.utils.Utils;

/**
 * A storage backend for Aiven's plugin that fetches all indexes of a segment with one request.
 *
 * <p>The plugin stores them in one object and requests each as a range. The first range fetches the object; the
 * other ranges come from memory. All other calls go to the wrapped backend. README.md has the settings and MBeans.
 */
public final class WholeIndexes implements StorageBackend, Closeable {
    private static final String STORE = "jmxlake.wrapped.class.name";
    private static final String BYTES = "jmxlake.memory.bytes";
    private static final String SUFFIX = ".indexes"; // of the keys of the plugin's objects with indexes
    private static final ConfigDef SETTINGS = new ConfigDef()
            .define(STORE, Type.CLASS, Importance.HIGH, "Class of the wrapped storage backend.")
            .define(BYTES, Type.LONG, 64L << 20, Range.atLeast(1), Importance.LOW, "Maximum memory (bytes).");

    private StorageBackend store;
    private IndexObjects objects;
    private ObjectCounts counts;

    @Override
    public void configure(Map<String, ?> settings) {
        Map<String, Object> own = SETTINGS.parse(settings);
        Map<String, Object> rest = new HashMap<>(settings);
        rest.keySet().removeAll(own.keySet());
        store = Utils.newInstance((Class<?>) own.get(STORE), StorageBackend.class);
        store.configure(rest);
        objects = new IndexObjects((long) own.get(BYTES));
        counts = ObjectCounts.registered();
    }

    @Override
    public InputStream fetch(ObjectKey key, BytesRange range) throws StorageBackendException {
        if (range.isEmpty() || !key.value().endsWith(SUFFIX)) {
            return store.fetch(key, range);
        }
        counts.fetch();
        byte[] index = objects.take(key.value(), range.firstPosition(), range.size());
        if (index == null && objects.reads(key.value())) {
            readWhole(key);
            index = objects.take(key.value(), range.firstPosition(), range.size());
        }
        if (index != null) {
            return new ByteArrayInputStream(index);
        }
        counts.request(); // it is not in memory: its errors are the store's
        return store.fetch(key, range);
    }

    private void readWhole(ObjectKey key) throws StorageBackendException {
        counts.request();
        try (InputStream content = store.fetch(key)) {
            objects.read(key.value(), content);
        } catch (IOException error) {
            objects.drop(key.value()); // the request for the range meets the error, if it lasts
        }
    }

    @Override
    public void delete(ObjectKey key) throws StorageBackendException {
        objects.drop(key.value());
        store.delete(key);
    }

    @Override
    public void delete(Set<ObjectKey> keys) throws StorageBackendException {
        keys.forEach(key -> objects.drop(key.value()));
        store.delete(keys);
    }

    @Override
    public InputStream fetch(ObjectKey key) throws StorageBackendException {
        return store.fetch(key);
    }

    @Override
    public long upload(InputStream content, ObjectKey key) throws StorageBackendException {
        return store.upload(content, key);
    }

    /** Close the wrapped backend; only versions of the plugin after 1.1 call it. */
    @Override
    public void close() throws IOException {
        if (store instanceof Closeable) {
            ((Closeable) store).close();
        }
    }

    /** Return the bytes in memory; for tests. */
    long used() {
        return objects.used();
    }
}
