package jmxlake.kafka;

import java.io.InputStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/** A way to fetch the indexes that a broker requests one after another. */
interface FetchWay {
    /** Return an index that the broker waits for. */
    InputStream fetch(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException;

    /** Drop the indexes of a segment from memory. */
    default void forget(Uuid segment) {
    }

    /** Return the bytes in memory, or being read into it. */
    default long used() {
        return 0;
    }

    default void close() {
    }
}
