import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommandOptions;

/** Writes and reads the records of __consumer_offsets with the group coordinator's own code. */
final class Commits {
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    private Commits() {
    }

    /** Key and value in hex of each commit, and the partition its group belongs to. */
    static Map<String, Object> write(JsonNode commits, int partitions) {
        List<Object> records = new ArrayList<>();
        for (JsonNode commit : commits) {
            String group = commit.get("group").asText();
            OffsetCommitKey key = new OffsetCommitKey()
                .setGroup(group)
                .setTopic(commit.get("topic").asText())
                .setPartition(commit.get("partition").intValue());
            CoordinatorRecord record = CoordinatorRecord.record(
                key,
                new ApiMessageAndVersion(valueOf(commit), commit.get("version").shortValue()));
            records.add(Map.of(
                "key", hex(SERDE.serializeKey(record)),
                "value", hex(SERDE.serializeValue(record)),
                "partition", Utils.abs(group.hashCode()) % partitions));
        }
        return Map.of("records", records);
    }

    private static OffsetCommitValue valueOf(JsonNode commit) {
        short version = commit.get("version").shortValue();
        OffsetCommitValue value = new OffsetCommitValue()
            .setOffset(commit.get("offset").asLong())
            .setMetadata(commit.get("metadata").asText())
            .setCommitTimestamp(commit.get("commit_timestamp_ms").asLong());
        if (version >= 3) {
            value.setLeaderEpoch(commit.get("leader_epoch").intValue());
        }
        if (version == 1) {
            value.setExpireTimestamp(commit.get("expire_timestamp_ms").asLong());
        }
        if (version >= 4 && commit.hasNonNull("topic_id")) {
            ByteBuffer id = ByteBuffer.wrap(bytes(commit.get("topic_id").asText()));
            value.setTopicId(new Uuid(id.getLong(), id.getLong()));
        }
        return value;
    }

    /** What Kafka reads in each key and value; {@code error} where it refuses. */
    static Map<String, Object> read(JsonNode records) {
        List<Object> commits = new ArrayList<>();
        for (JsonNode record : records) {
            try {
                commits.add(readOne(record));
            } catch (RuntimeException refusal) {
                commits.add(Map.of("error", refusal.toString()));
            }
        }
        return Map.of("commits", commits);
    }

    /** The lag that kafka-consumer-groups prints for each committed offset and end; null: "-". */
    static Map<String, Object> lags(List<Long> offsets, List<Long> ends) throws Exception {
        String[] arguments = {"--bootstrap-server", "localhost:1", "--describe", "--all-groups"};
        Class<?> tool = Class.forName(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand$ConsumerGroupService");
        Constructor<?> made =
            tool.getDeclaredConstructor(ConsumerGroupCommandOptions.class, Map.class);
        Method getLag = tool.getDeclaredMethod("getLag", Optional.class, Optional.class);
        made.setAccessible(true);
        getLag.setAccessible(true);
        ConsumerGroupCommandOptions options = ConsumerGroupCommandOptions.fromArgs(arguments);
        try (AutoCloseable service = (AutoCloseable) made.newInstance(options, Map.of())) {
            List<Object> lags = new ArrayList<>();
            for (int i = 0; i < offsets.size(); i++) {
                Optional<?> lag = (Optional<?>) getLag.invoke(
                    service, Optional.of(offsets.get(i)), Optional.of(ends.get(i)));
                lags.add(lag.orElse(null));
            }
            return Map.of("lags", lags);
        }
    }

    private static Map<String, Object> readOne(JsonNode record) {
        CoordinatorRecord read = SERDE.deserialize(
            ByteBuffer.wrap(bytes(record.get("key").asText())),
            ByteBuffer.wrap(bytes(record.get("value").asText())));
        Map<String, Object> commit = new LinkedHashMap<>();
        if (read.key() instanceof OffsetCommitKey key) {
            commit.put("group", key.group());
            commit.put("topic", key.topic());
            commit.put("partition", key.partition());
        } else if (read.key() instanceof LegacyOffsetCommitKey key) {
            commit.put("group", key.group());
            commit.put("topic", key.topic());
            commit.put("partition", key.partition());
        }
        if (read.value().message() instanceof OffsetCommitValue value) {
            commit.put("offset", value.offset());
            commit.put("leader_epoch", value.leaderEpoch());
            commit.put("metadata", value.metadata());
            commit.put("commit_timestamp_ms", value.commitTimestamp());
            commit.put("expire_timestamp_ms", value.expireTimestamp());
            boolean hasTopicId = !value.topicId().equals(Uuid.ZERO_UUID);
            commit.put("topic_id", hasTopicId ? hex(value.topicId()) : null);
        } else if (read.value().message() instanceof LegacyOffsetCommitValue value) {
            commit.put("offset", value.offset());
            commit.put("leader_epoch", -1);
            commit.put("metadata", value.metadata());
            commit.put("commit_timestamp_ms", value.commitTimestamp());
            commit.put("expire_timestamp_ms", -1);
            commit.put("topic_id", null);
        }
        return commit;
    }

    private static String hex(Uuid id) {
        return hex(ByteBuffer.allocate(16)
            .putLong(id.getMostSignificantBits())
            .putLong(id.getLeastSignificantBits())
            .array());
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    private static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex);
    }
}
