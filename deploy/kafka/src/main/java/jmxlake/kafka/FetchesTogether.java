package jmxlake.kafka;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/**
 * Fetches all indexes of a set with one call of the plugin, at the first request of the set.
 *
 * <p>The other indexes stay in memory until the broker requests them, once. Memory is limited; a new index
 * replaces the oldest one. An index that did not fit, or whose stream failed, is requested separately.
 */
final class FetchesTogether implements FetchWay {
    private static final int PIECE = 16_384; // the unit of memory, and the least that an index counts

    private final IndexFetches fetches;
    private final IndexesByShape plugin;
    private final boolean all;
    private final long bound;
    private final Map<List<Object>, Kept> memory = new LinkedHashMap<>(); // by segment and type, the oldest first
    private long used;

    /** An index in memory; no pieces: the segment does not have it. */
    private static final class Kept {
        private final List<InputStream> pieces = new ArrayList<>();
        private long bytes;
    }

    /**
     * Create it without any index in memory.
     *
     * @param all whether one call fetches the indexes of both sets
     * @param bound maximum memory (bytes)
     */
    FetchesTogether(IndexFetches fetches, IndexesByShape plugin, boolean all, long bound) {
        this.fetches = fetches;
        this.plugin = plugin;
        this.all = all;
        this.bound = bound;
    }

    @Override
    public InputStream fetch(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        Uuid id = segment.remoteLogSegmentId().id();
        Kept kept = take(id, type);
        if (kept == null) {
            for (List<IndexType> set : IndexFetches.SETS) {
                if (set.get(0) == type) {
                    kept = together(segment, type, all ? List.of(IndexType.values()) : set);
                }
            }
        }
        if (kept == null) {
            return fetches.request(segment, type, true);
        }
        if (kept.pieces.isEmpty()) {
            throw new RemoteResourceNotFoundException("No " + type + " index of segment " + id);
        }
        return new SequenceInputStream(Collections.enumeration(kept.pieces));
    }

    @Override
    public synchronized void forget(Uuid segment) {
        memory.entrySet().removeIf(one -> one.getKey().get(0).equals(segment) && release(one.getValue()));
    }

    @Override
    public synchronized long used() {
        return used;
    }

    /** Fetch indexes; return that of the type, and keep the others. */
    private Kept together(RemoteLogSegmentMetadata segment, IndexType type, List<IndexType> set)
            throws RemoteStorageException {
        Uuid id = segment.remoteLogSegmentId().id();
        EnumSet<IndexType> types = EnumSet.copyOf(set);
        synchronized (this) {
            types.removeIf(one -> memory.containsKey(key(id, one)));
        }
        Map<IndexType, InputStream> streams = fetches.request(plugin, segment, type, types);
        Map<IndexType, Kept> read = new EnumMap<>(IndexType.class); // not in memory yet: they cannot give way
        read.put(type, read(streams.remove(type))); // before the others: it is what has to fit
        types.remove(type);
        for (IndexType other : types) {
            read.put(other, read(streams.get(other)));
        }
        synchronized (this) {
            types.stream().filter(other -> read.get(other) != null).forEach(other -> {
                Kept before = memory.put(key(id, other), read.get(other));
                if (before != null) {
                    release(before); // another thread fetched it at the same time
                }
            });
            Kept own = read.get(type);
            if (own != null) {
                release(own);
            }
            return own;
        }
    }

    /** Read an index to its end; null: its stream failed, or it does not fit. */
    private Kept read(InputStream index) {
        Kept kept = new Kept();
        if (index == null) {
            return reserve(kept) ? kept : null;
        }
        try (index) {
            while (reserve(kept)) {
                byte[] piece = index.readNBytes(PIECE);
                kept.pieces.add(new ByteArrayInputStream(piece));
                if (piece.length < PIECE) {
                    return kept;
                }
            }
        } catch (IOException | RuntimeException error) {
            kept.pieces.clear(); // the error is counted; the broker gets it if the next request fails as well
        }
        synchronized (this) {
            release(kept);
        }
        return null;
    }

    private synchronized Kept take(Uuid segment, IndexType type) {
        Kept kept = memory.remove(key(segment, type));
        if (kept != null) {
            release(kept); // from here on it is the broker's
        }
        return kept;
    }

    private synchronized boolean reserve(Kept kept) {
        Iterator<Kept> oldest = memory.values().iterator();
        while (used + PIECE > bound && oldest.hasNext()) {
            release(oldest.next());
            oldest.remove();
        }
        boolean fits = used + PIECE <= bound;
        used += fits ? PIECE : 0;
        kept.bytes += fits ? PIECE : 0;
        return fits;
    }

    private boolean release(Kept kept) {
        used -= kept.bytes;
        kept.bytes = 0;
        return true;
    }

    private static List<Object> key(Uuid segment, IndexType type) {
        return List.of(segment, type);
    }
}
