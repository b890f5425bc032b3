package jmxlake.kafka;

import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/** A plugin's own method fetchIndexes, found by its signature; {@link IndexesAtOnce} documents it. */
final class IndexesByShape {
    static final String SIGNATURE =
            "public Map<IndexType, InputStream> fetchIndexes(RemoteLogSegmentMetadata, Set<IndexType>)";

    private final RemoteStorageManager plugin;
    private final Method method;

    private IndexesByShape(RemoteStorageManager plugin, Method method) {
        this.plugin = plugin;
        this.method = method;
        method.setAccessible(true); // the class that declares it does not have to be public
    }

    /** Return the method of a plugin. A default of Kafka's own interface saves nothing and does not count. */
    static Optional<IndexesByShape> of(RemoteStorageManager plugin) {
        try {
            Method method = plugin.getClass().getMethod("fetchIndexes", RemoteLogSegmentMetadata.class, Set.class);
            boolean fits = Map.class.isAssignableFrom(method.getReturnType())
                    && !Modifier.isStatic(method.getModifiers())
                    && method.getDeclaringClass() != RemoteStorageManager.class;
            return fits ? Optional.of(new IndexesByShape(plugin, method)) : Optional.empty();
        } catch (NoSuchMethodException none) {
            return Optional.empty();
        }
    }

    /**
     * Call the method; its exceptions pass unchanged.
     *
     * @return an answer whose types are not yet checked
     * @throws RemoteStorageException also if the answer is null, or the exception is of another checked type
     */
    Map<?, ?> fetch(RemoteLogSegmentMetadata segment, Set<IndexType> types) throws RemoteStorageException {
        try {
            Map<?, ?> answer = (Map<?, ?>) method.invoke(plugin, segment, Collections.unmodifiableSet(types));
            if (answer == null) {
                throw new RemoteStorageException(about("returned null"));
            }
            return answer;
        } catch (InvocationTargetException error) {
            Throwable cause = error.getCause();
            if (cause instanceof RemoteStorageException) {
                throw (RemoteStorageException) cause;
            }
            if (cause instanceof RuntimeException) {
                throw (RuntimeException) cause;
            }
            if (cause instanceof Error) {
                throw (Error) cause;
            }
            throw new RemoteStorageException(about("failed: " + cause), cause);
        } catch (IllegalAccessException error) {
            throw new RemoteStorageException(about("cannot be called"), error);
        }
    }

    /** Return the stream of one type in an answer; null: the segment has no such index. */
    InputStream stream(Map<?, ?> answer, IndexType type) throws RemoteStorageException {
        Object stream = answer.get(type);
        if (stream instanceof InputStream || !answer.containsKey(type)) {
            return (InputStream) stream;
        }
        throw new RemoteStorageException(about("returned " + (stream == null ? "null" : "no stream") + " for " + type));
    }

    private String about(String problem) {
        return plugin.getClass().getName() + ".fetchIndexes " + problem;
    }
}
