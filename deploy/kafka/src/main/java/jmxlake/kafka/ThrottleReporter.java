package jmxlake.kafka;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import javax.management.JMException;
import javax.management.ObjectName;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * MBeans of the throttle times that clients measure themselves and push to this broker (KIP-714, KIP-13).
 *
 * <p>Requires Kafka 3.7, which calls it in request threads. It does not throw exceptions there and does not log pushes.
 */
abstract class ThrottleReporter implements MetricsReporter {
    /** A counter since the broker started. */
    public interface Counter {
        long getCount();
    }

    /** A current value. */
    public interface Gauge {
        int getValue();
    }

    /** Intervals after which a value of a client that no longer pushes is unknown. */
    static final int INTERVALS = 3;
    /** Longest user or client ID, as in the lake. */
    static final int LONGEST_NAME = 1024;

    private static final Logger LOG = LoggerFactory.getLogger(ThrottleReporter.class);
    private static final String INTERVAL = "jmxlake.telemetry.interval.ms";
    private static final String KEEP = "jmxlake.telemetry.keep.ms";
    private static final ConfigDef SETTINGS = new ConfigDef()
            .define(INTERVAL, Type.LONG, 30_000L, Range.atLeast(1), Importance.LOW,
                    "Push interval of clients, if Kafka does not provide it.")
            .define(KEEP, Type.LONG, 60_000L, Range.atLeast(1), Importance.MEDIUM,
                    "Lifetime of the last values of a client that has stopped.");
    // Clients of the broker's own manager of remote log metadata.
    private static final String OF_BROKERS = "__remote_log_metadata_client";
    private static final long CHECK_SECONDS = 15;

    private final LongAdder pushes = new LongAdder();
    private final LongAdder bytes = new LongAdder();
    private final LongAdder refused = new LongAdder();
    private final LongAdder evicted = new LongAdder();
    private final ThrottledClients clients;
    private final List<ObjectName> beans = new ArrayList<>();
    private ScheduledExecutorService thread;
    private long intervalMs;
    private long keepMs;

    ThrottleReporter(LongSupplier clockMs) {
        clients = new ThrottledClients(clockMs);
    }

    ThrottleReporter() {
        this(() -> System.nanoTime() / 1_000_000);
    }

    @Override
    public final void configure(Map<String, ?> settings) {
        Map<String, Object> own = SETTINGS.parse(settings);
        intervalMs = (long) own.get(INTERVAL);
        keepMs = (long) own.get(KEEP);
    }

    /** Push interval that applies if Kafka does not provide it (ms). */
    final long intervalMs() {
        return intervalMs;
    }

    /** Register the MBeans. A broker calls it, a controller does not. */
    final synchronized void start() {
        if (thread != null) {
            return;
        }
        beans.add(counter("Pushes", pushes));
        beans.add(counter("Bytes", bytes));
        beans.add(counter("Refused", refused));
        beans.add(counter("Evicted", evicted));
        beans.add(OwnBeans.register((Gauge) clients::size, Gauge.class, "type=ClientTelemetry,name=Clients"));
        thread = Executors.newSingleThreadScheduledExecutor(run -> {
            Thread made = new Thread(run, "jmxlake-client-throttle");
            made.setDaemon(true);
            return made;
        });
        thread.scheduleWithFixedDelay(this::expire, 1, 1, TimeUnit.SECONDS);
        // Kafka makes the reporters one after another, so the default one may still be missing now.
        thread.schedule(this::checkDefaultReporter, CHECK_SECONDS, TimeUnit.SECONDS);
    }

    /** Record a push, or count it as refused if it is invalid. */
    final void receive(AuthorizableRequestContext context, ClientTelemetryPayload payload, long pushIntervalMs) {
        pushes.increment();
        try {
            ByteBuffer data = payload.data();
            bytes.add(data.remaining());
            String user = context.principal().getName();
            String clientId = context.clientId() == null ? "" : context.clientId();
            if (clientId.startsWith(OF_BROKERS)) {
                return;
            }
            if (user.length() > LONGEST_NAME || clientId.length() > LONGEST_NAME) {
                refused.increment();
                return;
            }
            Map<Throttle, Double> times = TelemetryDecoder.decode(data);
            if (!times.isEmpty()) {
                long lastsMs = payload.isTerminating() ? keepMs : INTERVALS * pushIntervalMs;
                evicted.add(clients.pushed(user, clientId, payload.clientInstanceId(), times, lastsMs));
            }
        } catch (TelemetryDecoder.MalformedException | RuntimeException error) {
            refused.increment();
        }
    }

    /** Remove expired values. */
    final void expire() {
        try {
            clients.expire();
        } catch (RuntimeException error) { // an exception would end the schedule
            LOG.warn("Cannot remove MBeans of clients that no longer push", error);
        }
    }

    @Override
    public final synchronized void close() {
        if (thread != null) {
            thread.shutdownNow();
            thread = null;
            beans.forEach(OwnBeans::unregister);
            beans.clear();
            clients.close();
        }
    }

    @Override
    public final void init(List<KafkaMetric> metrics) {
    }

    @Override
    public final void metricChange(KafkaMetric metric) {
    }

    @Override
    public final void metricRemoval(KafkaMetric metric) {
    }

    /** Return true if the default reporter has registered MBeans of the broker's metrics. */
    static boolean hasDefaultReporter() {
        try {
            return OwnBeans.SERVER.queryMBeans(new ObjectName("kafka.server:*"), null).stream()
                    .anyMatch(bean -> bean.getClassName().startsWith(JmxReporter.class.getName()));
        } catch (JMException error) {
            throw new KafkaException("Cannot list the broker's MBeans", error);
        }
    }

    private void checkDefaultReporter() {
        if (!hasDefaultReporter()) {
            LOG.error("metric.reporters does not contain {}: the MBeans of quotas and of other metrics of this"
                    + " broker are missing. Set metric.reporters={},{}", JmxReporter.class.getName(),
                    JmxReporter.class.getName(), getClass().getName());
        }
    }

    private static ObjectName counter(String name, LongAdder count) {
        return OwnBeans.register((Counter) count::sum, Counter.class, "type=ClientTelemetry,name=" + name);
    }
}
