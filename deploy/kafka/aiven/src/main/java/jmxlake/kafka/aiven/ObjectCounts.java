package jmxlake.kafka.aiven;

import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.LongAdder;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.apache.kafka.common.KafkaException;

/** The counters of all backends of a broker; the plugin creates several. README.md has their names. */
final class ObjectCounts {
    /** The attribute of a counter's MBean. */
    public interface Bean {
        long getCount();
    }

    private static ObjectCounts registered;

    private final LongAdder fetches = new LongAdder();
    private final LongAdder requests = new LongAdder();

    private ObjectCounts() {
    }

    /** Return the counters. The first call registers them and replaces the counters of an earlier plugin. */
    static synchronized ObjectCounts registered() {
        if (registered == null) {
            ObjectCounts counts = new ObjectCounts();
            register("Fetches", counts.fetches);
            register("Requests", counts.requests);
            registered = counts;
        }
        return registered;
    }

    /** Count an index that the plugin requested. */
    void fetch() {
        fetches.increment();
    }

    /** Count a request to the store. */
    void request() {
        requests.increment();
    }

    private static void register(String name, LongAdder count) {
        MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
        try {
            ObjectName bean = new ObjectName("jmxlake.kafka:type=IndexObjects,name=" + name);
            if (beans.isRegistered(bean)) {
                beans.unregisterMBean(bean);
            }
            beans.registerMBean(new StandardMBean((Bean) count::sum, Bean.class), bean);
        } catch (JMException error) {
            throw new KafkaException("Cannot register the MBeans of index objects", error);
        }
    }
}
