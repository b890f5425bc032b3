import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A producer and a consumer in one JVM, both faster than their quotas, and a producer that does
 * nothing and whose name is half a surrogate pair. Arguments: bootstrap servers, topic. The names
 * of both are in the environment: CLIENTS_PRODUCER and CLIENTS_CONSUMER.
 */
public class ThrottledClients {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(client(arguments[0], System.getenv("CLIENTS_PRODUCER")));
        new KafkaProducer<byte[], byte[]>(client(arguments[0], "half\ud83d"));
        Properties reading = client(arguments[0], System.getenv("CLIENTS_CONSUMER"));
        reading.put("group.id", "throttled");
        reading.put("auto.offset.reset", "earliest");
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(reading);
        consumer.subscribe(List.of(topic));
        Thread writing = new Thread(() -> {
            while (true) {
                producer.send(new ProducerRecord<>(topic, new byte[10_000]));
            }
        });
        writing.setDaemon(true);
        writing.start();
        while (true) {
            consumer.poll(Duration.ofMillis(100));
        }
    }

    private static Properties client(String bootstrap, String name) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", name);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("buffer.memory", "1000000");
        settings.put("linger.ms", "0");
        return settings;
    }
}
