import java.util.Map;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;

/** One quota for all producers of a broker, with a tag of its own, as Strimzi's plugin has it. */
public class TaggedQuota implements ClientQuotaCallback {
    @Override
    public Map<String, String> quotaMetricTags(ClientQuotaType type, KafkaPrincipal who, String clientId) {
        return Map.of("quota.type", type.name());
    }

    @Override
    public Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
        return type == ClientQuotaType.PRODUCE ? 20_000.0 : null;
    }

    @Override
    public void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double value) {}

    @Override
    public void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {}

    @Override
    public boolean quotaResetRequired(ClientQuotaType type) {
        return false;
    }

    @Override
    public boolean updateClusterMetadata(Cluster cluster) {
        return false;
    }

    @Override
    public void configure(Map<String, ?> settings) {}

    @Override
    public void close() {}
}
