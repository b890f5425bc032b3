package jmxlake.kafka.aiven;

import io.aiven.kafka.tieredstorage.storage.BytesRange;
import io.aiven.kafka.tieredstorage.storage.ObjectKey;
import io.aiven.kafka.tieredstorage.storage.StorageBackend;
import io.aiven.kafka.tieredstorage.storage.StorageBackendException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.ObjectName;
import org.apache.kafka.common.config.ConfigException;

/** What the backend for Aiven's plugin must do over its store; each public method is a case of its own. */
public class WholeIndexesCases {
    private static final int SIZE = 25_000; // of an index
    private static final int INDEXES = 5;

    interface Content {
        InputStream of(String key) throws StorageBackendException;
    }

    /** A fake store whose objects are all alike, and which notes its requests. */
    public static class FakeStore implements StorageBackend {
        static final List<String> requests = new ArrayList<>();
        static Map<String, ?> settings;
        static Content content;

        @Override
        public void configure(Map<String, ?> given) {
            settings = given;
        }

        @Override
        public InputStream fetch(ObjectKey key) throws StorageBackendException {
            requests.add(key.value());
            return content.of(key.value());
        }

        @Override
        public InputStream fetch(ObjectKey key, BytesRange range) {
            requests.add(key.value() + " " + range.firstPosition());
            return new ByteArrayInputStream(bytes(range.firstPosition(), range.size()));
        }

        @Override
        public long upload(InputStream given, ObjectKey key) {
            requests.add("upload " + key.value());
            return 7;
        }

        @Override
        public void delete(ObjectKey key) {
            requests.add("delete " + key.value());
        }

        @Override
        public void delete(Set<ObjectKey> keys) {
            requests.add("delete " + keys.size());
        }
    }

    private WholeIndexes whole;

    public static void main(String[] arguments) throws Exception {
        for (Method method : WholeIndexesCases.class.getMethods()) {
            if (method.getDeclaringClass() == WholeIndexesCases.class && !method.getName().equals("main")) {
                FakeStore.requests.clear();
                FakeStore.content = key -> new ByteArrayInputStream(bytes(0, INDEXES * SIZE));
                method.invoke(new WholeIndexesCases());
                System.out.println(method.getName());
            }
        }
    }

    public void settings_that_are_not_ours_reach_the_store_and_ours_do_not() throws Exception {
        configure("jmxlake.memory.bytes", "100", "s3.bucket.name", "b");
        same(Map.of("s3.bucket.name", "b"), FakeStore.settings);
        WholeIndexes bare = new WholeIndexes();
        bare.close();
        for (Map<String, String> wrong : List.of(Map.<String, String>of(),
                Map.of("jmxlake.wrapped.class.name", "nowhere.Store"))) {
            ConfigException error = thrown(ConfigException.class, () -> {
                bare.configure(wrong);
                return null;
            });
            same(true, error.getMessage().contains("jmxlake.wrapped.class.name"));
        }
    }

    public void the_indexes_of_a_segment_are_one_request() throws Exception {
        configure();
        long fetches = count("Fetches");
        long requests = count("Requests");
        for (int index : new int[] {3, 2, 0, 1, 4}) { // a replica is rebuilt, and then the segment is read
            same(true, read("s.indexes", index));
        }
        same(List.of("s.indexes"), FakeStore.requests);
        same(0L, whole.used());
        same(5L, count("Fetches") - fetches);
        same(1L, count("Requests") - requests);
    }

    public void other_objects_and_requests_are_the_stores() throws Exception {
        configure();
        long requests = count("Requests");
        read("s.log", 1);
        read("s.rsm-manifest", 0);
        whole.fetch(key("s.indexes")).close();
        whole.fetch(key("s.indexes"), BytesRange.ofFromPositionAndSize(9, 0)).close();
        same(7L, whole.upload(null, key("s.indexes")));
        whole.delete(key("s.log"));
        same(List.of("s.log " + SIZE, "s.rsm-manifest 0", "s.indexes", "s.indexes 9", "upload s.indexes",
                "delete s.log"), FakeStore.requests);
        same(0L, count("Requests") - requests);
        same(0L, whole.used());
    }

    public void a_range_is_given_once_and_then_read_again() throws Exception {
        configure();
        read("s.indexes", 0);
        read("s.indexes", 1);
        read("s.indexes", 0); // the plugin's cache and the broker's lost it
        read("s.indexes", 1);
        same(List.of("s.indexes", "s.indexes"), FakeStore.requests);
    }

    public void a_deleted_object_is_dropped() throws Exception {
        configure();
        for (String name : List.of("s.indexes", "t.indexes")) {
            read(name, 0);
            same(true, whole.used() > 0);
        }
        whole.delete(key("s.indexes"));
        whole.delete(Set.of(key("t.indexes"), key("t.log")));
        same(0L, whole.used());
        same(List.of("s.indexes", "t.indexes", "delete s.indexes", "delete 2"), FakeStore.requests);
    }

    public void memory_stays_within_its_bound() throws Exception {
        long bound = 300_000; // two objects
        AtomicLong most = new AtomicLong();
        FakeStore.content = key -> new ByteArrayInputStream(bytes(0, INDEXES * SIZE)) {
            @Override
            public int read(byte[] into, int offset, int length) {
                most.accumulateAndGet(whole.used(), Math::max);
                return super.read(into, offset, length);
            }
        };
        configure("jmxlake.memory.bytes", String.valueOf(bound));
        for (int number = 0; number < 20; number++) {
            same(true, read(number + ".indexes", 0));
        }
        same(true, read("19.indexes", 1));
        same(20, FakeStore.requests.size());
        same(true, read("0.indexes", 1)); // it gave way
        same(21, FakeStore.requests.size());
        same(true, most.get() > 0 && most.get() <= bound && whole.used() <= bound);
    }

    public void an_object_larger_than_the_memory_is_read_once_in_vain() throws Exception {
        configure("jmxlake.memory.bytes", "50000");
        for (int index = 0; index < INDEXES; index++) {
            same(true, read("s.indexes", index));
        }
        same(1 + INDEXES, FakeStore.requests.size());
        same("s.indexes 100000", FakeStore.requests.get(INDEXES));
        same(true, whole.used() <= 50_000);
    }

    public void a_stream_that_fails_midway_leaves_the_range_to_the_store() throws Exception {
        FakeStore.content = key -> new ByteArrayInputStream(bytes(0, INDEXES * SIZE)) {
            @Override
            public int read(byte[] into, int offset, int length) {
                if (pos > 40_000) {
                    sneaky(new IOException("torn"));
                }
                return super.read(into, offset, length);
            }
        };
        configure();
        same(true, read("s.indexes", 0));
        same(List.of("s.indexes", "s.indexes 0"), FakeStore.requests);
        same(0L, whole.used());
    }

    public void a_failure_of_the_store_passes_unchanged() throws Exception {
        StorageBackendException refused = new StorageBackendException("refused", null);
        FakeStore.content = key -> {
            throw refused;
        };
        configure();
        same(refused, thrown(StorageBackendException.class, () -> read("s.indexes", 0)));
        same(0L, whole.used());
    }

    public void a_range_beyond_the_object_is_the_stores() throws Exception {
        configure();
        same(true, read("s.indexes", INDEXES));
        same(List.of("s.indexes", "s.indexes 125000"), FakeStore.requests);
    }

    private void configure(String... more) {
        Map<String, String> settings = new HashMap<>();
        settings.put("jmxlake.wrapped.class.name", FakeStore.class.getName());
        for (int index = 0; index < more.length; index += 2) {
            settings.put(more[index], more[index + 1]);
        }
        whole = new WholeIndexes();
        whole.configure(settings);
    }

    /** Return True if the index has its content. */
    private boolean read(String name, int index) throws Exception {
        BytesRange range = BytesRange.ofFromPositionAndSize(index * SIZE, SIZE);
        try (InputStream found = whole.fetch(key(name), range)) {
            return Arrays.equals(bytes(index * SIZE, SIZE), found.readAllBytes());
        }
    }

    private static ObjectKey key(String name) {
        return () -> name;
    }

    private static byte[] bytes(int first, int size) {
        byte[] bytes = new byte[size];
        for (int index = 0; index < size; index++) {
            bytes[index] = (byte) ((first + index) * 31 >> 3);
        }
        return bytes;
    }

    private static long count(String name) throws Exception {
        ObjectName bean = new ObjectName("jmxlake.kafka:type=IndexObjects,name=" + name);
        return (long) ManagementFactory.getPlatformMBeanServer().getAttribute(bean, "Count");
    }

    @SuppressWarnings("unchecked")
    private static <E extends Exception> void sneaky(Exception error) throws E {
        throw (E) error;
    }

    private static void same(Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new AssertionError(found + " instead of " + expected);
        }
    }

    private static <E extends Exception> E thrown(Class<E> type, Callable<?> call) {
        try {
            call.call();
        } catch (Exception error) {
            return type.cast(error);
        }
        throw new AssertionError("no " + type.getSimpleName());
    }
}
