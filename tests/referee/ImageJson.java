import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.image.ConfigurationsImage;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;

/** An image of the metadata as rows of the tables that tell of it, in order of their keys. */
final class ImageJson {
    private ImageJson() {
    }

    static Map<String, Object> of(MetadataImage image) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("topics", topics(image));
        json.put("partitions", partitions(image));
        json.put("configs", configs(image.configs()));
        json.put("brokers", image.cluster().brokers().values().stream()
            .sorted(Comparator.comparing(BrokerRegistration::id)).map(ImageJson::broker).toList());
        json.put("features", features(image));
        json.put("entries", EntryJson.of(image));
        return json;
    }

    private static List<Object> topics(MetadataImage image) {
        List<Object> topics = new ArrayList<>();
        sorted(image).forEach(
            topic -> topics.add(Map.of("topic", topic.name(), "topic_id", topic.id().toString())));
        return topics;
    }

    private static List<Object> partitions(MetadataImage image) {
        List<Object> partitions = new ArrayList<>();
        for (TopicImage topic : sorted(image)) {
            new TreeMap<>(topic.partitions()).forEach((number, partition) ->
                partitions.add(partition(topic, number, partition)));
        }
        return partitions;
    }

    private static List<TopicImage> sorted(MetadataImage image) {
        return image.topics().topicsByName().values().stream()
            .sorted(Comparator.comparing(TopicImage::name)).toList();
    }

    private static Map<String, Object> partition(
            TopicImage topic, int number, PartitionRegistration partition) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("topic", topic.name());
        json.put("topic_id", topic.id().toString());
        json.put("partition", number);
        json.put("leader", partition.leader);
        json.put("leader_epoch", partition.leaderEpoch);
        json.put("partition_epoch", partition.partitionEpoch);
        json.put("leader_recovery_state", partition.leaderRecoveryState.toString().toLowerCase());
        json.put("replicas", partition.replicas);
        json.put("isr", partition.isr);
        json.put("elr", partition.elr);
        json.put("last_known_elr", partition.lastKnownElr);
        json.put("removing_replicas", partition.removingReplicas);
        json.put("adding_replicas", partition.addingReplicas);
        json.put("directories", texts(List.of(partition.directories)));
        return json;
    }

    private static List<Object> configs(ConfigurationsImage configs) {
        Map<String, Object> rows = new TreeMap<>();
        configs.resourceData().forEach((resource, image) -> image.data().forEach((name, value) -> {
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("resource_type", resource.type().toString().toLowerCase());
            json.put("resource_name", resource.name());
            json.put("name", name);
            json.put("value", ConfigTypes.isShown(resource, name) ? value : Password.HIDDEN);
            rows.put(resource.type() + "\0" + resource.name() + "\0" + name, json);
        }));
        return new ArrayList<>(rows.values());
    }

    private static Map<String, Object> broker(BrokerRegistration broker) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("node_id", broker.id());
        json.put("broker_epoch", broker.epoch());
        json.put("incarnation_id", broker.incarnationId().toString());
        json.put("rack", broker.rack().orElse(null));
        json.put("is_fenced", broker.fenced());
        json.put("in_controlled_shutdown", broker.inControlledShutdown());
        json.put("log_dirs", texts(broker.directories()));
        json.put("cordoned_log_dirs", texts(broker.cordonedDirectories()));
        json.put("endpoints", new TreeMap<>(broker.listeners()).entrySet().stream()
            .map(entry -> Map.of(
                "name", entry.getKey(),
                "host", entry.getValue().host(),
                "port", entry.getValue().port(),
                "security_protocol", entry.getValue().securityProtocol().id))
            .toList());
        json.put("features", new TreeMap<>(broker.supportedFeatures()).entrySet().stream()
            .map(entry -> Map.of(
                "name", entry.getKey(),
                "min_level", entry.getValue().min(),
                "max_level", entry.getValue().max()))
            .toList());
        return json;
    }

    private static List<String> texts(List<Uuid> ids) {
        return ids == null ? List.of() : ids.stream().map(Uuid::toString).toList();
    }

    private static List<Object> features(MetadataImage image) {
        Map<String, Object> levels = new TreeMap<>(image.features().finalizedVersions());
        image.features().metadataVersion().ifPresent(
            version -> levels.put("metadata.version", version.featureLevel()));
        List<Object> rows = new ArrayList<>();
        levels.forEach((name, level) -> rows.add(Map.of("name", name, "level", level)));
        return rows;
    }
}
