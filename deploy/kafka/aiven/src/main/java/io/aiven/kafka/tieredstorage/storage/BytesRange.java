package io.aiven.kafka.tieredstorage.storage;

/** Declaration for the compiler only: bytes of an object. */
public class BytesRange {
    private final int first;
    private final int size;

    private BytesRange(int first, int size) {
        this.first = first;
        this.size = size;
    }

    public static BytesRange ofFromPositionAndSize(int first, int size) {
        return new BytesRange(first, size);
    }

    public int firstPosition() {
        return first;
    }

    public int size() {
        return size;
    }

    public boolean isEmpty() {
        return size == 0;
    }
}
