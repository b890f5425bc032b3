package io.aiven.kafka.tieredstorage.storage;

/** Declaration for the compiler only: the key of an object. */
public interface ObjectKey {
    String value();
}
