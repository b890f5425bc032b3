import java.rmi.registry.*;
import java.util.*;
import javax.management.*;
import javax.management.remote.*;
import javax.management.remote.rmi.*;
import javax.rmi.ssl.SslRMIClientSocketFactory;

/** Reads as the user monitor, then tries to write. */
final class Write {
    public static void main(String[] arguments) throws Exception {
        String password = new Scanner(System.in).next();
        Registry registry = LocateRegistry.getRegistry(
            "127.0.0.1", 9999, new SslRMIClientSocketFactory());
        RMIServer stub = (RMIServer) registry.lookup("jmxrmi");
        var connector = new RMIConnector(stub, null);
        connector.connect(Map.of(
            JMXConnector.CREDENTIALS, new String[] {"monitor", password}));
        var beans = connector.getMBeanServerConnection();
        var memory = new ObjectName("java.lang:type=Memory");
        System.out.println("read " + beans.getAttribute(memory, "Verbose"));
        beans.setAttribute(memory, new Attribute("Verbose", true));
        System.out.println("written");
    }
}
