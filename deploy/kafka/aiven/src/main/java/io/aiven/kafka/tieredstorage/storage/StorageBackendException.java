package io.aiven.kafka.tieredstorage.storage;

/** Declaration for the compiler only: a failure of the store. */
public class StorageBackendException extends Exception {
    private static final long serialVersionUID = 1;

    public StorageBackendException(String message, Throwable cause) {
        super(message, cause);
    }
}
