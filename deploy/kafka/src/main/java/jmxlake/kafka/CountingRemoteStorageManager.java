package jmxlake.kafka;

import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.CaseInsensitiveValidString;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * Wraps a plugin, forwards all calls, and counts the index requests of the broker.
 *
 * <p>Other settings are forwarded to the plugin unchanged. README.md describes the MBeans.
 */
public final class CountingRemoteStorageManager implements RemoteStorageManager {
    private static final String PLUGIN = "wrapped.class.name";
    private static final String AT_ONCE = "fetch.indexes.at.once";
    private static final String BYTES = "fetch.indexes.at.once.bytes";
    private static final ConfigDef SETTINGS = new ConfigDef()
            .define(PLUGIN, Type.CLASS, Importance.HIGH, "The plugin's class.")
            .define(AT_ONCE, Type.STRING, "false", CaseInsensitiveValidString.in("false", "true", "sets", "all"),
                    Importance.LOW, "Experimental (KIP-1002): fetch several indexes of a segment at once.")
            .define(BYTES, Type.LONG, 64L << 20, Range.atLeast(1), Importance.LOW, "Maximum memory (bytes).");

    private RemoteStorageManager plugin;
    private IndexFetches fetches;
    private FetchWay way = (segment, type) -> fetches.request(segment, type, true); // one by one

    @Override
    public void configure(Map<String, ?> settings) {
        Map<String, Object> own = SETTINGS.parse(settings);
        Map<String, Object> rest = new HashMap<>(settings);
        rest.keySet().removeAll(own.keySet());
        // Its class comes from remote.log.storage.manager.class.path: Kafka has set the context to that.
        plugin = Utils.newInstance((Class<?>) own.get(PLUGIN), RemoteStorageManager.class);
        fetches = new IndexFetches(plugin);
        String atOnce = ((String) own.get(AT_ONCE)).toLowerCase(Locale.ROOT);
        if (!atOnce.equals("false")) {
            way = wayOf(atOnce, (long) own.get(BYTES));
        }
        plugin.configure(rest);
    }

    private FetchWay wayOf(String atOnce, long bound) {
        Optional<IndexesByShape> shape = IndexesByShape.of(plugin);
        if (shape.isPresent()) {
            return new FetchesTogether(fetches, shape.get(), atOnce.equals("all"), bound);
        }
        if (atOnce.equals("true")) {
            return new FetchesAhead(fetches, bound);
        }
        throw new ConfigException(AT_ONCE, atOnce, plugin.getClass().getName() + " does not have the method "
                + IndexesByShape.SIGNATURE + ". Set true or false.");
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        return fetches.awaited(type, () -> way.fetch(segment, type));
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        try {
            plugin.deleteLogSegmentData(segment);
        } finally {
            way.forget(segment.remoteLogSegmentId().id());
        }
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        return plugin.copyLogSegmentData(segment, data);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return plugin.fetchLogSegment(segment, start);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        return plugin.fetchLogSegment(segment, start, end);
    }

    /** Bytes of indexes that were fetched ahead; for tests. */
    long bytesAhead() {
        return way.used();
    }

    @Override
    public void close() throws IOException {
        if (fetches != null) {
            fetches.close();
        }
        way.close();
        if (plugin != null) {
            plugin.close();
        }
    }
}
