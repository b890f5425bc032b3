package jmxlake.kafka;

import java.io.ByteArrayOutputStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Gauge;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Metric;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.NumberDataPoint;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ResourceMetrics;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ScopeMetrics;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Sum;

/** What deploy/kafka must do with telemetry, hostile or not; each public method is a case of its own. */
@SuppressWarnings("removal")
public class TelemetryCases {
    private static final MBeanServer BEANS = ManagementFactory.getPlatformMBeanServer();
    private static final String PRODUCE = "org.apache.kafka.producer.produce.throttle.time.";
    private static final String FETCH = "org.apache.kafka.consumer.fetch.manager.fetch.throttle.time.";
    private static final long INTERVAL_MS = 10_000;
    private static final long KEEP_MS = 25_000;

    private final AtomicLong now = new AtomicLong(1_000_000);
    private final ClientThrottle reporter = new ClientThrottle(now::get);
    private ClientTelemetryReceiver receiver;

    public static void main(String[] arguments) throws Exception {
        for (Method method : TelemetryCases.class.getMethods()) {
            if (method.getDeclaringClass() == TelemetryCases.class && !method.getName().equals("main")) {
                TelemetryCases one = new TelemetryCases();
                one.reporter.configure(Map.of(
                        "jmxlake.telemetry.interval.ms", String.valueOf(INTERVAL_MS),
                        "jmxlake.telemetry.keep.ms", String.valueOf(KEEP_MS), "broker.id", 4));
                one.receiver = one.reporter.clientReceiver();
                method.invoke(one);
                one.reporter.close();
                same(0, own("*").size());
                System.out.println(method.getName());
            }
        }
    }

    public void times_are_read_among_other_metrics() throws Exception {
        byte[] payload = otlp(gauge(PRODUCE + "avg", 1.5), gauge("org.apache.kafka.producer.batch.size.avg", 7),
                gauge(PRODUCE + "max", 12), gauge(PRODUCE + "max.of.another", 99));
        same(Map.of(Throttle.PRODUCE_AVG, 1.5, Throttle.PRODUCE_MAX, 12.0), decoded(payload));
        same(Map.of(Throttle.FETCH_MAX, 4.0), decoded(otlp(gauge(FETCH + "max", 4))));
        String share = "org.apache.kafka.consumer.share.fetch.manager.fetch.throttle.time.avg";
        same(Map.of(Throttle.FETCH_AVG, 3.0), decoded(otlp(gauge(share, 3))));
        same(Map.of(), decoded(new byte[0]));
    }

    public void any_order_and_integers_are_read() throws Exception {
        byte[] point = fixed64(POINT_INT, 41);
        byte[] name = text(1, PRODUCE + "max");
        byte[] values = message(5, message(1, point));
        byte[] unknown = joined(varint(99 << 3), varint(3), varint(98 << 3 | 5), new byte[4]);
        same(Map.of(Throttle.PRODUCE_MAX, 41.0), decoded(wrapped(joined(values, unknown, name))));
    }

    public void zero_is_zero_and_nan_is_unknown() throws Exception {
        same(Map.of(Throttle.PRODUCE_MAX, 0.0), decoded(otlp(gauge(PRODUCE + "max", 0),
                gauge(PRODUCE + "avg", Double.NaN))));
        NumberDataPoint absent = NumberDataPoint.newBuilder().setAsDouble(3).setFlags(1).build();
        same(Map.of(), decoded(otlp(metric(PRODUCE + "avg", absent))));
    }

    public void every_truncation_is_refused_or_has_less() throws Exception {
        byte[] payload = otlp(gauge(PRODUCE + "avg", 1.5), gauge(PRODUCE + "max", 12));
        int refused = 0;
        for (int length = 0; length < payload.length; length++) {
            try {
                same(true, decoded(Arrays.copyOf(payload, length)).isEmpty());
            } catch (TelemetryDecoder.MalformedException error) {
                refused++;
            }
        }
        same(payload.length - 1, refused); // all but the empty one
        for (int length = 0; length < payload.length; length++) {
            push("app", "c", Uuid.randomUuid(), Arrays.copyOf(payload, length), false);
        }
        same((long) payload.length, count("Pushes"));
        same(payload.length - 1L, count("Refused"));
        same(0, clients());
    }

    public void wrong_types_are_refused() throws Exception {
        byte[] name = text(1, PRODUCE + "max");
        Sum sum = Sum.newBuilder().addDataPoints(NumberDataPoint.newBuilder().setAsDouble(3)).build();
        for (byte[] payload : List.of(
                otlp(Metric.newBuilder().setName(PRODUCE + "max").setSum(sum).build()),
                otlp(Metric.newBuilder().setName(PRODUCE + "max").build()),
                otlp(gauge(PRODUCE + "max", -1)),
                otlp(gauge(PRODUCE + "max", Double.POSITIVE_INFINITY)),
                wrapped(joined(name, message(5, message(1, joined(varint(4 << 3), varint(7)))))),
                wrapped(joined(name, varint(5 << 3), varint(7))),
                wrapped(joined(varint(1 << 3), varint(7))),
                wrapped(joined(varint(77 << 3 | 3))), // a group
                joined(varint(1L << 3 | 2), varint(-1L)), // a length beyond any payload
                joined(varint(1L << 40)),
                new byte[] {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1})) {
            long before = count("Refused");
            push("app", "c", Uuid.randomUuid(), payload, false);
            same(before + 1, count("Refused"));
        }
        same(0, clients());
    }

    public void large_payloads_are_counted_and_kept_nowhere() throws Exception {
        Random random = new Random(7);
        byte[] noise = new byte[1 << 20];
        random.nextBytes(noise);
        ByteArrayOutputStream many = new ByteArrayOutputStream();
        for (int number = 0; number < 20_000; number++) {
            many.writeBytes(message(2, gauge("org.apache.kafka.consumer." + number, number).toByteArray()));
        }
        byte[] others = message(1, message(2, many.toByteArray()));
        push("app", "noise", Uuid.randomUuid(), noise, false);
        push("app", "zeros", Uuid.randomUuid(), new byte[1 << 20], false);
        push("app", "huge", Uuid.randomUuid(), new byte[TelemetryDecoder.MOST_BYTES + 1], false);
        same(3L, count("Refused"));
        push("app", "others", Uuid.randomUuid(), others, false);
        same(3L, count("Refused"));
        same(2L * (1 << 20) + TelemetryDecoder.MOST_BYTES + 1 + others.length, count("Bytes"));
        same(4L, count("Pushes"));
        same(0, clients());
    }

    public void damaged_payloads_never_throw() throws Exception {
        Random random = new Random(1);
        byte[] payload = otlp(gauge(PRODUCE + "avg", 1.5), gauge(FETCH + "max", 12), gauge(PRODUCE + "max", 3));
        for (int number = 0; number < 50_000; number++) {
            byte[] damaged = payload.clone();
            for (int changes = random.nextInt(4); changes >= 0; changes--) {
                damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
            }
            push("app", "damaged", Uuid.ZERO_UUID, damaged, false);
        }
        same(50_000L, count("Pushes"));
        same(true, count("Refused") > 5_000 && count("Refused") < 50_000);
    }

    public void client_ids_are_bounded_and_the_oldest_gives_way() throws Exception {
        byte[] payload = throttled(1, 2);
        for (int number = 0; number < 100_000; number++) {
            push("app", "client-" + number, Uuid.randomUuid(), payload, false);
        }
        same(ThrottledClients.MOST_BEANS, own("ClientThrottle").size());
        same(ThrottledClients.MOST_BEANS / 2, clients());
        same(100_000L - ThrottledClients.MOST_BEANS / 2, count("Evicted"));
        same(2.0, value("ProduceThrottleTimeMax", "app", "client-99999"));
        same(false, BEANS.isRegistered(bean("ProduceThrottleTimeMax", "app", "client-0")));
    }

    public void a_client_that_pushes_stays() throws Exception {
        for (int number = 0; number < 2_000; number++) {
            push("app", "client-" + number, Uuid.randomUuid(), throttled(1, 2), false);
            push("app", "steady", Uuid.ZERO_UUID, throttled(0, 0), false);
        }
        same(0.0, value("ProduceThrottleTimeMax", "app", "steady"));
    }

    public void instances_of_a_client_id_are_one_bean_and_bounded() throws Exception {
        push("app", "c", Uuid.randomUuid(), throttled(5, 100), false);
        now.addAndGet(300);
        push("app", "c", Uuid.randomUuid(), throttled(30, 40), false);
        push("other", "c", Uuid.randomUuid(), throttled(0, 0), false);
        now.addAndGet(50);
        same(100.0, value("ProduceThrottleTimeMax", "app", "c"));
        same(350L, BEANS.getAttribute(bean("ProduceThrottleTimeMax", "app", "c"), "AgeMs"));
        same(30.0, value("ProduceThrottleTimeAvg", "app", "c"));
        same(50L, BEANS.getAttribute(bean("ProduceThrottleTimeAvg", "app", "c"), "AgeMs"));
        same(2, BEANS.getAttribute(bean("ProduceThrottleTimeAvg", "app", "c"), "Instances"));
        same(2, clients());
        for (int number = 0; number < ThrottledClients.MOST_INSTANCES; number++) {
            push("app", "c", Uuid.randomUuid(), throttled(1, 2), false);
        }
        same(2.0, value("ProduceThrottleTimeMax", "app", "c"));
        same(ThrottledClients.MOST_INSTANCES, BEANS.getAttribute(bean("ProduceThrottleTimeMax", "app", "c"), "Instances"));
        same(false, BEANS.isRegistered(bean("ProduceThrottleTimeMax", "other", "c"))); // it was the oldest
    }

    public void a_value_is_unknown_after_three_intervals() throws Exception {
        push("app", "c", Uuid.ZERO_UUID, throttled(1, 2), false);
        now.addAndGet(3 * INTERVAL_MS - 1);
        reporter.expire();
        same(2.0, value("ProduceThrottleTimeMax", "app", "c"));
        now.addAndGet(1);
        reporter.expire();
        same(0, own("ClientThrottle").size());
        same(0, clients());
    }

    public void an_ended_client_stays_for_the_minimum_time() throws Exception {
        push("app", "c", Uuid.ZERO_UUID, throttled(1, 2), true);
        now.addAndGet(KEEP_MS - 1);
        reporter.expire();
        same(2.0, value("ProduceThrottleTimeMax", "app", "c"));
        now.addAndGet(1);
        reporter.expire();
        same(0, clients());
    }

    public void a_new_push_replaces_the_last() throws Exception {
        push("app", "c", Uuid.ZERO_UUID, throttled(1, 2), false);
        push("app", "c", Uuid.ZERO_UUID, throttled(0, 0), false);
        same(0.0, value("ProduceThrottleTimeMax", "app", "c"));
        push("app", "c", Uuid.ZERO_UUID, otlp(gauge(PRODUCE + "max", 6)), false);
        reporter.expire();
        same(6.0, value("ProduceThrottleTimeMax", "app", "c"));
        same(false, BEANS.isRegistered(bean("ProduceThrottleTimeAvg", "app", "c")));
    }

    public void hostile_names_are_quoted_or_refused() throws Exception {
        for (String name : List.of("a,b=c:d", "\"", "*?\\", "line\nbreak", "\ud83d", "\ud83d\ude00", " ", "\0")) {
            push(name, name, Uuid.randomUuid(), throttled(1, 2), false);
            same(2.0, value("ProduceThrottleTimeMax", name, name));
        }
        same(0L, count("Refused"));
        push("app", null, Uuid.randomUuid(), throttled(1, 2), false);
        same(2.0, value("ProduceThrottleTimeMax", "app", ""));
        push("app", "c".repeat(ThrottleReporter.LONGEST_NAME + 1), Uuid.randomUuid(), throttled(1, 2), false);
        push("u".repeat(ThrottleReporter.LONGEST_NAME + 1), "c", Uuid.randomUuid(), throttled(1, 2), false);
        same(2L, count("Refused"));
        same(9, clients());
    }

    public void clients_of_brokers_are_left_out() throws Exception {
        push("app", "__remote_log_metadata_client_1_producer", Uuid.randomUuid(), throttled(1, 2), false);
        same(0, clients());
        same(1L, count("Pushes"));
        same(0L, count("Refused"));
    }

    public void nothing_is_thrown_into_the_broker() throws Exception {
        reporter.receive(context("app", "c"), new Payload(Uuid.ZERO_UUID, null, false), INTERVAL_MS);
        reporter.receive(null, new Payload(Uuid.ZERO_UUID, throttled(1, 2), false), INTERVAL_MS);
        same(2L, count("Refused"));
    }

    public void a_closed_reporter_shows_nothing() throws Exception {
        reporter.close();
        push("app", "c", Uuid.randomUuid(), throttled(1, 2), false);
        same(0, own("*").size());
    }

    public void wrong_settings_are_refused() {
        for (String name : List.of("interval", "keep")) {
            try {
                new ClientThrottle().configure(Map.of("jmxlake.telemetry." + name + ".ms", "0"));
            } catch (ConfigException error) {
                same(true, error.getMessage().contains(name));
                continue;
            }
            throw new AssertionError("0 was accepted");
        }
    }

    public void a_missing_default_reporter_is_noticed() {
        same(false, ThrottleReporter.hasDefaultReporter());
        Metrics metrics = new Metrics(new MetricConfig(), List.of(new JmxReporter()), Time.SYSTEM,
                new KafkaMetricsContext("kafka.server"));
        same(true, ThrottleReporter.hasDefaultReporter());
        metrics.close();
    }

    private static final int POINT_INT = 6;

    private static final class Payload implements ClientTelemetryPayload {
        private final Uuid instance;
        private final byte[] data;
        private final boolean terminating;

        Payload(Uuid instance, byte[] data, boolean terminating) {
            this.instance = instance;
            this.data = data;
            this.terminating = terminating;
        }

        @Override
        public Uuid clientInstanceId() {
            return instance;
        }

        @Override
        public boolean isTerminating() {
            return terminating;
        }

        @Override
        public String contentType() {
            return "OTLP";
        }

        @Override
        public ByteBuffer data() {
            return ByteBuffer.wrap(data); // null throws, as a faulty broker would
        }
    }

    private void push(String user, String clientId, Uuid instance, byte[] payload, boolean terminating) {
        receiver.exportMetrics(context(user, clientId), new Payload(instance, payload, terminating));
    }

    private static AuthorizableRequestContext context(String user, String clientId) {
        return new AuthorizableRequestContext() {
            @Override
            public String listenerName() {
                return "PLAINTEXT";
            }

            @Override
            public SecurityProtocol securityProtocol() {
                return SecurityProtocol.PLAINTEXT;
            }

            @Override
            public KafkaPrincipal principal() {
                return new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user);
            }

            @Override
            public InetAddress clientAddress() {
                return InetAddress.getLoopbackAddress();
            }

            @Override
            public int requestType() {
                return 72;
            }

            @Override
            public int requestVersion() {
                return 0;
            }

            @Override
            public String clientId() {
                return clientId;
            }

            @Override
            public int correlationId() {
                return 1;
            }
        };
    }

    private static Map<Throttle, Double> decoded(byte[] payload) throws TelemetryDecoder.MalformedException {
        Map<Throttle, Double> times = new EnumMap<>(Throttle.class);
        times.putAll(TelemetryDecoder.decode(ByteBuffer.wrap(payload)));
        return times;
    }

    private static byte[] throttled(double avg, double max) {
        return otlp(gauge(PRODUCE + "avg", avg), gauge(PRODUCE + "max", max));
    }

    private static Metric gauge(String name, double value) {
        return metric(name, NumberDataPoint.newBuilder().setTimeUnixNano(5).setAsDouble(value).build());
    }

    private static Metric metric(String name, NumberDataPoint point) {
        return Metric.newBuilder().setName(name).setGauge(Gauge.newBuilder().addDataPoints(point)).build();
    }

    private static byte[] otlp(Metric... metrics) {
        ScopeMetrics.Builder scope = ScopeMetrics.newBuilder();
        for (Metric metric : metrics) {
            scope.addMetrics(metric);
        }
        return MetricsData.newBuilder()
                .addResourceMetrics(ResourceMetrics.newBuilder().addScopeMetrics(scope)).build().toByteArray();
    }

    private static byte[] wrapped(byte[] metric) {
        return message(1, message(2, message(2, metric)));
    }

    private static byte[] message(int field, byte[] content) {
        return joined(varint((long) field << 3 | 2), varint(content.length), content);
    }

    private static byte[] text(int field, String text) {
        return message(field, text.getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] fixed64(int field, long value) {
        byte[] bytes = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array();
        return joined(varint((long) field << 3 | 1), bytes);
    }

    private static byte[] varint(long value) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        long rest = value;
        while ((rest & ~0x7fL) != 0) {
            bytes.write((int) (rest & 0x7f | 0x80));
            rest >>>= 7;
        }
        bytes.write((int) rest);
        return bytes.toByteArray();
    }

    private static byte[] joined(byte[]... parts) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            bytes.writeBytes(part);
        }
        return bytes.toByteArray();
    }

    private static Set<ObjectName> own(String type) throws Exception {
        return BEANS.queryNames(new ObjectName("jmxlake.kafka:type=" + type + ",*"), null);
    }

    private static ObjectName bean(String name, String user, String clientId) throws Exception {
        return new ObjectName("jmxlake.kafka:type=ClientThrottle,name=" + name + ",user=" + ObjectName.quote(user)
                + ",client-id=" + ObjectName.quote(clientId));
    }

    private static double value(String name, String user, String clientId) throws Exception {
        return (double) BEANS.getAttribute(bean(name, user, clientId), "Value");
    }

    private static long count(String name) throws Exception {
        return (long) BEANS.getAttribute(new ObjectName("jmxlake.kafka:type=ClientTelemetry,name=" + name), "Count");
    }

    private static int clients() throws Exception {
        return (int) BEANS.getAttribute(new ObjectName("jmxlake.kafka:type=ClientTelemetry,name=Clients"), "Value");
    }

    private static void same(Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new AssertionError(found + " instead of " + expected);
        }
    }
}
