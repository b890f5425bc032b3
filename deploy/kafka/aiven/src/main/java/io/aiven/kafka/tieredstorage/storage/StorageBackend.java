package io.aiven.kafka.tieredstorage.storage;

import java.io.InputStream;
import java.util.Set;
import org.apache.kafka.common.Configurable;

/** Declaration for the compiler only: the plugin's interface, in its versions 1.0 and 1.1. */
public interface StorageBackend extends Configurable {
    long upload(InputStream content, ObjectKey key) throws StorageBackendException;

    InputStream fetch(ObjectKey key) throws StorageBackendException;

    InputStream fetch(ObjectKey key, BytesRange range) throws StorageBackendException;

    void delete(ObjectKey key) throws StorageBackendException;

    void delete(Set<ObjectKey> keys) throws StorageBackendException;
}
