import java.lang.management.ManagementFactory;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.rmi.Remote;
import java.rmi.RemoteException;
import java.rmi.registry.Registry;
import java.rmi.server.RemoteObject;
import java.rmi.server.RemoteObjectInvocationHandler;
import java.rmi.server.RemoteRef;
import java.rmi.server.UnicastRemoteObject;
import java.util.HashMap;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.Callable;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.AttributeNotFoundException;
import javax.management.BadAttributeValueExpException;
import javax.management.DynamicMBean;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanException;
import javax.management.MBeanInfo;
import javax.management.ObjectName;
import javax.management.remote.rmi.RMIServerImpl_Stub;

/** Passes for broker 1 of cluster c until its other beans are read: each of them means no good. */
public class HostileJmx {
    /** A bean whose one attribute is made anew whenever it is read. */
    record Bean(String attribute, Callable<Object> value, boolean tells) implements DynamicMBean {
        @Override
        public Object getAttribute(String name) throws AttributeNotFoundException, MBeanException {
            if (!name.equals(attribute)) {
                throw new AttributeNotFoundException(name);
            }
            try {
                return value.call();
            } catch (Exception failure) {
                throw new MBeanException(failure);
            }
        }

        @Override
        public AttributeList getAttributes(String[] names) {
            AttributeList found = new AttributeList();
            for (String name : names) {
                try {
                    found.add(new Attribute(name, getAttribute(name)));
                } catch (AttributeNotFoundException | MBeanException failed) {
                    continue;
                }
            }
            return found;
        }

        @Override
        public MBeanInfo getMBeanInfo() {
            if (!tells && Thread.currentThread().getName().contains("RMI")) {
                throw new IllegalStateException("gone");
            }
            MBeanAttributeInfo one =
                    new MBeanAttributeInfo(attribute, "java.lang.Object", "", true, false, false);
            return new MBeanInfo("Bean", "", new MBeanAttributeInfo[] {one}, null, null, null);
        }

        @Override
        public void setAttribute(Attribute attribute) {}

        @Override
        public AttributeList setAttributes(AttributeList attributes) {
            return attributes;
        }

        @Override
        public Object invoke(String action, Object[] values, String[] signature) {
            return null;
        }
    }

    static class OwnException extends RuntimeException {
        final byte[] weight = new byte[1 << 20];
    }

    static class Exported extends UnicastRemoteObject implements Remote {
        Exported() throws RemoteException {}
    }

    static void register(String name, String attribute, Callable<Object> value) throws Exception {
        ManagementFactory.getPlatformMBeanServer()
                .registerMBean(new Bean(attribute, value, true), new ObjectName(name));
    }

    public static void main(String[] arguments) throws Exception {
        register("kafka.server:type=app-info,id=1", "Version", () -> "4.3.1");
        register("kafka.server:type=KafkaServer,name=ClusterId", "Value", () -> "c");
        register("hostile:type=Good", "Value", () -> 7);
        // What the well-known chains of gadgets begin with.
        register("hostile:type=Gadget", "Value", () -> new BadAttributeValueExpException("x"));
        register("hostile:type=Queue", "Value", () -> new PriorityQueue<>(java.util.List.of(1, 2)));
        register("hostile:type=Lookup", "Value", () -> {
            Map<Object, Object> map = new HashMap<>();
            map.put(new URI("http://gadget.invalid/").toURL(), 1);
            return map;
        });
        register("hostile:type=Huge", "Value", () -> "a".repeat(100_000_000));
        register("hostile:type=Array", "Value", () -> new long[20_000_000]);
        register("hostile:type=Slow", "Value", () -> {
            Thread.sleep(60_000);
            return 1;
        });
        register("hostile:type=Thrower", "Value", () -> {
            throw new OwnException();
        });
        // RMI's own: once they are read, a port is open, or a host is called.
        UnicastRemoteObject exported = new Exported();
        Remote stub = RemoteObject.toStub(exported);
        RemoteRef ref = ((RemoteObject) Proxy.getInvocationHandler(stub)).getRef();
        UnicastRemoteObject.unexportObject(exported, true);
        register("hostile:type=Exported", "Value", () -> exported);
        register("hostile:type=Stub", "Value", () -> new RMIServerImpl_Stub(ref));
        register("hostile:type=Proxy", "Value", () -> Proxy.newProxyInstance(
                HostileJmx.class.getClassLoader(), new Class<?>[] {Registry.class},
                new RemoteObjectInvocationHandler(ref)));
        register("hostile:type=Quotes", "Value", () -> "a\", \"attribute\" : \"b\nc");
        ManagementFactory.getPlatformMBeanServer()
                .registerMBean(new Bean("Value", () -> 1, false), new ObjectName("hostile:type=Shy"));
        System.out.println("ready");
        Thread.sleep(Long.MAX_VALUE);
    }
}
