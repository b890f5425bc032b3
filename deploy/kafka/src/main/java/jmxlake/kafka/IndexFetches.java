package jmxlake.kafka;

import static jmxlake.kafka.IndexCounts.Counter;

import java.io.InputStream;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/** Requests to a plugin for indexes, counted by the type of index. Errors pass unchanged. */
final class IndexFetches {
    /** What a broker asks for one after another, in its order: to read a segment; to rebuild a replica. */
    static final List<List<IndexType>> SETS = List.of(
            List.of(IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.TRANSACTION),
            List.of(IndexType.LEADER_EPOCH, IndexType.PRODUCER_SNAPSHOT));

    /** What brings an index. */
    interface Fetch {
        InputStream index() throws RemoteStorageException;
    }

    private final RemoteStorageManager plugin;
    private final Map<IndexType, IndexCounts> counts = new EnumMap<>(IndexType.class);

    IndexFetches(RemoteStorageManager plugin) {
        this.plugin = plugin;
        for (IndexType type : IndexType.values()) {
            counts.put(type, new IndexCounts(type));
        }
    }

    /** A fetch that the broker waits for. */
    InputStream awaited(IndexType type, Fetch fetch) throws RemoteStorageException {
        IndexCounts own = counts.get(type);
        own.add(Counter.Fetches, 1);
        own.add(Counter.Sets, SETS.stream().anyMatch(set -> set.get(0) == type) ? 1 : 0);
        long began = System.nanoTime();
        try {
            return fetch.index();
        } finally {
            own.add(Counter.WaitNanos, System.nanoTime() - began);
        }
    }

    /** A request to the plugin; awaited: the broker waits for all of it, so it is a round trip. */
    InputStream request(RemoteLogSegmentMetadata segment, IndexType type, boolean awaited)
            throws RemoteStorageException {
        IndexCounts own = counts.get(type);
        own.add(Counter.Requests, 1);
        own.add(Counter.RoundTrips, awaited ? 1 : 0);
        long began = System.nanoTime();
        try {
            return new CountedStream(plugin.fetchIndex(segment, type), own, awaited);
        } catch (RemoteResourceNotFoundException error) {
            own.add(Counter.NotFound, 1);
            throw error;
        } catch (RemoteStorageException | RuntimeException error) {
            own.add(Counter.Errors, 1);
            throw error;
        } finally {
            own.add(Counter.RequestNanos, System.nanoTime() - began);
        }
    }

    void close() {
        counts.values().forEach(IndexCounts::unregister);
    }
}
