import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** What Admin of an older release answers about its broker, as JSON; run with that release's JARs. */
public final class OlderAnswers {
    private static Admin admin;

    public static void main(String[] given) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        admin = Admin.create(settings);
        Map<String, Object> answers = new LinkedHashMap<>();
        answers.put("groups", groups());
        answers.put("group_offsets", groupOffsets());
        answers.put("topics", topics());
        answers.put("partitions", partitions());
        answers.put("configs", configs());
        answers.put("quotas", quotas());
        Map<String, Object> features = new TreeMap<>();
        admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach(
            (name, range) -> features.put(name, range.maxVersionLevel()));
        answers.put("features", features);
        System.out.println(new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT)
            .writeValueAsString(answers));
        System.exit(0);
    }

    private static Collection<String> groupNames() throws Exception {
        return new TreeSet<>(admin.listConsumerGroups().all().get().stream()
            .map(ConsumerGroupListing::groupId).toList());
    }

    private static List<Object> groups() throws Exception {
        List<Object> rows = new ArrayList<>();
        new TreeMap<>(admin.describeConsumerGroups(groupNames()).all().get()).forEach(
            (name, group) -> rows.add(json(
                "group", name, "state", group.state().toString(),
                "members", group.members().size())));
        return rows;
    }

    private static List<Object> groupOffsets() throws Exception {
        List<Object> rows = new ArrayList<>();
        for (String name : groupNames()) {
            Map<String, Object> sorted = new TreeMap<>();
            admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata().get().forEach(
                (partition, found) -> sorted.put(partition.toString(), json(
                    "group", name, "topic", partition.topic(), "partition", partition.partition(),
                    "offset", found.offset(), "metadata", found.metadata())));
            rows.addAll(sorted.values());
        }
        return rows;
    }

    private static Collection<TopicDescription> described() throws Exception {
        Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true))
            .names().get();
        return new TreeMap<>(admin.describeTopics(names).all().get()).values();
    }

    private static List<Object> topics() throws Exception {
        List<Object> rows = new ArrayList<>();
        for (TopicDescription topic : described()) {
            rows.add(json("topic", topic.name(), "topic_id", topic.topicId().toString()));
        }
        return rows;
    }

    private static List<Object> partitions() throws Exception {
        List<Object> rows = new ArrayList<>();
        for (TopicDescription topic : described()) {
            for (TopicPartitionInfo info : topic.partitions()) {
                rows.add(json(
                    "topic", topic.name(), "partition", info.partition(),
                    "leader", info.leader().id(), "replicas", ids(info.replicas()),
                    "isr", ids(info.isr())));
            }
        }
        return rows;
    }

    private static List<Integer> ids(List<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }

    private static List<Object> configs() throws Exception {
        List<ConfigResource> resources = new ArrayList<>();
        for (TopicDescription topic : described()) {
            resources.add(new ConfigResource(ConfigResource.Type.TOPIC, topic.name()));
        }
        Map<String, Object> rows = new TreeMap<>();
        admin.describeConfigs(resources).all().get().forEach((resource, config) -> {
            for (ConfigEntry entry : config.entries()) {
                if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) {
                    rows.put(resource.name() + " " + entry.name(), json(
                        "resource_name", resource.name(), "name", entry.name(),
                        "value", entry.value()));
                }
            }
        });
        return new ArrayList<>(rows.values());
    }

    private static List<Object> quotas() throws Exception {
        List<Object> rows = new ArrayList<>();
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach(
            (entity, quotas) -> new TreeMap<>(quotas).forEach((key, value) -> rows.add(json(
                "entity", new TreeMap<>(entity.entries()), "key", key, "value", value))));
        return rows;
    }

    private static Map<String, Object> json(Object... pairs) {
        Map<String, Object> json = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            json.put((String) pairs[i], pairs[i + 1]);
        }
        return json;
    }
}
