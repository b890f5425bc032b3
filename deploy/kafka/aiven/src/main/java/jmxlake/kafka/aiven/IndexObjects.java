package jmxlake.kafka.aiven;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Objects with the indexes of a segment, in memory until each of their ranges was requested once.
 *
 * <p>The memory limit includes objects that are being read. A new object replaces the oldest object. If a range is
 * requested again, the plugin no longer has it: the object is dropped and read again.
 */
final class IndexObjects {
    private static final int PIECE = 16_384; // the unit of memory, and the least that an object counts

    private final long bound;
    private final Map<String, Held> held = new LinkedHashMap<>(); // by key, the oldest first
    private long used;

    private static final class Held {
        private final List<byte[]> pieces = new ArrayList<>(); // each has PIECE bytes, except the last
        private final Set<Integer> taken = new HashSet<>();
        private long length;
        private long left; // bytes that nobody took
        private long bytes;
        private boolean tooLarge;
    }

    /**
     * Create it without objects.
     *
     * @param bound maximum memory (bytes)
     */
    IndexObjects(long bound) {
        this.bound = bound;
    }

    /** Return false if the object was larger than the memory, so that it is not read again. */
    synchronized boolean reads(String key) {
        Held one = held.get(key);
        return one == null || !one.tooLarge;
    }

    /** Read an object; if it does not fit, only this is kept. */
    void read(String key, InputStream content) throws IOException {
        Held one = new Held();
        try {
            while (reserve(one)) {
                byte[] piece = content.readNBytes(PIECE);
                one.pieces.add(piece);
                one.length += piece.length;
                if (piece.length < PIECE) {
                    one.left = one.length;
                    keep(key, one);
                    return;
                }
            }
        } catch (IOException | RuntimeException error) {
            release(one);
            throw error;
        }
        one.tooLarge = true;
        one.pieces.clear();
        release(one);
        if (reserve(one)) {
            keep(key, one);
        }
    }

    /** Return a range of an object; null: it is not in memory. */
    synchronized byte[] take(String key, int first, int size) {
        Held one = held.get(key);
        if (one == null || one.tooLarge || (long) first + size > one.length) {
            return null;
        }
        if (!one.taken.add(first)) {
            drop(key);
            return null;
        }
        byte[] range = new byte[size];
        for (int copied = 0; copied < size; ) {
            byte[] piece = one.pieces.get((first + copied) / PIECE);
            int from = (first + copied) % PIECE;
            int number = Math.min(size - copied, piece.length - from);
            System.arraycopy(piece, from, range, copied, number);
            copied += number;
        }
        one.left -= size;
        if (one.left <= 0) {
            drop(key);
        }
        return range;
    }

    synchronized void drop(String key) {
        Held one = held.remove(key);
        if (one != null) {
            release(one);
        }
    }

    synchronized long used() {
        return used;
    }

    private synchronized void keep(String key, Held one) {
        drop(key);
        held.put(key, one);
    }

    private synchronized boolean reserve(Held one) {
        Iterator<Held> oldest = held.values().iterator();
        while (used + PIECE > bound && oldest.hasNext()) {
            release(oldest.next());
            oldest.remove();
        }
        boolean fits = used + PIECE <= bound;
        used += fits ? PIECE : 0;
        one.bytes += fits ? PIECE : 0;
        return fits;
    }

    private synchronized void release(Held one) {
        used -= one.bytes;
        one.bytes = 0;
    }
}
