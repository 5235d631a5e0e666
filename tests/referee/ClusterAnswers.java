import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListStreamsGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** What Admin answers about a cluster, as values that become JSON in the same order each time. */
final class ClusterAnswers {
    private final Admin admin;

    ClusterAnswers(Admin admin) {
        this.admin = admin;
    }

    Map<String, Object> all() throws Exception {
        Map<String, Object> answers = new LinkedHashMap<>();
        answers.put("asked_ms", System.currentTimeMillis());
        answers.put("quorum", quorum());
        answers.put("cluster", cluster());
        answers.put("features", new TreeMap<>(admin.describeFeatures().featureMetadata().get()
            .finalizedFeatures()).entrySet().stream().map(feature -> Map.of(
                "feature", feature.getKey(), "level", feature.getValue().maxVersionLevel()))
            .toList());
        answers.put("topics", topics());
        answers.put("partitions", partitions());
        answers.put("configs", configs());
        answers.put("transactions", transactions());
        answers.put("producers", producers());
        answers.put("end_offsets", endOffsets());
        answers.put("groups", groups());
        answers.put("group_offsets", groupOffsets());
        return answers;
    }

    private Map<String, Object> quorum() throws Exception {
        QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("leader", quorum.leaderId());
        json.put("leader_epoch", quorum.leaderEpoch());
        json.put("high_watermark", quorum.highWatermark());
        json.put("voters", quorum.voters().stream()
            .sorted(Comparator.comparing(QuorumInfo.ReplicaState::replicaId))
            .map(voter -> Map.of(
                "id", voter.replicaId(), "directory", voter.replicaDirectoryId().toString(),
                "log_end_offset", voter.logEndOffset()))
            .toList());
        return json;
    }

    private Map<String, Object> cluster() throws Exception {
        return Map.of(
            "cluster_id", admin.describeCluster().clusterId().get(),
            "nodes", ids(admin.describeCluster().nodes().get()).stream().sorted().toList());
    }

    private Collection<TopicDescription> described() throws Exception {
        Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true))
            .names().get();
        return new TreeMap<>(admin.describeTopics(names).allTopicNames().get()).values();
    }

    private List<Object> topics() throws Exception {
        List<Object> topics = new ArrayList<>();
        for (TopicDescription topic : described()) {
            topics.add(Map.of("topic", topic.name(), "topic_id", topic.topicId().toString()));
        }
        return topics;
    }

    List<Object> partitions() throws Exception {
        List<Object> partitions = new ArrayList<>();
        for (TopicDescription topic : described()) {
            for (TopicPartitionInfo info : topic.partitions()) {
                Map<String, Object> json = new LinkedHashMap<>();
                json.put("topic", topic.name());
                json.put("partition", info.partition());
                json.put("leader", info.leader() == null ? -1 : info.leader().id());
                json.put("replicas", ids(info.replicas()));
                json.put("isr", ids(info.isr()));
                json.put("elr", ids(info.elr()));
                json.put("last_known_elr", ids(info.lastKnownElr()));
                partitions.add(json);
            }
        }
        return partitions;
    }

    private static List<Integer> ids(Collection<Node> nodes) {
        return nodes == null ? List.of() : nodes.stream().map(Node::id).toList();
    }

    /** Gives every setting that is no default and, of brokers, stands in no file of theirs. */
    private List<Object> configs() throws Exception {
        List<ConfigResource> resources = new ArrayList<>();
        described().forEach(topic ->
            resources.add(new ConfigResource(ConfigResource.Type.TOPIC, topic.name())));
        for (Node node : admin.describeCluster().nodes().get()) {
            resources.add(new ConfigResource(ConfigResource.Type.BROKER, node.idString()));
        }
        resources.add(new ConfigResource(ConfigResource.Type.BROKER, ""));
        resources.addAll(admin.listConfigResources(
            Set.of(ConfigResource.Type.GROUP, ConfigResource.Type.CLIENT_METRICS),
            new ListConfigResourcesOptions()).all().get());
        Map<String, Object> rows = new TreeMap<>();
        admin.describeConfigs(resources).all().get().forEach((resource, config) -> {
            for (ConfigEntry entry : config.entries()) {
                ConfigEntry.ConfigSource source = entry.source();
                boolean isInFile = source == ConfigEntry.ConfigSource.STATIC_BROKER_CONFIG
                    && resource.type() == ConfigResource.Type.BROKER;
                if (source != ConfigEntry.ConfigSource.DEFAULT_CONFIG && !isInFile) {
                    Map<String, Object> json = new LinkedHashMap<>();
                    json.put("resource_type", resource.type().toString());
                    json.put("resource_name", resource.name());
                    json.put("name", entry.name());
                    json.put("value", entry.value());
                    json.put("source", source.toString());
                    rows.put(resource.type() + "\0" + resource.name() + "\0" + entry.name(), json);
                }
            }
        });
        return new ArrayList<>(rows.values());
    }

    private List<Object> transactions() throws Exception {
        Map<String, Object> rows = new TreeMap<>();
        List<String> ids = admin.listTransactions().all().get().stream()
            .map(TransactionListing::transactionalId).toList();
        admin.describeTransactions(ids).all().get().forEach((id, transaction) -> {
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("transactional_id", id);
            json.put("coordinator", transaction.coordinatorId());
            json.put("state", transaction.state().toString());
            json.put("producer_id", transaction.producerId());
            json.put("producer_epoch", transaction.producerEpoch());
            json.put("timeout_ms", transaction.transactionTimeoutMs());
            json.put("start_ms", orNull(transaction.transactionStartTimeMs()));
            json.put("partitions", names(transaction.topicPartitions()));
            rows.put(id, json);
        });
        return new ArrayList<>(rows.values());
    }

    List<Object> producers() throws Exception {
        List<Object> rows = new ArrayList<>();
        for (TopicPartition partition : allPartitions()) {
            List<ProducerState> states = new ArrayList<>(admin.describeProducers(
                List.of(partition)).partitionResult(partition).get().activeProducers());
            states.sort(Comparator.comparing(ProducerState::producerId));
            for (ProducerState state : states) {
                Map<String, Object> json = new LinkedHashMap<>();
                json.put("topic", partition.topic());
                json.put("partition", partition.partition());
                json.put("producer_id", state.producerId());
                json.put("producer_epoch", state.producerEpoch());
                json.put("coordinator_epoch", orNull(state.coordinatorEpoch()));
                json.put("last_sequence", state.lastSequence());
                json.put("last_timestamp_ms", state.lastTimestamp());
                json.put("transaction_start_offset", orNull(state.currentTransactionStartOffset()));
                rows.add(json);
            }
        }
        return rows;
    }

    private Map<String, Object> endOffsets() throws Exception {
        Map<String, Object> ends = new TreeMap<>();
        for (TopicPartition partition : allPartitions()) {
            ends.put(partition.toString(), admin.listOffsets(
                Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset());
        }
        return ends;
    }

    private List<TopicPartition> allPartitions() throws Exception {
        List<TopicPartition> partitions = new ArrayList<>();
        for (TopicDescription topic : described()) {
            for (TopicPartitionInfo info : topic.partitions()) {
                if (info.leader() != null) {
                    partitions.add(new TopicPartition(topic.name(), info.partition()));
                }
            }
        }
        return partitions;
    }

    private List<Object> groups() throws Exception {
        Map<String, Object> rows = new TreeMap<>();
        for (GroupListing group : admin.listGroups().all().get()) {
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("group", group.groupId());
            json.put("type", group.type().map(GroupType::toString).orElse(null));
            json.put("protocol", group.protocol());
            json.put("state", group.groupState().map(Object::toString).orElse(null));
            json.putAll(GroupJson.of(admin, group));
            rows.put(group.groupId(), json);
        }
        return new ArrayList<>(rows.values());
    }

    private List<Object> groupOffsets() throws Exception {
        Map<String, Map<String, Object>> rows = new TreeMap<>();
        for (GroupListing group : admin.listGroups().all().get()) {
            String name = group.groupId();
            switch (group.type().orElse(GroupType.UNKNOWN)) {
                case SHARE -> admin.listShareGroupOffsets(
                    Map.of(name, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(name).get()
                    .forEach((partition, info) -> {
                        put(rows, name, partition, info == null ? null : info.startOffset(), null);
                        rows.get(name + "\0" + partition).put(
                            "lag", info == null ? null : info.lag().orElse(null));
                    });
                case STREAMS -> admin.listStreamsGroupOffsets(
                    Map.of(name, new ListStreamsGroupOffsetsSpec()))
                    .partitionsToOffsetAndMetadata(name).get()
                    .forEach((partition, found) -> put(
                        rows, name, partition, found == null ? null : found.offset(), null));
                default -> admin.listConsumerGroupOffsets(
                    Map.of(name, new ListConsumerGroupOffsetsSpec()))
                    .partitionsToOffsetAndMetadata(name).get()
                    .forEach((partition, found) -> put(
                        rows, name, partition, found == null ? null : found.offset(),
                        found == null ? null : found.metadata()));
            }
        }
        return new ArrayList<>(rows.values());
    }

    private static void put(
            Map<String, Map<String, Object>> rows, String group, TopicPartition partition, Long offset,
            String metadata) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("group", group);
        json.put("topic", partition.topic());
        json.put("partition", partition.partition());
        json.put("offset", offset);
        json.put("metadata", metadata);
        rows.put(group + "\0" + partition, json);
    }

    private static List<String> names(Collection<TopicPartition> partitions) {
        return new ArrayList<>(new TreeSet<>(
            partitions.stream().map(TopicPartition::toString).toList()));
    }

    private static Object orNull(OptionalLong number) {
        return number.isPresent() ? number.getAsLong() : null;
    }

    private static Object orNull(OptionalInt number) {
        return number.isPresent() ? number.getAsInt() : null;
    }
}
