package jmxlake.kafka;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.EnumMap;
import java.util.Map;

/**
 * Decoder of the throttle times in a payload of OTLP metrics, in protobuf's wire format.
 *
 * <p>Kafka's own classes for OTLP are internal and change between releases. A payload is untrusted: the time is
 * proportional to its length, the depth is fixed, and other metrics are skipped.
 *
 * <p>Fields: https://github.com/open-telemetry/opentelemetry-proto, metrics/v1/metrics.proto.
 */
final class TelemetryDecoder {
    /** Longest payload. Kafka's own limit, telemetry.max.bytes, is 1 MiB before decompression. */
    static final int MOST_BYTES = 8 << 20;

    /** A payload that violates the specification. */
    static final class MalformedException extends Exception {
        private static final long serialVersionUID = 1L;

        MalformedException(String why) {
            super(why, null, false, false); // a client can cause it at any rate: no stack trace
        }
    }

    private static final int VARINT = 0;
    private static final int FIXED64 = 1;
    private static final int BYTES = 2;
    private static final int FIXED32 = 5;

    // MetricsData.resource_metrics, ResourceMetrics.scope_metrics, ScopeMetrics.metrics
    private static final int[] TO_METRICS = {1, 2, 2};
    private static final int METRIC_NAME = 1;
    private static final int METRIC_GAUGE = 5;
    private static final int GAUGE_POINTS = 1;
    private static final int POINT_DOUBLE = 4;
    private static final int POINT_INT = 6;
    private static final int POINT_FLAGS = 8;
    private static final int NO_VALUE = 1;

    private final ByteBuffer data;
    private final Map<Throttle, Double> found = new EnumMap<>(Throttle.class);

    private TelemetryDecoder(ByteBuffer payload) {
        data = payload.slice().order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Return the throttle times of a payload (ms). A time that its client does not know, NaN, is left out. */
    static Map<Throttle, Double> decode(ByteBuffer payload) throws MalformedException {
        if (payload.remaining() > MOST_BYTES) {
            throw new MalformedException("the payload is longer than " + MOST_BYTES + " bytes");
        }
        TelemetryDecoder decoder = new TelemetryDecoder(payload);
        decoder.readMessages(0, decoder.data.limit());
        return decoder.found;
    }

    private void readMessages(int depth, int end) throws MalformedException {
        if (depth == TO_METRICS.length) {
            readMetric(end);
            return;
        }
        while (data.position() < end) {
            int tag = tag(end);
            if (field(tag) == TO_METRICS[depth]) {
                readMessages(depth + 1, message(tag, end));
            } else {
                skip(tag, end);
            }
        }
    }

    private void readMetric(int end) throws MalformedException {
        int start = data.position();
        Throttle throttle = null; // its name may follow its values
        while (data.position() < end) {
            int tag = tag(end);
            if (field(tag) == METRIC_NAME) {
                int last = message(tag, end);
                throttle = Throttle.of(data.duplicate().limit(last).slice());
                data.position(last);
            } else {
                skip(tag, end);
            }
        }
        if (throttle != null) {
            data.position(start);
            readValues(throttle, end);
        }
    }

    private void readValues(Throttle throttle, int end) throws MalformedException {
        boolean gauge = false;
        while (data.position() < end) {
            int tag = tag(end);
            if (field(tag) != METRIC_GAUGE) {
                skip(tag, end);
                continue;
            }
            gauge = true;
            int last = message(tag, end);
            while (data.position() < last) {
                int inner = tag(last);
                if (field(inner) == GAUGE_POINTS) {
                    readPoint(throttle, message(inner, last));
                } else {
                    skip(inner, last);
                }
            }
        }
        if (!gauge) {
            throw new MalformedException("a throttle time is not a gauge");
        }
    }

    private void readPoint(Throttle throttle, int end) throws MalformedException {
        double value = Double.NaN;
        long flags = 0;
        while (data.position() < end) {
            int tag = tag(end);
            if (tag == (POINT_DOUBLE << 3 | FIXED64)) {
                value = Double.longBitsToDouble(fixed64(end));
            } else if (tag == (POINT_INT << 3 | FIXED64)) {
                value = fixed64(end);
            } else if (tag == (POINT_FLAGS << 3 | VARINT)) {
                flags = varint(end);
            } else if (field(tag) == POINT_DOUBLE || field(tag) == POINT_INT || field(tag) == POINT_FLAGS) {
                throw new MalformedException("a field has the wrong type");
            } else {
                skip(tag, end);
            }
        }
        if (Double.isNaN(value) || (flags & NO_VALUE) != 0) {
            return;
        }
        if (value < 0 || Double.isInfinite(value)) {
            throw new MalformedException("a throttle time is negative or infinite");
        }
        found.merge(throttle, value, Math::max);
    }

    private static int field(int tag) {
        return tag >>> 3;
    }

    private int tag(int end) throws MalformedException {
        long tag = varint(end);
        if (tag >>> 32 != 0 || tag >>> 3 == 0) {
            throw new MalformedException("a field number is invalid");
        }
        return (int) tag;
    }

    /** Return the end of the message, or text, that follows its tag. */
    private int message(int tag, int end) throws MalformedException {
        if ((tag & 7) != BYTES) {
            throw new MalformedException("a field has the wrong type");
        }
        long length = varint(end);
        check(length, end);
        return data.position() + (int) length;
    }

    private void skip(int tag, int end) throws MalformedException {
        switch (tag & 7) {
            case VARINT:
                varint(end);
                break;
            case FIXED64:
                fixed64(end);
                break;
            case BYTES:
                data.position(message(tag, end));
                break;
            case FIXED32:
                check(4, end);
                data.position(data.position() + 4);
                break;
            default: // groups are not in this format
                throw new MalformedException("a field has an unknown type");
        }
    }

    private long fixed64(int end) throws MalformedException {
        check(8, end);
        return data.getLong();
    }

    private long varint(int end) throws MalformedException {
        long value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            check(1, end);
            byte next = data.get();
            value |= (long) (next & 0x7f) << shift;
            if (next >= 0) {
                return value;
            }
        }
        throw new MalformedException("a number is too long");
    }

    private void check(long length, int end) throws MalformedException {
        if (length < 0 || length > end - data.position()) {
            throw new MalformedException("the payload is truncated");
        }
    }
}
