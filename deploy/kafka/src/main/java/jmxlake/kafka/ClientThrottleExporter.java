package jmxlake.kafka;

import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;

/**
 * The interface of Kafka 4.2 and later, which provides the push interval of each client.
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
