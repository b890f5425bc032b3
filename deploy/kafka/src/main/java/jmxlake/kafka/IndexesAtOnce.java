package jmxlake.kafka;

import java.io.InputStream;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/**
 * The two methods that KIP-1002 adds to {@code RemoteStorageManager}; no Kafka release has them.
 *
 * <p>A plugin does not have to implement this interface, or to have it on its class path. The wrapper calls every
 * public {@link #fetchIndexes} with this signature, so a plugin needs no change when Kafka adopts the KIP.
 */
public interface IndexesAtOnce {
    /**
     * Return some indexes of a segment, if possible with one request to the store.
     *
     * @param segment metadata of the segment
     * @param types types of the indexes to return
     * @return a stream per index, which the caller closes; an index that does not exist is not in the map
     * @throws RemoteStorageException if the store fails
     */
    Map<IndexType, InputStream> fetchIndexes(RemoteLogSegmentMetadata segment, Set<IndexType> types)
            throws RemoteStorageException;

    /**
     * Return all indexes of a segment. The setting {@code fetch.indexes.at.once=all} makes the same request.
     *
     * @param segment metadata of the segment
     * @return as {@link #fetchIndexes}
     * @throws RemoteStorageException if the store fails
     */
    default Map<IndexType, InputStream> fetchAllIndexes(RemoteLogSegmentMetadata segment)
            throws RemoteStorageException {
        return fetchIndexes(segment, EnumSet.allOf(IndexType.class));
    }
}
