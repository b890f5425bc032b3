package jmxlake.kafka;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.ObjectName;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/** What deploy/kafka must do with a plugin that misbehaves; each public method is a case of its own. */
public class WrapperCases {
    interface Answer {
        InputStream to(IndexType type) throws RemoteStorageException;
    }

    /** A fake plugin, which answers as the case says. */
    public static class FakePlugin implements RemoteStorageManager {
        static Answer answer;
        static Map<String, ?> settings;
        static final ConcurrentLinkedQueue<IndexType> requests = new ConcurrentLinkedQueue<>();

        @Override
        public void configure(Map<String, ?> given) {
            settings = given;
        }

        @Override
        public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
            requests.add(type);
            return answer.to(type);
        }

        @Override
        public Optional<RemoteLogSegmentMetadata.CustomMetadata> copyLogSegmentData(
                RemoteLogSegmentMetadata segment, LogSegmentData data) {
            return Optional.of(new RemoteLogSegmentMetadata.CustomMetadata(new byte[] {7}));
        }

        @Override
        public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) {
            return new ByteArrayInputStream(new byte[] {(byte) start});
        }

        @Override
        public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end) {
            return new ByteArrayInputStream(new byte[] {(byte) start, (byte) end});
        }

        @Override
        public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
            throw new RemoteStorageException("not now");
        }

        @Override
        public void close() {
            settings = null;
        }
    }

    /** A stream of some bytes that notes whether it was closed. */
    static class Noted extends ByteArrayInputStream {
        static final AtomicInteger open = new AtomicInteger();

        Noted(int size) {
            super(content(size));
            open.incrementAndGet();
        }

        @Override
        public void close() {
            open.decrementAndGet();
        }
    }

    private CountingRemoteStorageManager wrapper;
    private final RemoteLogSegmentMetadata segment = segment();

    public static void main(String[] arguments) throws Exception {
        for (Method method : WrapperCases.class.getMethods()) {
            if (method.getDeclaringClass() == WrapperCases.class && !method.getName().equals("main")) {
                FakePlugin.requests.clear();
                FakePlugin.answer = type -> new Noted(10_000);
                Noted.open.set(0);
                WrapperCases one = new WrapperCases();
                method.invoke(one);
                if (one.wrapper != null) {
                    one.wrapper.close();
                }
                System.out.println(method.getName());
            }
        }
    }

    public void settings_that_are_not_ours_reach_the_plugin_and_ours_do_not() {
        configure("fetch.indexes.at.once", "true", "broker.id", 4, "bucket", "b");
        same(Map.of("broker.id", 4, "bucket", "b"), FakePlugin.settings);
    }

    public void wrong_settings_are_refused() throws Exception {
        CountingRemoteStorageManager bare = new CountingRemoteStorageManager();
        refused(() -> bare.configure(Map.of()), "wrapped.class.name");
        refused(() -> bare.configure(Map.of("wrapped.class.name", "nowhere.Plugin")), "nowhere.Plugin");
        refused(() -> configure("fetch.indexes.at.once", "perhaps"), "fetch.indexes.at.once");
        refused(() -> configure("fetch.indexes.at.once.bytes", "0"), "fetch.indexes.at.once.bytes");
        bare.close();
    }

    public void every_other_call_is_the_plugins() throws Exception {
        configure();
        same((byte) 7, wrapper.copyLogSegmentData(segment, null).get().value()[0]);
        same(1, wrapper.fetchLogSegment(segment, 3).readAllBytes().length);
        same(2, wrapper.fetchLogSegment(segment, 3, 4).readAllBytes().length);
        thrown(RemoteStorageException.class, () -> {
            wrapper.deleteLogSegmentData(segment);
            return null;
        });
        wrapper.close();
        same(null, FakePlugin.settings);
        same(false, ManagementFactory.getPlatformMBeanServer().isRegistered(bean("Fetches", "offset")));
    }

    public void by_default_each_fetch_is_a_request_and_is_counted() throws Exception {
        configure();
        for (IndexType type : IndexType.values()) {
            same(10_000, read(type));
        }
        same(Arrays.asList(IndexType.values()), List.copyOf(FakePlugin.requests));
        for (String index : List.of("offset", "timestamp", "transaction", "leader_epoch", "producer_snapshot")) {
            for (String name : List.of("Fetches", "RoundTrips", "Requests")) {
                same(1L, count(name, index));
            }
            same(10_000L, count("Bytes", index));
            same(count("WaitNanos", index) >= count("RequestNanos", index), true);
        }
        same(1L, count("Sets", "offset") * count("Sets", "leader_epoch"));
        same(0L, count("Sets", "timestamp") + count("Sets", "transaction") + count("Sets", "producer_snapshot"));
        same(0, Noted.open.get());
    }

    public void at_once_the_requests_run_side_by_side_and_each_index_is_fetched_once() throws Exception {
        CyclicBarrier all = new CyclicBarrier(3); // nobody passes before three requests are under way
        FakePlugin.answer = type -> {
            quietly(all::await);
            return new Noted(40_000 + type.ordinal());
        };
        configure("fetch.indexes.at.once", "true");
        same(40_000 + IndexType.OFFSET.ordinal(), read(IndexType.OFFSET));
        same(40_000 + IndexType.TIMESTAMP.ordinal(), read(IndexType.TIMESTAMP));
        same(40_000 + IndexType.TRANSACTION.ordinal(), read(IndexType.TRANSACTION));
        same(3, FakePlugin.requests.size());
        same(1L, count("RoundTrips", "offset"));
        same(0L, count("RoundTrips", "timestamp") + count("RoundTrips", "transaction"));
        same(1L, count("Requests", "timestamp") * count("Requests", "transaction"));
        same(0L, used());
        same(0, Noted.open.get());
    }

    public void an_index_that_there_is_not_is_not_there_from_memory_either() throws Exception {
        RemoteResourceNotFoundException none = new RemoteResourceNotFoundException("no transactions");
        FakePlugin.answer = type -> {
            if (type == IndexType.TRANSACTION) {
                throw none;
            }
            return new Noted(0);
        };
        configure("fetch.indexes.at.once", "true");
        same(0, read(IndexType.OFFSET));
        same(0, read(IndexType.TIMESTAMP));
        same(none, thrown(RemoteResourceNotFoundException.class, () -> read(IndexType.TRANSACTION)));
        same(3, FakePlugin.requests.size());
        same(1L, count("NotFound", "transaction"));
        same(0L, count("Errors", "transaction"));
        same(0L, used());
    }

    public void errors_are_counted_and_pass_unchanged() throws Exception {
        RemoteStorageException refused = new RemoteStorageException("refused");
        IllegalStateException broken = new IllegalStateException("broken");
        FakePlugin.answer = type -> {
            if (type == IndexType.OFFSET) {
                throw refused;
            }
            throw broken;
        };
        configure("fetch.indexes.at.once", "true");
        same(refused, thrown(RemoteStorageException.class, () -> read(IndexType.OFFSET)));
        same(broken, thrown(IllegalStateException.class, () -> read(IndexType.TIMESTAMP)));
        same(1L, count("Errors", "offset"));
        same(2L, count("Errors", "timestamp")); // ahead, and again when the broker asked
        same(1L, count("RoundTrips", "timestamp"));
        FakePlugin.answer = type -> new Noted(5);
        same(5, read(IndexType.TRANSACTION)); // what failed ahead may be well now
        same(0L, used());
    }

    public void an_error_while_an_index_is_read_is_counted_and_passes_unchanged() throws Exception {
        IOException torn = new IOException("torn");
        FakePlugin.answer = type -> new InputStream() {
            @Override
            public int read() throws IOException {
                throw torn;
            }
        };
        configure();
        same(torn, thrown(IOException.class, () -> read(IndexType.OFFSET)));
        same(1L, count("Errors", "offset"));
    }

    public void an_interrupted_reader_gets_what_the_plugin_makes_of_it() throws Exception {
        CountDownLatch release = new CountDownLatch(1);
        Thread reader = Thread.currentThread();
        RemoteStorageException interrupted = new RemoteStorageException("interrupted");
        FakePlugin.answer = type -> {
            if (Thread.currentThread() == reader && Thread.currentThread().isInterrupted()) {
                throw interrupted;
            }
            if (Thread.currentThread() != reader) {
                quietly(release::await);
            }
            return new Noted(100);
        };
        configure("fetch.indexes.at.once", "true");
        same(100, read(IndexType.OFFSET));
        Thread.currentThread().interrupt();
        same(interrupted, thrown(RemoteStorageException.class, () -> read(IndexType.TIMESTAMP)));
        same(true, Thread.interrupted());
        release.countDown();
        same(100, read(IndexType.TRANSACTION));
        until(() -> used() == 0 && Noted.open.get() == 0);
    }

    public void a_deleted_segment_is_dropped_also_while_it_is_fetched() throws Exception {
        CountDownLatch release = new CountDownLatch(1);
        FakePlugin.answer = type -> {
            if (type == IndexType.TRANSACTION) {
                quietly(release::await);
            }
            return new Noted(100);
        };
        configure("fetch.indexes.at.once", "true");
        read(IndexType.OFFSET);
        until(() -> count("Bytes", "timestamp") == 100);
        thrown(RemoteStorageException.class, () -> {
            wrapper.deleteLogSegmentData(segment); // the plugin fails, and yet nothing may be kept
            return null;
        });
        release.countDown();
        until(() -> used() == 0 && Noted.open.get() == 0);
        read(IndexType.TIMESTAMP);
        same(2L, count("Requests", "timestamp"));
    }

    public void memory_stays_within_its_bound() throws Exception {
        long bound = 200_000;
        AtomicLong most = new AtomicLong();
        FakePlugin.answer = type -> new Noted(type == IndexType.TRANSACTION ? 500_000 : 50_000) {
            @Override
            public int read(byte[] into, int offset, int length) {
                most.accumulateAndGet(used(), Math::max);
                return super.read(into, offset, length);
            }
        };
        configure("fetch.indexes.at.once", "true", "fetch.indexes.at.once.bytes", String.valueOf(bound));
        for (int number = 0; number < 50; number++) {
            try (InputStream index = wrapper.fetchIndex(segment(), IndexType.OFFSET)) {
                same(50_000, index.readAllBytes().length); // its other two are never asked for
            }
        }
        same(50_000, read(IndexType.OFFSET));
        same(50_000, read(IndexType.TIMESTAMP));
        same(500_000, read(IndexType.TRANSACTION)); // larger than the bound: not kept, but fetched again
        until(() -> Noted.open.get() == 0);
        if (most.get() == 0 || most.get() > bound || used() > bound) {
            throw new AssertionError(most + " bytes at most, now " + used());
        }
    }

    private void configure(Object... more) {
        Map<String, Object> settings = new HashMap<>(Map.of("wrapped.class.name", FakePlugin.class.getName()));
        for (int index = 0; index < more.length; index += 2) {
            settings.put((String) more[index], more[index + 1]);
        }
        wrapper = new CountingRemoteStorageManager();
        wrapper.configure(settings);
    }

    private int read(IndexType type) throws Exception {
        try (InputStream index = wrapper.fetchIndex(segment, type)) {
            byte[] read = index.readAllBytes();
            same(true, Arrays.equals(content(read.length), read));
            return read.length;
        }
    }

    private long used() {
        return wrapper.bytesAhead();
    }

    private static long count(String name, String index) throws Exception {
        return (long) ManagementFactory.getPlatformMBeanServer().getAttribute(bean(name, index), "Count");
    }

    private static ObjectName bean(String name, String index) throws Exception {
        return new ObjectName("jmxlake.kafka:type=IndexFetches,name=" + name + ",index=" + index);
    }

    private static byte[] content(int size) {
        byte[] bytes = new byte[size];
        for (int index = 0; index < size; index++) {
            bytes[index] = (byte) (index * 31 >> 3);
        }
        return bytes;
    }

    private static RemoteLogSegmentMetadata segment() {
        TopicIdPartition partition = new TopicIdPartition(Uuid.randomUuid(), new TopicPartition("t", 0));
        RemoteLogSegmentId id = new RemoteLogSegmentId(partition, Uuid.randomUuid());
        return new RemoteLogSegmentMetadata(id, 0, 9, 0, 1, 0, 100, Map.of(0, 0L));
    }

    private static void same(Object expected, Object found) {
        if (expected == null ? found != null : !expected.equals(found)) {
            throw new AssertionError(found + " instead of " + expected);
        }
    }

    private static void refused(Runnable configuring, String about) {
        ConfigException error = thrown(ConfigException.class, () -> {
            configuring.run();
            return null;
        });
        same(true, error.getMessage().contains(about));
    }

    private static <E extends Exception> E thrown(Class<E> type, Callable<?> call) {
        try {
            call.call();
        } catch (Exception error) {
            return type.cast(error);
        }
        throw new AssertionError("no " + type.getSimpleName());
    }

    private static void quietly(Waiting waiting) {
        try {
            waiting.run();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void until(Callable<Boolean> happened) throws Exception {
        long end = System.nanoTime() + 30_000_000_000L;
        while (!happened.call()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("waited 30 s in vain");
            }
            Thread.sleep(5);
        }
    }

    interface Waiting {
        void run() throws Exception;
    }
}
