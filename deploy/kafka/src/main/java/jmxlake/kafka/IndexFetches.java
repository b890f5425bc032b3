package jmxlake.kafka;

import static jmxlake.kafka.IndexCounts.Counter;

import java.io.IOException;
import java.io.InputStream;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/** Requests to a plugin for indexes, counted by the type of index. Errors pass unchanged. */
final class IndexFetches {
    /** Indexes that a broker requests in sequence: to read a segment; to rebuild a replica. */
    static final List<List<IndexType>> SETS = List.of(
            List.of(IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.TRANSACTION),
            List.of(IndexType.LEADER_EPOCH, IndexType.PRODUCER_SNAPSHOT));

    /** A request for an index. */
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
        return counted(own, awaited, () -> {
            InputStream index = plugin.fetchIndex(segment, type);
            if (index == null) { // otherwise the broker's error would name our class
                throw new RemoteStorageException(plugin.getClass().getName() + ".fetchIndex returned null for " + type);
            }
            return new CountedStream(index, own, awaited);
        });
    }

    /**
     * One request to the plugin for several indexes, counted for the type that the broker waits for.
     *
     * @return a stream per index that exists
     * @throws RemoteStorageException of the plugin, or because the plugin returned something else than streams
     */
    Map<IndexType, InputStream> request(
            IndexesByShape shape, RemoteLogSegmentMetadata segment, IndexType type, Set<IndexType> types)
            throws RemoteStorageException {
        return counted(counts.get(type), true, () -> {
            Map<?, ?> answer = shape.fetch(segment, types);
            Map<IndexType, InputStream> streams = new EnumMap<>(IndexType.class);
            try {
                for (IndexType one : types) {
                    InputStream stream = shape.stream(answer, one);
                    if (stream == null) {
                        counts.get(one).add(Counter.NotFound, 1);
                    } else { // not awaited: the fetch reads it, and counts the wait
                        streams.put(one, new CountedStream(stream, counts.get(one), false));
                    }
                }
            } catch (RemoteStorageException error) {
                close(answer, Set.of(), type);
                throw error;
            }
            close(answer, types, type);
            return streams;
        });
    }

    /** Close every stream of an answer, except those of some types. */
    private void close(Map<?, ?> answer, Set<IndexType> except, IndexType type) {
        answer.forEach((key, stream) -> {
            if (stream instanceof InputStream && !except.contains(key)) {
                try {
                    ((InputStream) stream).close();
                } catch (IOException | RuntimeException error) {
                    counts.get(type).add(Counter.Errors, 1); // no one needs this stream
                }
            }
        });
    }

    private interface Request<T> {
        T send() throws RemoteStorageException;
    }

    private static <T> T counted(IndexCounts own, boolean awaited, Request<T> request) throws RemoteStorageException {
        own.add(Counter.Requests, 1);
        own.add(Counter.RoundTrips, awaited ? 1 : 0);
        long began = System.nanoTime();
        try {
            return request.send();
        } catch (RemoteResourceNotFoundException error) {
            own.add(Counter.NotFound, 1);
            throw error;
        } catch (RemoteStorageException | RuntimeException | Error error) { // such as NoSuchMethodError
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
