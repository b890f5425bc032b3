package jmxlake.kafka;

import java.util.function.LongSupplier;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/**
 * The interface of Kafka 3.7 to 4.x, deprecated since 4.2. It does not provide the push interval.
 *
 * <p>README.md describes the MBeans.
 */
@SuppressWarnings("removal")
public final class ClientThrottle extends ThrottleReporter implements ClientTelemetry {
    /** Constructor for Kafka. */
    public ClientThrottle() {
    }

    /** With another clock, for tests. */
    ClientThrottle(LongSupplier clockMs) {
        super(clockMs);
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        start();
        return (context, payload) -> receive(context, payload, intervalMs());
    }
}
