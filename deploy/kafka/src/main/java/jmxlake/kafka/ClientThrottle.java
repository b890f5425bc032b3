package jmxlake.kafka;

import java.util.function.LongSupplier;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/**
 * Requires Kafka 3.7. Its interface is deprecated since 4.2, and does not provide the push interval.
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
