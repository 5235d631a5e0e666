import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/** What an administrator changes in a cluster; each change waits until the cluster has made it. */
final class ClusterChanges {
    private final Admin admin;

    ClusterChanges(Admin admin) {
        this.admin = admin;
    }

    void run(String change, JsonNode with) throws Exception {
        switch (change) {
            case "create" -> create(with);
            case "delete_topics" -> admin.deleteTopics(texts(with.get("topics"))).all().get();
            case "add_partitions" -> admin.createPartitions(Map.of(
                with.get("topic").asText(),
                NewPartitions.increaseTo(
                    with.get("count").asInt(), lists(with.get("assignments"))))).all().get();
            case "alter_configs" -> alterConfigs(with);
            case "reassign" -> reassign(with.get("replicas"));
            case "elect" -> admin.electLeaders(
                ElectionType.valueOf(with.get("type").asText()), partitions(with)).partitions().get();
            case "move_log_dir" -> admin.alterReplicaLogDirs(Map.of(
                new TopicPartitionReplica(
                    with.get("topic").asText(), with.get("partition").asInt(),
                    with.get("broker").asInt()),
                with.get("folder").asText())).all().get();
            case "delete_records" -> admin.deleteRecords(Map.of(
                ClusterCommands.partition(with.get("partition")),
                RecordsToDelete.beforeOffset(with.get("before").asLong()))).all().get();
            default -> settle(change, with);
        }
    }

    private void settle(String change, JsonNode with) throws Exception {
        switch (change) {
            case "feature" -> admin.updateFeatures(
                Map.of(with.get("name").asText(), new FeatureUpdate(
                    with.get("level").shortValue(),
                    FeatureUpdate.UpgradeType.valueOf(with.get("type").asText()))),
                new UpdateFeaturesOptions()).all().get();
            case "quota" -> quota(with);
            case "acl" -> admin.createAcls(List.of(acl(with))).all().get();
            case "delete_acl" -> admin.deleteAcls(List.of(acl(with).toFilter())).all().get();
            case "scram" -> admin.alterUserScramCredentials(List.of(
                new UserScramCredentialUpsertion(
                    with.get("user").asText(),
                    new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096),
                    "secret"))).all().get();
            case "delete_scram" -> admin.alterUserScramCredentials(List.of(
                new UserScramCredentialDeletion(
                    with.get("user").asText(), ScramMechanism.SCRAM_SHA_256))).all().get();
            default -> changeGroup(change, with);
        }
    }

    private void changeGroup(String change, JsonNode with) throws Exception {
        String group = with.get("group").asText();
        switch (change) {
            case "delete_group" -> admin.deleteConsumerGroups(List.of(group)).all().get();
            case "delete_share_group" -> admin.deleteShareGroups(List.of(group)).all().get();
            case "delete_offsets" -> admin.deleteConsumerGroupOffsets(
                group, partitions(with)).all().get();
            case "commit" -> admin.alterConsumerGroupOffsets(group, offsets(with)).all().get();
            default -> throw new IllegalArgumentException("unknown change " + change);
        }
    }

    private void create(JsonNode with) throws Exception {
        Map<Integer, List<Integer>> replicas = new HashMap<>();
        lists(with.get("assignments")).forEach(one -> replicas.put(replicas.size(), one));
        Map<String, String> configs = new HashMap<>();
        with.get("configs").properties().forEach(
            entry -> configs.put(entry.getKey(), entry.getValue().asText()));
        admin.createTopics(List.of(
            new NewTopic(with.get("topic").asText(), replicas).configs(configs))).all().get();
    }

    private void alterConfigs(JsonNode with) throws Exception {
        ConfigResource resource = new ConfigResource(
            ConfigResource.Type.valueOf(with.get("type").asText()), with.get("name").asText());
        Collection<AlterConfigOp> changes = new ArrayList<>();
        with.get("set").properties().forEach(entry -> changes.add(new AlterConfigOp(
            new ConfigEntry(entry.getKey(), entry.getValue().asText()), AlterConfigOp.OpType.SET)));
        with.get("delete").forEach(name -> changes.add(new AlterConfigOp(
            new ConfigEntry(name.asText(), null), AlterConfigOp.OpType.DELETE)));
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    /** Moves partitions, and does not wait for the copies. */
    private void reassign(JsonNode replicas) throws Exception {
        Map<TopicPartition, Optional<NewPartitionReassignment>> moves = new HashMap<>();
        replicas.properties().forEach(entry -> moves.put(
            ClusterCommands.partition(entry.getKey()),
            Optional.of(new NewPartitionReassignment(numbers(entry.getValue())))));
        admin.alterPartitionReassignments(moves).all().get();
    }

    private void quota(JsonNode with) throws Exception {
        JsonNode rate = with.get("rate");
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, with.get("user").asText())),
            List.of(new ClientQuotaAlteration.Op(
                "producer_byte_rate", rate.isNull() ? null : rate.asDouble()))))).all().get();
    }

    private static AclBinding acl(JsonNode with) {
        return new AclBinding(
            new ResourcePattern(
                ResourceType.TOPIC, with.get("topic").asText(), PatternType.LITERAL),
            new AccessControlEntry(
                "User:" + with.get("user").asText(), "*",
                AclOperation.READ, AclPermissionType.ALLOW));
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode with) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        with.get("offsets").properties().forEach(entry -> offsets.put(
            ClusterCommands.partition(entry.getKey()),
            new OffsetAndMetadata(entry.getValue().asLong(), Optional.empty(), "by hand")));
        return offsets;
    }

    private static Set<TopicPartition> partitions(JsonNode with) {
        return texts(with.get("partitions")).stream()
            .map(ClusterCommands::partition).collect(Collectors.toSet());
    }

    private static List<String> texts(JsonNode names) {
        List<String> texts = new ArrayList<>();
        names.forEach(name -> texts.add(name.asText()));
        return texts;
    }

    private static List<List<Integer>> lists(JsonNode lists) {
        List<List<Integer>> all = new ArrayList<>();
        lists.forEach(list -> all.add(numbers(list)));
        return all;
    }

    private static List<Integer> numbers(JsonNode list) {
        List<Integer> numbers = new ArrayList<>();
        list.forEach(number -> numbers.add(number.intValue()));
        return numbers;
    }
}
