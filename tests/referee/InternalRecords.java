import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Writer;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.EndTxnMarker;
import org.apache.kafka.common.message.EndTxnMarkerJsonConverter;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;
import org.apache.kafka.coordinator.common.runtime.Deserializer;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.transaction.TransactionCoordinatorRecordSerde;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.serialization.BytesApiMessageSerde;
import org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType;

/** Records of Kafka's internal topics as lines of JSON, by Kafka's own readers and converters. */
final class InternalRecords {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final BytesApiMessageSerde REMOTE = new BytesApiMessageSerde() {
        @Override
        public ApiMessage apiMessageFor(short type) {
            return MetadataRecordType.fromId(type).newMetadataRecord();
        }
    };

    private InternalRecords() {
    }

    /**
     * Writes a line for each record of a segment or snapshot: offset, timestamp_ms, is_control,
     * kind, key_version (a coordinator's type of record), value_version, key and value. A record
     * that Kafka cannot read has {@code problem}.
     */
    static Map<String, Object> write(String topic, Path file, Path target) throws IOException {
        long count = 0;
        try (FileRecords records = FileRecords.open(file.toFile(), false);
            Writer out = Files.newBufferedWriter(target)) {
            for (RecordBatch batch : records.batches()) {
                for (Record record : batch) {
                    out.write(JSON.writeValueAsString(line(topic, batch.isControlBatch(), record)));
                    out.write('\n');
                    count++;
                }
            }
        }
        return Map.of("records", count);
    }

    private static ObjectNode line(String topic, boolean isControl, Record record) {
        ObjectNode line = JSON.createObjectNode();
        line.put("offset", record.offset());
        line.put("timestamp_ms", record.timestamp());
        line.put("is_control", isControl);
        try {
            if (isControl) {
                control(line, record);
            } else {
                data(line, topic, record);
            }
        } catch (RuntimeException problem) {
            line.put("problem", problem.toString());
        }
        return line;
    }

    private static void data(ObjectNode line, String topic, Record record) {
        switch (topic) {
            case "__cluster_metadata" -> value(line, MetadataRecordSerde.INSTANCE.read(
                new ByteBufferAccessor(record.value()), record.valueSize()),
                MetadataJsonConverters::writeJson);
            case "__remote_log_metadata" -> remote(line, record);
            case "__consumer_offsets" -> coordinator(line, record, new GroupCoordinatorRecordSerde(),
                org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters
                    ::writeRecordKeyAsJson,
                InternalRecords::groupValue);
            case "__transaction_state" -> coordinator(
                line, record, new TransactionCoordinatorRecordSerde(),
                org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordJsonConverters
                    ::writeRecordKeyAsJson,
                org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordJsonConverters
                    ::writeRecordValueAsJson);
            case "__share_group_state" -> coordinator(line, record, new ShareCoordinatorRecordSerde(),
                org.apache.kafka.coordinator.share.generated.CoordinatorRecordJsonConverters
                    ::writeRecordKeyAsJson,
                org.apache.kafka.coordinator.share.generated.CoordinatorRecordJsonConverters
                    ::writeRecordValueAsJson);
            default -> throw new IllegalArgumentException("no internal topic: " + topic);
        }
    }

    /** A value as kafka-dump-log prints it: it reads what classic members wrote, too. */
    private static JsonNode groupValue(ApiMessage value, short version) {
        try {
            Class<?> type =
                Class.forName("org.apache.kafka.tools.DumpLogSegments$OffsetsMessageParser");
            Constructor<?> maker = type.getDeclaredConstructor();
            maker.setAccessible(true);
            Method json = type.getDeclaredMethod("valueAsJson", ApiMessage.class, short.class);
            json.setAccessible(true);
            return (JsonNode) json.invoke(maker.newInstance(), value, version);
        } catch (ReflectiveOperationException wrong) {
            throw new IllegalStateException(wrong);
        }
    }

    private static void coordinator(
            ObjectNode line,
            Record record,
            CoordinatorRecordSerde serde,
            Function<ApiMessage, JsonNode> keys,
            BiFunction<ApiMessage, Short, JsonNode> values) {
        line.put("key_version", record.key().getShort());
        CoordinatorRecord read;
        try {
            read = serde.deserialize(record.key(), record.value());
        } catch (Deserializer.UnknownRecordTypeException unknown) {
            line.put("kind", "unknown");
            return;
        }
        line.set("key", keys.apply(read.key()));
        if (read.value() == null) {
            line.put("kind", kind(read.key()).replaceFirst("Key$", ""));
            line.set("value", null);
        } else {
            value(line, read.value(), values);
            line.put("kind", kind(read.value().message()).replaceFirst("Value$", ""));
        }
    }

    private static void remote(ObjectNode line, Record record) {
        if (!record.hasValue()) {
            line.set("value", null);
            return;
        }
        byte[] value = new byte[record.valueSize()];
        record.value().get(value);
        value(line, REMOTE.deserialize(value),
            org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataJsonConverters
                ::writeJson);
    }

    private static void value(
            ObjectNode line,
            ApiMessageAndVersion read,
            BiFunction<ApiMessage, Short, JsonNode> converter) {
        line.put("kind", kind(read.message()));
        line.put("value_version", read.version());
        line.set("value", converter.apply(read.message(), read.version()));
    }

    private static void control(ObjectNode line, Record record) {
        ByteBuffer value = record.value();
        short version = value.getShort(0);
        switch (ControlRecordType.parse(record.key())) {
            case LEADER_CHANGE -> control(line, version,
                ControlRecordUtils.deserializeLeaderChangeMessage(value),
                LeaderChangeMessageJsonConverter::write);
            case SNAPSHOT_HEADER -> control(line, version,
                ControlRecordUtils.deserializeSnapshotHeaderRecord(value),
                SnapshotHeaderRecordJsonConverter::write);
            case SNAPSHOT_FOOTER -> control(line, version,
                ControlRecordUtils.deserializeSnapshotFooterRecord(value),
                SnapshotFooterRecordJsonConverter::write);
            case KRAFT_VERSION -> control(line, version,
                ControlRecordUtils.deserializeKRaftVersionRecord(value),
                KRaftVersionRecordJsonConverter::write);
            case KRAFT_VOTERS -> control(line, version,
                ControlRecordUtils.deserializeVotersRecord(value),
                VotersRecordJsonConverter::write);
            case COMMIT, ABORT -> control(line, version,
                new EndTxnMarker(new ByteBufferAccessor(value.position(2)), version),
                EndTxnMarkerJsonConverter::write);
            default -> throw new UnsupportedVersionException("a control record of no known type");
        }
    }

    private static <M extends ApiMessage> void control(
            ObjectNode line, short version, M message, BiFunction<M, Short, JsonNode> converter) {
        line.put("kind", kind(message));
        line.put("value_version", version);
        line.set("value", converter.apply(message, version));
    }

    private static String kind(ApiMessage message) {
        return message.getClass().getSimpleName();
    }
}
