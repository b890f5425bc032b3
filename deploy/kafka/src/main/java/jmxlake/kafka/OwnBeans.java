package jmxlake.kafka;

import java.lang.management.ManagementFactory;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.apache.kafka.common.KafkaException;

/** Registration of this plugin's MBeans. */
final class OwnBeans {
    static final MBeanServer SERVER = ManagementFactory.getPlatformMBeanServer();

    private OwnBeans() {
    }

    /** Register an MBean and return its name. It replaces an MBean with the same name. */
    static <T> ObjectName register(T bean, Class<T> seenAs, String properties) {
        try {
            ObjectName name = new ObjectName("jmxlake.kafka:" + properties);
            unregister(name);
            SERVER.registerMBean(new StandardMBean(bean, seenAs), name);
            return name;
        } catch (JMException error) {
            throw new KafkaException("Cannot register MBean " + properties, error);
        }
    }

    static void unregister(ObjectName name) {
        try {
            if (SERVER.isRegistered(name)) {
                SERVER.unregisterMBean(name);
            }
        } catch (InstanceNotFoundException gone) {
            // another thread was faster
        } catch (JMException error) {
            throw new KafkaException("Cannot remove MBean " + name, error);
        }
    }
}
