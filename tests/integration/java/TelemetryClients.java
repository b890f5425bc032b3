import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Producers and consumers with some traffic, which then only push telemetry until SIGTERM.
 *
 * <p>Arguments: bootstrap servers, topic with records, kilobytes of each client, and "produce:CLIENT" or "fetch:CLIENT" for each.
 * Output: "CLIENT NAME VALUE" for every new value of a throttle time, by the client's own metrics(), and
 * "quiet CLIENT" when its traffic has ended; its values follow once more.
 */
public class TelemetryClients {
    private static final Map<String, Map<String, Metric>> times = new ConcurrentHashMap<>();
    private static final Map<String, Object> printed = new HashMap<>();
    private static volatile boolean ended;
    private static String bootstrap;
    private static TopicPartition partition;
    private static int bytes;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        partition = new TopicPartition(arguments[1], 0);
        bytes = 1_000 * Integer.parseInt(arguments[2]);
        List<Thread> clients = new ArrayList<>();
        for (String client : List.of(arguments).subList(3, arguments.length)) {
            String[] parts = client.split(":", 2);
            clients.add(new Thread(() -> {
                if (parts[0].equals("produce")) {
                    produce(parts[1]);
                } else {
                    fetch(parts[1]);
                }
            }));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ended = true;
            for (Thread client : clients) {
                try {
                    client.join(60_000);
                } catch (InterruptedException error) {
                    return;
                }
            }
            print();
        }));
        clients.forEach(Thread::start);
        while (true) {
            print();
            Thread.sleep(5);
        }
    }

    private static void produce(String name) {
        Properties settings = settings(name);
        settings.put("buffer.memory", "200000");
        settings.put("linger.ms", "0");
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            watch(name, producer.metrics());
            for (int sent = 0; !ended && sent < bytes; sent += 5_000) {
                producer.send(new ProducerRecord<>(partition.topic(), new byte[5_000]));
                pause(20);
            }
            producer.flush();
            quiet(name);
            while (!ended) {
                pause(20);
            }
        }
    }

    private static void fetch(String name) {
        Properties settings = settings(name);
        settings.put("max.partition.fetch.bytes", "200000");
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            watch(name, consumer.metrics());
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            for (int read = 0; !ended && read < bytes; ) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    read += record.serializedValueSize();
                }
            }
            consumer.pause(List.of(partition));
            quiet(name);
            while (!ended) {
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }

    private static Properties settings(String name) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", name);
        // Values of the whole run: without traffic they stay, so that two readings can be compared.
        settings.put("metrics.sample.window.ms", "600000");
        return settings;
    }

    private static void watch(String name, Map<MetricName, ? extends Metric> metrics) {
        Map<String, Metric> own = new ConcurrentHashMap<>();
        metrics.forEach((key, metric) -> {
            if (key.name().matches("(produce|fetch)-throttle-time-(avg|max)")) {
                own.put(key.name(), metric);
            }
        });
        times.put(name, own);
    }

    private static synchronized void quiet(String name) {
        System.out.println("quiet " + name);
        printed.keySet().removeIf(key -> key.startsWith(name + " "));
    }

    private static synchronized void print() {
        times.forEach((client, own) -> own.forEach((name, metric) -> {
            Object value = metric.metricValue();
            if (!value.equals(printed.put(client + " " + name, value))) {
                System.out.println(client + " " + name + " " + value);
            }
        }));
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
