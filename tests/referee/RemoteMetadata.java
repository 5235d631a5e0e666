import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteLogMetadataTopicPartitioner;
import org.apache.kafka.server.log.remote.metadata.storage.RemotePartitionMetadataStore;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogManager;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;

/** What a broker makes of records of {@code __remote_log_metadata}. */
final class RemoteMetadata {
    private static final RemoteLogMetadataSerde SERDE = new RemoteLogMetadataSerde();

    private RemoteMetadata() {
    }

    /** Reads values; each answer has what the broker reads, and the partition it looks for it in. */
    static Map<String, Object> read(JsonNode values, int partitions) {
        RemoteLogMetadataTopicPartitioner partitioner =
            new RemoteLogMetadataTopicPartitioner(partitions);
        List<Object> records = new ArrayList<>();
        for (JsonNode value : values) {
            RemoteLogMetadata record = deserialized(value);
            Map<String, Object> told = record instanceof RemoteLogSegmentMetadata segment
                ? told(segment) : told((RemoteLogSegmentMetadataUpdate) record);
            TopicIdPartition log = record.topicIdPartition();
            told.put("topic_id", log.topicId().toString());
            told.put("topic", log.topic());
            told.put("partition", log.partition());
            told.put("metadata_partition", partitioner.metadataPartition(log));
            records.add(told);
        }
        return Map.of("records", records);
    }

    /** Handles values one after another; says which segments a broker then knows, by their ids. */
    static Map<String, Object> states(JsonNode values) throws ReflectiveOperationException {
        RemotePartitionMetadataStore store = new RemotePartitionMetadataStore();
        Map<String, Integer> refused = new HashMap<>();
        Map<String, RemoteLogSegmentMetadata> known = Map.of();
        for (JsonNode value : values) {
            RemoteLogMetadata record = deserialized(value);
            TopicIdPartition log = record.topicIdPartition();
            store.maybeLoadPartition(log);
            store.markInitialized(log);
            try {
                store.handleRemoteLogMetadata(record);
            } catch (IllegalArgumentException refusal) {
                // it is counted below, as nothing changes
            }
            String id = id(record).id().toString();
            RemoteLogSegmentMetadata before = known.get(id);
            known = known(store, log);
            RemoteLogSegmentMetadata after = known.get(id);
            boolean isTaken = after == null
                ? before != null : after.eventTimestampMs() == record.eventTimestampMs();
            refused.merge(id, isTaken ? 0 : 1, Integer::sum);
        }
        Map<String, Object> segments = new LinkedHashMap<>();
        known.forEach((id, segment) -> segments.put(id, told(segment)));
        return Map.of("segments", segments, "refused", refused);
    }

    /** Says of each case whether the segment lies within a lineage of leader epochs. */
    static Map<String, Object> within(JsonNode cases) throws ReflectiveOperationException {
        Method method = RemoteLogManager.class.getDeclaredMethod(
            "isRemoteSegmentWithinLeaderEpochs",
            RemoteLogSegmentMetadata.class, long.class, NavigableMap.class);
        method.setAccessible(true);
        List<Object> answers = new ArrayList<>();
        TopicIdPartition log = new TopicIdPartition(Uuid.ONE_UUID, 0, "t");
        for (JsonNode one : cases) {
            NavigableMap<Integer, Long> epochs = epochs(one.get("epochs"));
            RemoteLogSegmentMetadata segment = new RemoteLogSegmentMetadata(
                new RemoteLogSegmentId(log, Uuid.ONE_UUID),
                epochs.firstEntry().getValue(), one.get("end").asLong(), 1, 1, 1, 1, epochs);
            try {
                answers.add(method.invoke(
                    null, segment, one.get("log_end").asLong(), epochs(one.get("lineage"))));
            } catch (InvocationTargetException thrown) {
                answers.add(thrown.getCause().toString());
            }
        }
        return Map.of("within", answers);
    }

    private static NavigableMap<Integer, Long> epochs(JsonNode pairs) {
        NavigableMap<Integer, Long> epochs = new TreeMap<>();
        pairs.forEach(pair -> epochs.put(pair.get(0).intValue(), pair.get(1).longValue()));
        return epochs;
    }

    private static RemoteLogMetadata deserialized(JsonNode value) {
        return SERDE.deserialize(Base64.getDecoder().decode(value.asText()));
    }

    private static RemoteLogSegmentId id(RemoteLogMetadata record) {
        return record instanceof RemoteLogSegmentMetadata segment
            ? segment.remoteLogSegmentId()
            : ((RemoteLogSegmentMetadataUpdate) record).remoteLogSegmentId();
    }

    private static Map<String, RemoteLogSegmentMetadata> known(
            RemotePartitionMetadataStore store, TopicIdPartition log)
            throws ReflectiveOperationException {
        Method list = RemotePartitionMetadataStore.class.getDeclaredMethod(
            "listRemoteLogSegments", TopicIdPartition.class);
        list.setAccessible(true);
        Map<String, RemoteLogSegmentMetadata> known = new LinkedHashMap<>();
        Iterator<?> segments = (Iterator<?>) list.invoke(store, log);
        while (segments.hasNext()) {
            RemoteLogSegmentMetadata segment = (RemoteLogSegmentMetadata) segments.next();
            known.put(segment.remoteLogSegmentId().id().toString(), segment);
        }
        return known;
    }

    private static Map<String, Object> told(RemoteLogSegmentMetadata segment) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("segment_id", segment.remoteLogSegmentId().id().toString());
        told.put("state", segment.state().name());
        told.put("state_ms", segment.eventTimestampMs());
        told.put("broker_id", segment.brokerId());
        told.put("start_offset", segment.startOffset());
        told.put("end_offset", segment.endOffset());
        told.put("max_timestamp_ms", segment.maxTimestampMs());
        told.put("size_bytes", segment.segmentSizeInBytes());
        told.put("is_txn_index_empty", segment.isTxnIdxEmpty());
        List<Object> epochs = new ArrayList<>();
        segment.segmentLeaderEpochs().forEach(
            (epoch, offset) -> epochs.add(List.of(epoch, offset)));
        told.put("leader_epochs", epochs);
        return told;
    }

    private static Map<String, Object> told(RemoteLogSegmentMetadataUpdate update) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("segment_id", update.remoteLogSegmentId().id().toString());
        told.put("state", update.state().name());
        told.put("state_ms", update.eventTimestampMs());
        told.put("broker_id", update.brokerId());
        return told;
    }
}
