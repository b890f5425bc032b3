package jmxlake.kafka;

import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;

/**
 * The interface of Kafka 4.2 and later, which tells the push interval of each client.
 *
 * <p>An earlier Kafka cannot load this class, and no other class names it.
 */
public final class ClientThrottleExporter extends ThrottleReporter implements ClientTelemetryExporterProvider {
    @Override
    public ClientTelemetryExporter clientTelemetryExporter() {
        start();
        return (context, payload) ->
                receive(context.authorizableRequestContext(), payload, context.pushIntervalMs());
    }
}
