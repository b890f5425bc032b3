import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A client JVM: its beans are there from the start, though it never finds a broker. */
public final class Producer {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", "127.0.0.1:1",
            "client.id", "billing",
            "reconnect.backoff.ms", "60000",
            "reconnect.backoff.max.ms", "60000");
        try (var producer = new KafkaProducer<>(
                settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            Thread.sleep(Long.MAX_VALUE);
        }
    }
}
