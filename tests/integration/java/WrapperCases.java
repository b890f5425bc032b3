package jmxlake.kafka;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
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

    interface SetAnswer {
        Map<IndexType, InputStream> to(Set<IndexType> types) throws Exception;
    }

    /** A fake plugin with the method of KIP-1002, which it does not know from an interface. */
    public static class FakePluginAtOnce extends FakePlugin {
        static SetAnswer all;
        static final ConcurrentLinkedQueue<Set<IndexType>> sets = new ConcurrentLinkedQueue<>();

        public Map<IndexType, InputStream> fetchIndexes(RemoteLogSegmentMetadata segment, Set<IndexType> types)
                throws Exception {
            sets.add(Set.copyOf(types));
            return all.to(types);
        }
    }

    /** A fake plugin whose methods of that name have other signatures. */
    public static class FakeOtherShape extends FakePlugin {
        public static Map<IndexType, InputStream> fetchIndexes(RemoteLogSegmentMetadata segment, Set<IndexType> types) {
            throw new IllegalStateException("a static method is not the KIP's");
        }

        public InputStream fetchIndexes(RemoteLogSegmentMetadata segment, List<IndexType> types) {
            throw new IllegalStateException("nor is one with a list");
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
                FakePluginAtOnce.sets.clear();
                FakePluginAtOnce.all = WrapperCases::present;
                FakePlugin.answer = type -> new Noted(10_000);
                Noted.open.set(0);
                WrapperCases one = new WrapperCases();
                method.invoke(one);
                if (one.wrapper != null) {
                    one.wrapper.close();
                }
                // close() interrupts running fetches; one may still reach the next case's plugin.
                until(() -> Thread.getAllStackTraces().keySet().stream()
                        .noneMatch(thread -> thread.getName().startsWith("jmxlake-index-fetch")));
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
        refused(() -> configure("fetch.indexes.at.once", "sets"), "FakePlugin does not have the method public Map<");
        refused(() -> configure("wrapped.class.name", FakeOtherShape.class.getName(), "fetch.indexes.at.once", "all"),
                "FakeOtherShape does not have the method public Map<");
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

    public void an_index_of_null_names_the_plugins_class() throws Exception {
        FakePlugin.answer = type -> null;
        for (String setting : List.of("false", "true")) {
            configure("fetch.indexes.at.once", setting);
            named("FakePlugin.fetchIndex returned null for OFFSET");
            same(1L, count("Errors", "offset"));
            until(() -> wrapper.bytesAhead() <= 2 * 16_384); // those that failed ahead
            wrapper.close();
        }
    }

    public void an_index_that_fails_midway_ahead_is_requested_again() throws Exception {
        Thread reader = Thread.currentThread();
        FakePlugin.answer = type -> new Noted(40_000) {
            @Override
            public int read(byte[] into, int offset, int length) {
                if (pos > 20_000 && Thread.currentThread() != reader) {
                    throw new IllegalStateException("torn");
                }
                return super.read(into, offset, Math.min(length, 5_000));
            }
        };
        configure("fetch.indexes.at.once", "true");
        for (IndexType type : List.of(IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.TRANSACTION)) {
            same(40_000, read(type));
        }
        counted(Map.of("Requests", 5L, "RoundTrips", 3L, "Errors", 2L));
        same(0L, used());
        same(0, Noted.open.get());
    }

    public void errors_of_java_are_counted_and_pass_unchanged() throws Exception {
        NoSuchMethodError other = new NoSuchMethodError("of another version of the store");
        FakePlugin.answer = type -> {
            throw other;
        };
        configure();
        try {
            read(IndexType.OFFSET);
        } catch (NoSuchMethodError error) {
            same(other, error);
        }
        same(1L, count("Errors", "offset"));
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

    public void a_plugins_own_method_is_called_once_a_set() throws Exception {
        for (String setting : List.of("sets", "true", "TRUE")) {
            FakePluginAtOnce.sets.clear();
            configureAtOnce(setting);
            for (List<IndexType> set : IndexFetches.SETS) {
                for (IndexType type : set) {
                    same(20_000 + type.ordinal(), read(type));
                }
            }
            same(List.of(), List.copyOf(FakePlugin.requests));
            same(List.of(Set.of(IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.TRANSACTION),
                    Set.of(IndexType.PRODUCER_SNAPSHOT, IndexType.LEADER_EPOCH)), bySize());
            counted(Map.of("Fetches", 5L, "Requests", 2L, "RoundTrips", 2L, "NotFound", 0L, "Errors", 0L));
            same(20_000L + IndexType.TIMESTAMP.ordinal(), count("Bytes", "timestamp"));
            same(count("WaitNanos", "offset") >= count("RequestNanos", "offset"), true);
            same(0L, used());
            same(0, Noted.open.get());
            wrapper.close();
        }
    }

    public void all_indexes_are_one_request_and_each_is_given_once() throws Exception {
        configureAtOnce("all");
        for (IndexType type : List.of(IndexType.LEADER_EPOCH, IndexType.PRODUCER_SNAPSHOT,
                IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.TRANSACTION)) {
            same(20_000 + type.ordinal(), read(type));
        }
        counted(Map.of("Fetches", 5L, "Sets", 2L, "Requests", 1L, "RoundTrips", 1L));
        same(0L, used());
        read(IndexType.OFFSET); // the broker lost it
        counted(Map.of("Fetches", 6L, "Requests", 2L));
        same(0, Noted.open.get());
        same(0, FakePlugin.requests.size());
    }

    public void the_interface_returns_all_indexes_by_the_same_request() throws Exception {
        Set<IndexType> every = Set.of(IndexType.values());
        IndexesAtOnce plugin = (segment, types) -> present(types);
        Map<IndexType, InputStream> found = plugin.fetchAllIndexes(segment);
        same(every, found.keySet());
        for (InputStream index : found.values()) {
            index.close();
        }
    }

    public void a_type_that_is_not_in_the_answer_does_not_exist() throws Exception {
        FakePluginAtOnce.all = types -> {
            Map<IndexType, InputStream> found = present(types);
            found.remove(IndexType.TRANSACTION).close();
            return found;
        };
        configureAtOnce("sets");
        read(IndexType.OFFSET);
        read(IndexType.TIMESTAMP);
        thrown(RemoteResourceNotFoundException.class, () -> read(IndexType.TRANSACTION));
        counted(Map.of("Requests", 1L, "NotFound", 1L, "Errors", 0L));
        same(0L, used());
        same(0, FakePlugin.requests.size());
    }

    public void types_that_were_not_requested_are_closed() throws Exception {
        FakePluginAtOnce.all = types -> present(Set.of(IndexType.values()));
        configureAtOnce("sets");
        read(IndexType.OFFSET);
        same(0, Noted.open.get());
        read(IndexType.LEADER_EPOCH);
        counted(Map.of("Requests", 2L, "Errors", 0L));
    }

    public void an_answer_of_null_or_with_something_else_names_the_plugins_class() throws Exception {
        FakePluginAtOnce.all = types -> null;
        configureAtOnce("all");
        named("FakePluginAtOnce.fetchIndexes returned null");
        FakePluginAtOnce.all = types -> {
            Map<IndexType, InputStream> found = present(types);
            found.put(IndexType.TIMESTAMP, null).close();
            return found;
        };
        named("FakePluginAtOnce.fetchIndexes returned null for TIMESTAMP");
        FakePluginAtOnce.all = WrapperCases::withText;
        named("FakePluginAtOnce.fetchIndexes returned no stream for OFFSET");
        FakePluginAtOnce.all = types -> {
            throw new IOException("torn");
        };
        named("FakePluginAtOnce.fetchIndexes failed: java.io.IOException: torn");
        counted(Map.of("Requests", 4L, "Errors", 4L));
        same(0, Noted.open.get());
        same(0L, used());
    }

    public void exceptions_of_the_plugins_own_method_pass_unchanged() throws Exception {
        RemoteStorageException refused = new RemoteStorageException("refused");
        RemoteResourceNotFoundException none = new RemoteResourceNotFoundException("no segment");
        IllegalStateException broken = new IllegalStateException("broken");
        configureAtOnce("sets");
        for (Exception error : List.of(refused, none, broken)) {
            FakePluginAtOnce.all = types -> {
                throw error;
            };
            same(error, thrown(error.getClass(), () -> read(IndexType.OFFSET)));
        }
        counted(Map.of("Requests", 3L, "Errors", 2L, "NotFound", 1L));
        same(0, FakePlugin.requests.size());
    }

    public void an_index_whose_stream_fails_midway_is_requested_on_its_own() throws Exception {
        FakePluginAtOnce.all = types -> {
            Map<IndexType, InputStream> found = present(types);
            found.replaceAll((type, stream) -> type == IndexType.TRANSACTION ? stream : new Noted(30_000) {
                @Override
                public int read(byte[] into, int offset, int length) {
                    if (pos > 20_000) {
                        throw new IllegalStateException("torn");
                    }
                    return super.read(into, offset, Math.min(length, 5_000));
                }
            });
            Noted.open.addAndGet(-2); // those that were replaced
            return found;
        };
        configureAtOnce("sets");
        same(10_000, read(IndexType.OFFSET));
        same(10_000, read(IndexType.TIMESTAMP));
        same(20_000 + IndexType.TRANSACTION.ordinal(), read(IndexType.TRANSACTION));
        same(List.of(IndexType.OFFSET, IndexType.TIMESTAMP), List.copyOf(FakePlugin.requests));
        counted(Map.of("Requests", 3L, "RoundTrips", 3L, "Errors", 2L));
        same(0L, used());
        same(0, Noted.open.get());
    }

    public void memory_of_a_plugins_own_method_stays_within_its_bound() throws Exception {
        long bound = 70_000; // four pieces
        AtomicLong most = new AtomicLong();
        FakePluginAtOnce.all = types -> {
            Map<IndexType, InputStream> found = new EnumMap<>(IndexType.class);
            for (IndexType type : types) {
                found.put(type, new Noted(type == IndexType.OFFSET ? 30_000 : 40_000) {
                    @Override
                    public int read(byte[] into, int offset, int length) {
                        most.accumulateAndGet(used(), Math::max);
                        return super.read(into, offset, length);
                    }
                });
            }
            return found;
        };
        configureAtOnce("sets", "fetch.indexes.at.once.bytes", String.valueOf(bound));
        for (int number = 0; number < 20; number++) {
            try (InputStream index = wrapper.fetchIndex(segment(), IndexType.OFFSET)) {
                same(30_000, index.readAllBytes().length);
            }
        }
        same(true, most.get() > 0 && most.get() <= bound && used() <= bound);
        same(20L, count("Requests", "offset")); // what was requested always has room
        FakePluginAtOnce.all = types -> present(types, 100_000); // larger than the memory
        same(10_000, read(IndexType.OFFSET));
        same(10_000, read(IndexType.TIMESTAMP));
        same(List.of(IndexType.OFFSET, IndexType.TIMESTAMP), List.copyOf(FakePlugin.requests));
        same(0, Noted.open.get());
    }

    public void deletion_drops_the_indexes_of_a_plugins_own_method() throws Exception {
        configureAtOnce("all");
        read(IndexType.OFFSET);
        same(true, used() > 0);
        thrown(RemoteStorageException.class, () -> {
            wrapper.deleteLogSegmentData(segment);
            return null;
        });
        same(0L, used());
    }

    private static Map<IndexType, InputStream> present(Set<IndexType> types) {
        return present(types, 20_000);
    }

    private static Map<IndexType, InputStream> present(Set<IndexType> types, int size) {
        Map<IndexType, InputStream> found = new EnumMap<>(IndexType.class);
        types.forEach(type -> found.put(type, new Noted(size + type.ordinal())));
        return found;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Map<IndexType, InputStream> withText(Set<IndexType> types) {
        return (Map) Map.of(IndexType.OFFSET, "text", "key", new Noted(10));
    }

    private void named(String problem) {
        String message = thrown(RemoteStorageException.class, () -> read(IndexType.OFFSET)).getMessage();
        same(true, message.endsWith(problem));
    }

    private static List<Set<IndexType>> bySize() {
        return FakePluginAtOnce.sets.stream().sorted((a, b) -> b.size() - a.size())
                .collect(Collectors.toList());
    }

    private static void counted(Map<String, Long> sums) throws Exception {
        for (Map.Entry<String, Long> sum : sums.entrySet()) {
            long found = 0;
            for (IndexType type : IndexType.values()) {
                found += count(sum.getKey(), type.name().toLowerCase(Locale.ROOT));
            }
            same(sum, Map.entry(sum.getKey(), found));
        }
    }

    private void configureAtOnce(String setting, Object... more) {
        Object[] settings = Arrays.copyOf(more, more.length + 4);
        settings[more.length] = "fetch.indexes.at.once";
        settings[more.length + 1] = setting;
        settings[more.length + 2] = "wrapped.class.name";
        settings[more.length + 3] = FakePluginAtOnce.class.getName();
        configure(settings);
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
