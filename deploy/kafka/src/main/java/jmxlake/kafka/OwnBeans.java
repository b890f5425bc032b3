package jmxlake.kafka;

import java.lang.management.ManagementFactory;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.apache.kafka.common.KafkaException;

/** Beans of this plugin. */
final class OwnBeans {
    static final MBeanServer SERVER = ManagementFactory.getPlatformMBeanServer();

    private OwnBeans() {
    }

    /** Register a bean and return its name; an earlier bean of that name gives way. */
    static <T> ObjectName register(T bean, Class<T> seenAs, String properties) {
        try {
            ObjectName name = new ObjectName("jmxlake.kafka:" + properties);
            unregister(name);
            SERVER.registerMBean(new StandardMBean(bean, seenAs), name);
            return name;
        } catch (JMException error) {
            throw new KafkaException("The bean " + properties + " cannot be registered", error);
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
            throw new KafkaException("The bean " + name + " cannot be removed", error);
        }
    }
}
