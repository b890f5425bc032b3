package jmxlake.kafka;

import java.util.EnumMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import javax.management.ObjectName;
import org.apache.kafka.common.Uuid;

/**
 * A user and client id, the last throttle times of each of its instances, and its beans.
 *
 * <p>Its owner, {@link ThrottledClients}, is its lock.
 */
final class ThrottledClient {
    /** The MBean of a throttle time. */
    public interface Bean {
        /** Highest throttle time of the instances (ms). NaN: unknown. */
        double getValue();

        /** Time since the push of this value (ms). -1: unknown. */
        long getAgeMs();

        /** Number of instances with a known throttle time. */
        int getInstances();
    }

    private static final class Push {
        final Map<Throttle, Double> times;
        final long atMs;
        final long untilMs;

        Push(Map<Throttle, Double> times, long atMs, long untilMs) {
            this.times = times;
            this.atMs = atMs;
            this.untilMs = untilMs;
        }
    }

    private final class Shown implements Bean {
        private final Throttle throttle;

        Shown(Throttle throttle) {
            this.throttle = throttle;
        }

        @Override
        public double getValue() {
            synchronized (lock) {
                Push highest = highest(throttle);
                return highest == null ? Double.NaN : highest.times.get(throttle);
            }
        }

        @Override
        public long getAgeMs() {
            synchronized (lock) {
                Push highest = highest(throttle);
                return highest == null ? -1 : clockMs.getAsLong() - highest.atMs;
            }
        }

        @Override
        public int getInstances() {
            synchronized (lock) {
                return (int) pushes.values().stream().filter(push -> isKnown(push, throttle)).count();
            }
        }
    }

    private final String properties;
    private final Object lock;
    private final LongSupplier clockMs;
    private final Map<Uuid, Push> pushes = new LinkedHashMap<>(); // the oldest push first
    private final Map<Throttle, ObjectName> beans = new EnumMap<>(Throttle.class);

    /** Properties are the client's part of an object name. */
    ThrottledClient(String properties, Object lock, LongSupplier clockMs) {
        this.properties = properties;
        this.lock = lock;
        this.clockMs = clockMs;
    }

    int instances() {
        return pushes.size();
    }

    int beans() {
        return beans.size();
    }

    void pushed(Uuid instance, Map<Throttle, Double> times, long lastsMs) {
        long now = clockMs.getAsLong();
        pushes.remove(instance);
        pushes.put(instance, new Push(times, now, now + lastsMs));
        for (Throttle throttle : times.keySet()) {
            beans.computeIfAbsent(throttle, key -> OwnBeans.register(
                    new Shown(key), Bean.class, "type=ClientThrottle,name=" + key.bean + properties));
        }
    }

    /** Drop the instance that has not pushed for the longest time. */
    void dropOldest() {
        Iterator<Uuid> oldest = pushes.keySet().iterator();
        oldest.next();
        oldest.remove();
    }

    /** Remove expired values, and MBeans without a known value. */
    void expire() {
        pushes.values().removeIf(push -> push.untilMs <= clockMs.getAsLong());
        beans.entrySet().removeIf(bean -> {
            boolean unknown = highest(bean.getKey()) == null;
            if (unknown) {
                OwnBeans.unregister(bean.getValue());
            }
            return unknown;
        });
    }

    void close() {
        pushes.clear();
        expire();
    }

    private boolean isKnown(Push push, Throttle throttle) {
        return push.times.containsKey(throttle) && clockMs.getAsLong() < push.untilMs;
    }

    private Push highest(Throttle throttle) {
        Push highest = null;
        for (Push push : pushes.values()) {
            if (isKnown(push, throttle)
                    && (highest == null || push.times.get(throttle) >= highest.times.get(throttle))) {
                highest = push;
            }
        }
        return highest;
    }
}
