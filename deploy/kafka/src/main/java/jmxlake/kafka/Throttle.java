package jmxlake.kafka;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A throttle time that clients measure themselves and push (KIP-714). */
enum Throttle {
    PRODUCE_MAX("ProduceThrottleTimeMax", "producer.produce.throttle.time.max"),
    PRODUCE_AVG("ProduceThrottleTimeAvg", "producer.produce.throttle.time.avg"),
    FETCH_MAX("FetchThrottleTimeMax", "consumer.fetch.manager.fetch.throttle.time.max",
            "consumer.share.fetch.manager.fetch.throttle.time.max"),
    FETCH_AVG("FetchThrottleTimeAvg", "consumer.fetch.manager.fetch.throttle.time.avg",
            "consumer.share.fetch.manager.fetch.throttle.time.avg");

    private static final Throttle[] ALL = values();

    /** Name of its bean. */
    final String bean;
    private final ByteBuffer[] metrics;

    Throttle(String bean, String... metrics) {
        this.bean = bean;
        this.metrics = new ByteBuffer[metrics.length];
        for (int i = 0; i < metrics.length; i++) {
            this.metrics[i] = ByteBuffer.wrap(("org.apache.kafka." + metrics[i]).getBytes(StandardCharsets.UTF_8));
        }
    }

    /** Return the throttle time of a metric's name in UTF-8. Null: the metric is another one. */
    static Throttle of(ByteBuffer name) {
        for (Throttle throttle : ALL) {
            for (ByteBuffer metric : throttle.metrics) {
                if (metric.equals(name)) {
                    return throttle;
                }
            }
        }
        return null;
    }
}
