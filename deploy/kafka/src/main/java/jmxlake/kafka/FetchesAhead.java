package jmxlake.kafka;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/**
 * Beside the first index of a segment, those are fetched that the broker asks for next.
 *
 * <p>An index is kept until the broker asks for it, once: the broker has a cache of its own. All that is in
 * memory, or being read into it, is within a bound; the oldest gives way. What could not be fetched or kept
 * is fetched again by the thread that asks for it, so that an error reaches it as the plugin gave it.
 */
final class FetchesAhead implements FetchWay {
    static final String THREAD = "jmxlake-index-fetch";
    private static final int PIECE = 16_384; // what is read at once, and the least that an index counts
    private static final int MOST_THREADS = 32;

    private final IndexFetches fetches;
    private final long bound;
    private final ExecutorService threads;
    private final Map<List<Object>, Ahead> kept = new LinkedHashMap<>(); // by segment and type, the oldest first
    private long used;

    FetchesAhead(IndexFetches fetches, long bound) {
        this.fetches = fetches;
        this.bound = bound;
        ClassLoader loader = Thread.currentThread().getContextClassLoader(); // the plugin may ask for it
        threads = new ThreadPoolExecutor(0, MOST_THREADS, 1, TimeUnit.MINUTES, new SynchronousQueue<>(), task -> {
            Thread thread = new Thread(task, THREAD);
            thread.setDaemon(true);
            thread.setContextClassLoader(loader);
            return thread;
        });
    }

    /** The index from memory, else by a round trip of the caller's thread. */
    @Override
    public InputStream fetch(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        Ahead ahead = take(segment, type);
        InputStream index = ahead == null ? null : ahead.index();
        if (ahead == null) {
            IndexFetches.SETS.stream().filter(set -> set.contains(type)).forEach(set ->
                    set.subList(set.indexOf(type) + 1, set.size()).forEach(next -> start(segment, next)));
        }
        return index != null ? index : fetches.request(segment, type, true);
    }

    @Override
    public synchronized void forget(Uuid segment) {
        kept.entrySet().removeIf(one -> one.getKey().get(0).equals(segment) && one.getValue().drop());
    }

    @Override
    public synchronized long used() {
        return used;
    }

    @Override
    public void close() {
        threads.shutdownNow();
    }

    private synchronized Ahead take(RemoteLogSegmentMetadata segment, IndexType type) {
        return kept.remove(key(segment, type));
    }

    private synchronized void start(RemoteLogSegmentMetadata segment, IndexType type) {
        Ahead ahead = new Ahead(segment, type);
        if (!kept.containsKey(key(segment, type)) && ahead.reserve()) {
            try {
                threads.execute(ahead);
                kept.put(key(segment, type), ahead);
            } catch (RejectedExecutionException busy) {
                ahead.end();
                ahead.drop();
            }
        }
    }

    private static List<Object> key(RemoteLogSegmentMetadata segment, IndexType type) {
        return List.of(segment.remoteLogSegmentId().id(), type);
    }

    /** One index; its bytes count until its stream is closed, or it is dropped and no longer being read. */
    private final class Ahead implements Runnable {
        private final RemoteLogSegmentMetadata segment;
        private final IndexType type;
        private final CountDownLatch ended = new CountDownLatch(1);
        private final List<InputStream> pieces = new ArrayList<>();
        private RemoteResourceNotFoundException missing;
        private boolean complete;
        private boolean dropped;
        private long reserved;

        private Ahead(RemoteLogSegmentMetadata segment, IndexType type) {
            this.segment = segment;
            this.type = type;
        }

        @Override
        public void run() {
            try (InputStream index = fetches.request(segment, type, false)) {
                boolean fits = true;
                while (fits && !complete) {
                    byte[] piece = new byte[PIECE];
                    int length = index.readNBytes(piece, 0, PIECE);
                    pieces.add(new ByteArrayInputStream(piece, 0, length));
                    complete = length < PIECE;
                    fits = complete || reserve();
                }
            } catch (RemoteResourceNotFoundException error) {
                missing = error;
            } catch (RemoteStorageException | IOException | RuntimeException error) {
                complete = false; // it is counted; the broker meets it when it asks, if it lasts
            } finally {
                end();
            }
        }

        /** The index; null: it is not here, or the caller was interrupted while it waited. */
        private InputStream index() throws RemoteResourceNotFoundException {
            try {
                ended.await();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt(); // the plugin, asked next, says what follows from that
                drop();
                return null;
            }
            if (!complete) {
                drop();
                if (missing != null) {
                    throw missing;
                }
                return null;
            }
            return new SequenceInputStream(Collections.enumeration(List.copyOf(pieces))) {
                @Override
                public void close() throws IOException {
                    super.close();
                    drop();
                }
            };
        }

        /** Count one piece more; older indexes give way to it. */
        private boolean reserve() {
            synchronized (FetchesAhead.this) {
                Iterator<Ahead> oldest = kept.values().iterator();
                while (used + PIECE > bound && oldest.hasNext()) {
                    Ahead one = oldest.next();
                    if (one != this && one.ended.getCount() == 0 && one.drop()) {
                        oldest.remove();
                    }
                }
                boolean fits = !dropped && used + PIECE <= bound;
                used += fits ? PIECE : 0;
                reserved += fits ? PIECE : 0;
                return fits;
            }
        }

        private void end() {
            synchronized (FetchesAhead.this) {
                ended.countDown();
                if (!complete) {
                    keep(PIECE);
                }
                if (dropped) {
                    keep(0);
                }
            }
        }

        private boolean drop() {
            synchronized (FetchesAhead.this) {
                dropped = true;
                if (ended.getCount() == 0) {
                    keep(0);
                }
                return true;
            }
        }

        private void keep(long bytes) {
            used -= reserved - bytes;
            reserved = bytes;
            pieces.clear();
        }
    }
}
