import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.admin.StreamsGroupMemberDescription;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;

/** What Admin tells of one group, of whichever protocol. */
final class GroupJson {
    private GroupJson() {
    }

    static Map<String, Object> of(Admin admin, GroupListing group) throws Exception {
        String name = group.groupId();
        return switch (group.type().orElse(GroupType.UNKNOWN)) {
            case SHARE -> share(admin.describeShareGroups(List.of(name)).all().get().get(name));
            case STREAMS -> streams(
                admin.describeStreamsGroups(List.of(name)).all().get().get(name));
            default -> consumer(
                admin.describeConsumerGroups(List.of(name)).all().get().get(name));
        };
    }

    private static Map<String, Object> consumer(ConsumerGroupDescription group) {
        Map<String, Object> members = new TreeMap<>();
        group.members().forEach(member -> members.put(member.consumerId(), member(
            member.clientId(), member.memberEpoch().orElse(null),
            member.groupInstanceId().orElse(null), member.assignment().topicPartitions())));
        return json(
            group.coordinator().id(), group.groupEpoch().orElse(null),
            group.targetAssignmentEpoch().orElse(null), group.partitionAssignor(), members);
    }

    private static Map<String, Object> share(ShareGroupDescription group) {
        Map<String, Object> members = new TreeMap<>();
        group.members().forEach(member -> members.put(member.consumerId(), member(
            member.clientId(), member.memberEpoch(), null,
            member.assignment().topicPartitions())));
        return json(
            group.coordinator().id(), group.groupEpoch(), group.targetAssignmentEpoch(), null,
            members);
    }

    private static Map<String, Object> streams(StreamsGroupDescription group) {
        Map<String, Object> members = new TreeMap<>();
        for (StreamsGroupMemberDescription member : group.members()) {
            Map<String, Object> json = member(
                member.clientId(), member.memberEpoch(), member.instanceId().orElse(null),
                List.of());
            json.put("assignment", member.assignment().activeTasks().stream()
                .flatMap(tasks -> tasks.partitions().stream().map(
                    partition -> tasks.subtopologyId() + "_" + partition))
                .sorted().toList());
            members.put(member.memberId(), json);
        }
        return json(
            group.coordinator().id(), group.groupEpoch(), group.targetAssignmentEpoch(), null,
            members);
    }

    private static Map<String, Object> member(
            String client, Integer epoch, String instance, Collection<TopicPartition> assigned) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("client_id", client);
        json.put("member_epoch", epoch);
        json.put("instance_id", instance);
        Stream<String> names = assigned.stream().map(TopicPartition::toString);
        json.put("assignment", names.sorted().toList());
        return json;
    }

    private static Map<String, Object> json(
            int coordinator, Integer epoch, Integer target, String assignor,
            Map<String, Object> members) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("coordinator", coordinator);
        json.put("group_epoch", epoch);
        json.put("target_assignment_epoch", target);
        json.put("assignor", assignor);
        json.put("members", members);
        return json;
    }
}
