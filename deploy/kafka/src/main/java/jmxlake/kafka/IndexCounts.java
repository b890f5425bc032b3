package jmxlake.kafka;

import java.lang.management.ManagementFactory;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/** The counters of one type of index since the broker started, each a bean as Kafka's own: attribute Count. */
final class IndexCounts {
    /** Names of the beans; README.md says what each of them counts. */
    enum Counter { Fetches, Sets, RoundTrips, WaitNanos, Requests, RequestNanos, Bytes, NotFound, Errors }

    /** What is seen of a counter. */
    public interface Bean {
        long getCount();
    }

    private static final MBeanServer BEANS = ManagementFactory.getPlatformMBeanServer();

    private final IndexType type;
    private final Map<Counter, LongAdder> counts = new EnumMap<>(Counter.class);

    /** Register its beans; those of an earlier plugin of this JVM give way. */
    IndexCounts(IndexType type) {
        this.type = type;
        unregister();
        try {
            for (Counter counter : Counter.values()) {
                LongAdder count = new LongAdder();
                counts.put(counter, count);
                BEANS.registerMBean(new StandardMBean((Bean) count::sum, Bean.class), name(counter));
            }
        } catch (JMException error) {
            throw new KafkaException("The beans of index fetches cannot be registered", error);
        }
    }

    void add(Counter counter, long amount) {
        counts.get(counter).add(amount);
    }

    void unregister() {
        try {
            for (Counter counter : Counter.values()) {
                if (BEANS.isRegistered(name(counter))) {
                    BEANS.unregisterMBean(name(counter));
                }
            }
        } catch (JMException error) {
            throw new KafkaException("The beans of index fetches cannot be removed", error);
        }
    }

    private ObjectName name(Counter counter) throws JMException {
        String index = type.name().toLowerCase(Locale.ROOT);
        return new ObjectName("jmxlake.kafka:type=IndexFetches,name=" + counter + ",index=" + index);
    }
}
