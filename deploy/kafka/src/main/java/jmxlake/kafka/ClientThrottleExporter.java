package jmxlake.kafka;

import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;

/**
 * Requires Kafka 4.2. Its interface provides the push interval of each client.
 *
 * <p>Earlier versions of Kafka cannot load this class, so other classes do not refer to it.
 */
public final class ClientThrottleExporter extends ThrottleReporter implements ClientTelemetryExporterProvider {
    @Override
    public ClientTelemetryExporter clientTelemetryExporter() {
        start();
        return (context, payload) ->
                receive(context.authorizableRequestContext(), payload, context.pushIntervalMs());
    }
}
