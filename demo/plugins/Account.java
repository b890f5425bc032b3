import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/**
 * The account of a store: a line of tab-separated values each time that work starts or ends.
 *
 * <p>Columns: time (ms), event, topic, partition, topic id, segment id, first and last offset, bytes, duration (ns),
 * thread, and the type of an index. The events are copy_started, copy_finished, copy_failed, the same of delete,
 * index_fetched and index_failed. Bytes are those of the segment, or of the index; -1 if it failed.
 */
final class Account {
    interface Work {
        void run() throws IOException, InterruptedException, RemoteStorageException;
    }

    interface Fetch {
        long bytes() throws IOException, InterruptedException, RemoteStorageException;
    }

    private final Path file;

    Account(Path file) {
        this.file = file;
    }

    /** Run work on a segment, between two lines. */
    void run(String work, RemoteLogSegmentMetadata segment, Work body) throws RemoteStorageException {
        long began = System.nanoTime();
        String event = work + "_failed";
        note(work + "_started", segment, segment.segmentSizeInBytes(), 0, "-");
        try {
            body.run();
            event = work + "_finished";
        } catch (IOException | InterruptedException error) {
            throw new RemoteStorageException(error);
        } finally {
            note(event, segment, segment.segmentSizeInBytes(), System.nanoTime() - began, "-");
        }
    }

    /** Fetch an index, and note its bytes. */
    void fetched(RemoteLogSegmentMetadata segment, IndexType type, Fetch body) throws RemoteStorageException {
        long began = System.nanoTime();
        long bytes = -1;
        try {
            bytes = body.bytes();
        } catch (IOException | InterruptedException error) {
            throw new RemoteStorageException(error);
        } finally {
            String event = bytes < 0 ? "index_failed" : "index_fetched";
            note(event, segment, bytes, System.nanoTime() - began, type.name());
        }
    }

    private synchronized void note(String event, RemoteLogSegmentMetadata segment, long bytes, long nanos, String index)
            throws RemoteStorageException {
        var of = segment.topicIdPartition();
        String line = String.join("\t", Long.toString(System.currentTimeMillis()), event,
                of.topicPartition().topic(), Integer.toString(of.topicPartition().partition()), of.topicId().toString(),
                segment.remoteLogSegmentId().id().toString(), Long.toString(segment.startOffset()),
                Long.toString(segment.endOffset()), Long.toString(bytes), Long.toString(nanos),
                Thread.currentThread().getName(), index);
        // An interrupt, as of a broker that gives up a leader's tasks, would close a channel of Files.
        try (OutputStream lines = new FileOutputStream(file.toFile(), true)) {
            lines.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }
}
