package jmxlake.kafka;

import static jmxlake.kafka.IndexCounts.Counter;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/** An index as the plugin gives it; the time of its calls, its bytes and errors are counted. */
final class CountedStream extends FilterInputStream {
    private interface Call {
        int run() throws IOException;
    }

    private final IndexCounts counts;
    private final boolean awaited;

    CountedStream(InputStream index, IndexCounts counts, boolean awaited) {
        super(index);
        this.counts = counts;
        this.awaited = awaited;
    }

    @Override
    public int read() throws IOException {
        int value = counted(in::read);
        counts.add(Counter.Bytes, value < 0 ? 0 : 1);
        return value;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
        int number = counted(() -> in.read(into, offset, length));
        counts.add(Counter.Bytes, Math.max(0, number));
        return number;
    }

    @Override
    public void close() throws IOException {
        counted(() -> {
            in.close();
            return 0;
        });
    }

    private int counted(Call call) throws IOException {
        long began = System.nanoTime();
        try {
            return call.run();
        } catch (IOException | RuntimeException error) {
            counts.add(Counter.Errors, 1);
            throw error;
        } finally {
            long nanos = System.nanoTime() - began;
            counts.add(Counter.RequestNanos, nanos);
            counts.add(Counter.WaitNanos, awaited ? nanos : 0);
        }
    }
}
