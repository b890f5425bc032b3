package jmxlake.kafka;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import javax.management.ObjectName;
import org.apache.kafka.common.Uuid;

/**
 * Clients that pushed throttle times to this broker. Their number is limited, because clients choose their IDs: the
 * client with the oldest push is evicted.
 */
final class ThrottledClients {
    static final int MOST_BEANS = 1_000;
    static final int MOST_INSTANCES = 10_000;

    private final LongSupplier clockMs;
    private final Map<List<String>, ThrottledClient> clients = new LinkedHashMap<>(); // the oldest push first
    private int beans;
    private int instances;
    private boolean closed;

    /** The clock is monotonic. */
    ThrottledClients(LongSupplier clockMs) {
        this.clockMs = clockMs;
    }

    synchronized int size() {
        return clients.size();
    }

    /** Record a push of at least one throttle time; return the number of evicted clients. */
    synchronized int pushed(
            String user, String clientId, Uuid instance, Map<Throttle, Double> times, long lastsMs) {
        if (closed) {
            return 0; // Kafka still calls a reporter that it has removed
        }
        List<String> key = List.of(user, clientId);
        ThrottledClient known = clients.remove(key);
        ThrottledClient client = known == null ? made(user, clientId) : known;
        clients.put(key, client);
        changed(client, () -> client.pushed(instance, times, lastsMs));
        return makeRoom();
    }

    private ThrottledClient made(String user, String clientId) {
        String names = ",user=" + ObjectName.quote(user) + ",client-id=" + ObjectName.quote(clientId);
        return new ThrottledClient(names, this, clockMs);
    }

    /** Remove expired values. */
    synchronized void expire() {
        for (ThrottledClient client : clients.values()) {
            changed(client, client::expire);
        }
        clients.values().removeIf(client -> client.instances() == 0);
    }

    synchronized void close() {
        closed = true;
        for (ThrottledClient client : clients.values()) {
            changed(client, client::close);
        }
        clients.clear();
    }

    private int makeRoom() {
        int gone = 0;
        while (beans > MOST_BEANS || instances > MOST_INSTANCES) {
            Iterator<ThrottledClient> all = clients.values().iterator();
            ThrottledClient oldest = all.next();
            changed(oldest, beans > MOST_BEANS ? oldest::close : oldest::dropOldest);
            if (oldest.instances() == 0) {
                changed(oldest, oldest::close);
                all.remove();
                gone++;
            }
        }
        return gone;
    }

    private void changed(ThrottledClient client, Runnable change) {
        int beansBefore = client.beans();
        int instancesBefore = client.instances();
        try {
            change.run();
        } finally {
            beans += client.beans() - beansBefore;
            instances += client.instances() - instancesBefore;
        }
    }
}
