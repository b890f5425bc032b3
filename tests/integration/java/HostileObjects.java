import java.io.ByteArrayOutputStream;
import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectOutput;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.rmi.MarshalledObject;
import java.rmi.Remote;
import java.rmi.dgc.Lease;
import java.rmi.dgc.VMID;
import java.rmi.server.ObjID;
import java.rmi.server.Operation;
import java.rmi.server.RMIClientSocketFactory;
import java.rmi.server.RemoteCall;
import java.rmi.server.RemoteObject;
import java.rmi.server.RemoteObjectInvocationHandler;
import java.rmi.server.RemoteRef;
import java.rmi.server.UnicastRemoteObject;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.Notification;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeDataSupport;
import javax.management.openmbean.CompositeType;
import javax.management.openmbean.OpenType;
import javax.management.openmbean.SimpleType;
import javax.management.remote.NotificationResult;
import javax.management.remote.TargetedNotification;
import javax.management.remote.rmi.RMIConnection;
import javax.management.remote.rmi.RMIConnector;
import javax.management.remote.rmi.RMIServer;
import javax.management.remote.rmi.RMIServerImpl_Stub;
import javax.rmi.ssl.SslRMIClientSocketFactory;
import sun.reflect.ReflectionFactory;
import sun.rmi.server.UnicastRef;
import sun.rmi.server.UnicastRef2;
import sun.rmi.transport.LiveRef;
import sun.rmi.transport.tcp.TCPEndpoint;

/**
 * Writes objects as RMI sends them, one on each line: its kind, its class, its bytes in hex.
 *
 * <p>Arguments: host and port of the one who must not be called; a port that must not be opened; the
 * port of the JMX server that the good objects are of.
 */
public class HostileObjects {
    private static final List<String> PACKAGES =
            List.of("java/rmi/", "sun/rmi/", "javax/management/remote/rmi/");

    private static String host;
    private static int port;
    private static int listens;

    /** As RMI's own stream, but what is exported here is written as it is. */
    private static class AsSent extends ObjectOutputStream {
        AsSent(ByteArrayOutputStream out) throws IOException {
            super(out);
        }

        @Override
        protected void annotateClass(Class<?> type) throws IOException {
            writeObject(null);
        }

        @Override
        protected void annotateProxyClass(Class<?> type) throws IOException {
            writeObject(null);
        }
    }

    /** Writes a reference under any name, and any objects after it. */
    private static class Ref implements RemoteRef {
        private final String name;
        private final RemoteRef real;
        private final Object[] more;

        Ref(String name, RemoteRef real, Object... more) {
            this.name = name;
            this.real = real;
            this.more = more;
        }

        @Override
        public String getRefClass(ObjectOutput out) {
            return name;
        }

        @Override
        public void writeExternal(ObjectOutput out) throws IOException {
            if (real != null) {
                real.writeExternal(out);
            }
            for (Object one : more) {
                out.writeObject(one);
            }
        }

        @Override
        public void readExternal(ObjectInput in) {}

        @Override
        public Object invoke(Remote a, java.lang.reflect.Method b, Object[] c, long d) {
            return null;
        }

        @Override
        public RemoteCall newCall(RemoteObject a, Operation[] b, int c, long d) {
            return null;
        }

        @Override
        public void invoke(RemoteCall call) {}

        @Override
        public void done(RemoteCall call) {}

        @Override
        public int remoteHashCode() {
            return 0;
        }

        @Override
        public boolean remoteEquals(RemoteRef other) {
            return false;
        }

        @Override
        public String remoteToString() {
            return "";
        }
    }

    private static LiveRef live(int at, RMIClientSocketFactory factory) {
        TCPEndpoint endpoint = new TCPEndpoint(host, at, factory, null);
        return new LiveRef(new ObjID(7), endpoint, false);
    }

    private static RemoteRef ref() {
        return new UnicastRef(live(port, null));
    }

    private static void set(Object object, Class<?> of, String field, Object value) throws Exception {
        Field found = of.getDeclaredField(field);
        found.setAccessible(true);
        found.set(object, value);
    }

    private static void show(String kind, String name, Object object) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (AsSent stream = new AsSent(bytes)) {
            stream.writeObject(object);
        }
        byte[] content = bytes.toByteArray();
        System.out.println(kind + "\t" + name + "\t" + HexFormat.of().formatHex(content, 4, content.length));
    }

    private static List<Class<?>> serializable() throws Exception {
        List<Class<?>> found = new ArrayList<>();
        Path image = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules");
        for (String module : List.of("java.rmi", "java.management.rmi")) {
            Path root = image.resolve(module);
            try (Stream<Path> files = Files.walk(root)) {
                for (Path file : (Iterable<Path>) files::iterator) {
                    String name = root.relativize(file).toString();
                    if (name.endsWith(".class") && PACKAGES.stream().anyMatch(name::startsWith)) {
                        String type = name.substring(0, name.length() - 6).replace('/', '.');
                        found.add(Class.forName(type, false, ClassLoader.getSystemClassLoader()));
                    }
                }
            }
        }
        found.removeIf(type -> !Serializable.class.isAssignableFrom(type) || type.isInterface()
                || Modifier.isAbstract(type.getModifiers()) || type.isEnum());
        return found;
    }

    private static Object made(Class<?> type) throws Exception {
        if (RemoteRef.class.isAssignableFrom(type)) {
            Constructor<?> constructor = type.getConstructor(LiveRef.class);
            return constructor.newInstance(live(port, null));
        }
        if (Throwable.class.isAssignableFrom(type)) {
            for (Constructor<?> one : type.getDeclaredConstructors()) {
                Class<?>[] types = one.getParameterTypes();
                one.setAccessible(true);
                if (types.length > 0 && types[0] == String.class) {
                    Object[] values = new Object[types.length];
                    values[0] = "x";
                    return one.newInstance(values);
                }
            }
        }
        Constructor<?> of = Object.class.getDeclaredConstructor();
        Object object =
                ReflectionFactory.getReflectionFactory().newConstructorForSerialization(type, of).newInstance();
        if (object instanceof RemoteObject) {
            set(object, RemoteObject.class, "ref", ref());
        }
        if (object instanceof UnicastRemoteObject) {
            set(object, UnicastRemoteObject.class, "port", listens);
        }
        if (object instanceof RMIConnector) {
            set(object, RMIConnector.class, "rmiServer", new RMIServerImpl_Stub(ref()));
        }
        return object;
    }

    private static Object proxy(Class<?> type) {
        InvocationHandler handler = new RemoteObjectInvocationHandler(ref());
        return Proxy.newProxyInstance(HostileObjects.class.getClassLoader(), new Class<?>[] {type}, handler);
    }

    private static Map<String, Object> carriers(Object object) throws Exception {
        Map<String, Object> in = new LinkedHashMap<>();
        in.put("array", new Object[] {object});
        in.put("arrays", new Object[][] {{object}});
        in.put("list", new ArrayList<>(List.of(object)));
        in.put("attributes", new AttributeList(List.of(new Attribute("Value", object))));
        in.put("tree", new TreeMap<>(Map.of("a", object)));
        in.put("map", Map.of("a", object));
        in.put("marshalled", new MarshalledObject<>(object));
        CompositeType type = new CompositeType("a", "a", new String[] {"used"}, new String[] {"used"},
                new OpenType<?>[] {SimpleType.INTEGER});
        CompositeDataSupport composite = new CompositeDataSupport(type, Map.of("used", 1));
        set(composite, CompositeDataSupport.class, "contents", new TreeMap<>(Map.of("used", object)));
        in.put("composite", composite);
        Exception suppressed = new IllegalStateException("x");
        set(suppressed, Throwable.class, "suppressedExceptions", new ArrayList<>(List.of(object)));
        in.put("suppressed", suppressed);
        in.put("cause", new IllegalStateException("x", suppressed));
        Notification notice = new Notification("a", new ObjectName("a:b=c"), 1);
        notice.setUserData(object);
        TargetedNotification[] notices = {new TargetedNotification(notice, 1)};
        in.put("notice", new NotificationResult(0, 1, notices));
        return in;
    }

    private static Object nested(java.util.function.Function<Object, Object> around) {
        Object one = "x";
        for (int depth = 0; depth < 24; depth++) {
            one = around.apply(one);
        }
        return one;
    }

    private static Set<Object> twice(Object one) {
        Set<Object> first = new HashSet<>(Set.of("a"));
        first.add(one);
        Set<Object> second = new HashSet<>(Set.of("b"));
        second.add(one);
        return new HashSet<>(Set.of(first, second));
    }

    private static void good(int jmx) throws Exception {
        host = "127.0.0.1";
        show("good", "lookup", new RMIServerImpl_Stub(new UnicastRef(live(jmx, null))));
        Constructor<?> connection = Class.forName("javax.management.remote.rmi.RMIConnectionImpl_Stub")
                .getConstructor(RemoteRef.class);
        show("good", "newClient", connection.newInstance(new UnicastRef(live(jmx, null))));
        for (String name : List.of("kafka.server:type=app-info,id=1", "java.lang:type=Runtime",
                "kafka.server:type=KafkaServer,name=ClusterId", "hostile:type=Good")) {
            show("good", name, new HashSet<>(Set.of(new ObjectName(name))));
        }
        show("good", "none", new HashSet<>());
        show("good", "dirty", new Lease(new VMID(), 600_000));
        show("good", "text", "4.3.1");
        show("good", "number", 7);
        show("good", "start", 1_700_000_000_000L);
        show("good", "addNotificationListeners", new Integer[] {1});
        show("good", "fetchNotifications", new NotificationResult(0, 0, new TargetedNotification[0]));
        show("good", "getAttributes", new AttributeList(List.of(new Attribute("Value", 7))));
    }

    public static void main(String[] arguments) throws Exception {
        good(Integer.parseInt(arguments[3]));
        host = arguments[0];
        port = Integer.parseInt(arguments[1]);
        listens = Integer.parseInt(arguments[2]);
        for (Class<?> type : serializable()) {
            try {
                show("class", type.getName(), made(type));
            } catch (ReflectiveOperationException | IOException | RuntimeException failed) {
                System.out.println("unmade\t" + type.getName() + "\t" + failed);
            }
        }
        for (Class<?> type : List.of(RMIServer.class, RMIConnection.class, Remote.class,
                java.rmi.registry.Registry.class, java.rmi.dgc.DGC.class)) {
            show("proxy", type.getName(), proxy(type));
        }
        Map<String, Object> calling = new LinkedHashMap<>();
        calling.put("UnicastRemoteObject", made(UnicastRemoteObject.class));
        calling.put("RMIServerImpl_Stub", new RMIServerImpl_Stub(ref()));
        calling.put("UnicastRef", ref());
        calling.put("RemoteObjectInvocationHandler", new RemoteObjectInvocationHandler(ref()));
        calling.put("SslRMIClientSocketFactory", new SslRMIClientSocketFactory());
        for (Map.Entry<String, Object> one : calling.entrySet()) {
            for (Map.Entry<String, Object> in : carriers(one.getValue()).entrySet()) {
                show("carried", one.getKey() + " in " + in.getKey(), in.getValue());
            }
        }
        RMIClientSocketFactory tls = new SslRMIClientSocketFactory();
        Object other = new RMIServerImpl_Stub(ref());
        RemoteRef plain = ref();
        RemoteRef byTls = new UnicastRef2(live(port, tls));
        Object[] stubs = {
            new Ref("UnicastRef", plain, other),
            new Ref("UnicastRef2", byTls, other),
            new Ref("UnicastRef2", byTls, new Object[] {new Object[] {other}}),
            new Ref("", null, plain),
            new Ref("UnicastServerRef", null),
            new Ref("UnicastServerRef2", null),
            new Ref("ActivatableRef", null, plain),
            new Ref("../x", null),
            new UnicastRef2(live(port, (RMIClientSocketFactory) proxy(RMIClientSocketFactory.class)))
        };
        for (int number = 0; number < stubs.length; number++) {
            show("stub", "RMIServerImpl_Stub " + number, new RMIServerImpl_Stub((RemoteRef) stubs[number]));
        }
        show("redirect", "plain", new RMIServerImpl_Stub(plain));
        host = "elsewhere.invalid";
        show("redirect", "elsewhere", new RMIServerImpl_Stub(ref()));
        show("redirect", "elsewhere by TLS", new RMIServerImpl_Stub(new UnicastRef2(live(port, tls))));
        Object sets = "x";
        for (int depth = 0; depth < 12; depth++) {
            sets = twice(sets);
        }
        show("bomb", "java.util.HashSet", sets);
        show("bomb", "java.util.ArrayList", nested(one -> new ArrayList<>(List.of(one, one, one, one))));
        show("bomb", "Object[]", nested(one -> new Object[] {one, one, one, one}));
        show("bomb", "java.util.TreeMap", nested(one -> new TreeMap<>(Map.of("a", one, "b", one, "c", one))));
        show("bomb", "java.util.HashSet of ArrayList", new HashSet<>(Set.of(List.of("a"))));
    }
}
