import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.transaction.TransactionCoordinatorRecordSerde;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Records of internal topics with random fields, each type in each version that Kafka has,
 * serialized by Kafka.
 */
final class DrawnRecords {
    private static final int FIRST_UNKNOWN_TAG = 100;
    private static final long START_MS = 1_700_000_000_000L;

    private final Draw draw;

    private DrawnRecords(long seed) {
        draw = new Draw(seed);
    }

    /** Writes a segment with so many records of each type and version. */
    static Map<String, Object> write(String topic, long seed, int count, Path file)
            throws Exception {
        DrawnRecords drawn = new DrawnRecords(seed);
        List<SimpleRecord> records = new ArrayList<>();
        for (int round = 0; round < count; round++) {
            switch (topic) {
                case "__cluster_metadata" -> drawn.metadata(records);
                case "__remote_log_metadata" -> drawn.remote(records);
                case "__consumer_offsets" -> drawn.groups(records);
                case "__transaction_state" -> drawn.transactions(records);
                default -> drawn.shares(records);
            }
        }
        writeBatches(records, file);
        return Map.of("records", records.size());
    }

    private static void writeBatches(List<SimpleRecord> records, Path file) throws IOException {
        try (OutputStream out = Files.newOutputStream(file)) {
            for (int offset = 0; offset < records.size(); offset++) {
                ByteBuffer batch = MemoryRecords.withRecords(
                    RecordBatch.CURRENT_MAGIC_VALUE, offset, Compression.NONE,
                    TimestampType.CREATE_TIME, records.get(offset)).buffer();
                Channels.newChannel(out).write(batch);
            }
        }
    }

    private void metadata(List<SimpleRecord> records) throws Exception {
        for (MetadataRecordType type : MetadataRecordType.values()) {
            for (short v = type.lowestSupportedVersion(); v <= type.highestSupportedVersion(); v++) {
                ApiMessageAndVersion message =
                    new ApiMessageAndVersion(filled(type.newMetadataRecord(), v), v);
                ObjectSerializationCache cache = new ObjectSerializationCache();
                ByteBuffer value = ByteBuffer.allocate(
                    MetadataRecordSerde.INSTANCE.recordSize(message, cache));
                MetadataRecordSerde.INSTANCE.write(message, cache, new ByteBufferAccessor(value));
                add(records, null, value.array());
            }
        }
    }

    private void remote(List<SimpleRecord> records) throws Exception {
        for (var type : org.apache.kafka.server.log.remote.metadata.storage.generated
                .MetadataRecordType.values()) {
            for (short v = type.lowestSupportedVersion(); v <= type.highestSupportedVersion(); v++) {
                add(records, null, InternalRecords.REMOTE.serialize(
                    new ApiMessageAndVersion(filled(type.newMetadataRecord(), v), v)));
            }
        }
    }

    private void groups(List<SimpleRecord> records) throws Exception {
        for (var type : org.apache.kafka.coordinator.group.generated
                .CoordinatorRecordType.values()) {
            for (short v = type.lowestSupportedVersion(); v <= type.highestSupportedVersion(); v++) {
                add(records, new GroupCoordinatorRecordSerde(),
                    type.newRecordKey(), type.newRecordValue(), v);
            }
        }
    }

    private void transactions(List<SimpleRecord> records) throws Exception {
        for (var type : org.apache.kafka.coordinator.transaction.generated
                .CoordinatorRecordType.values()) {
            for (short v = type.lowestSupportedVersion(); v <= type.highestSupportedVersion(); v++) {
                add(records, new TransactionCoordinatorRecordSerde(),
                    type.newRecordKey(), type.newRecordValue(), v);
            }
        }
    }

    private void shares(List<SimpleRecord> records) throws Exception {
        for (var type : org.apache.kafka.coordinator.share.generated
                .CoordinatorRecordType.values()) {
            for (short v = type.lowestSupportedVersion(); v <= type.highestSupportedVersion(); v++) {
                add(records, new ShareCoordinatorRecordSerde(),
                    type.newRecordKey(), type.newRecordValue(), v);
            }
        }
    }

    private void add(
            List<SimpleRecord> records, CoordinatorRecordSerde serde, ApiMessage key,
            ApiMessage value, short version) throws Exception {
        filled(key, (short) 0);
        CoordinatorRecord record = draw.chance(0.1)
            ? CoordinatorRecord.tombstone(key)
            : CoordinatorRecord.record(
                key, new ApiMessageAndVersion(filled(value, version), version));
        add(records, serde.serializeKey(record), serde.serializeValue(record));
    }

    private static void add(List<SimpleRecord> records, byte[] key, byte[] value) {
        records.add(new SimpleRecord(START_MS + records.size(), key, value));
    }

    private <M extends Message> M filled(M message, short version) throws Exception {
        Schema[] schemas = (Schema[]) message.getClass().getField("SCHEMAS").get(null);
        fill(message, schemas[version]);
        return message;
    }

    private void fill(Message message, Schema schema) throws Exception {
        for (BoundField field : schema.fields()) {
            if (!(field.def.type instanceof TaggedFields tagged)) {
                set(message, field.def);
                continue;
            }
            for (Field one : tagged.fields().values()) {
                if (draw.chance(0.6)) {
                    set(message, one);
                }
            }
            if (draw.chance(0.2)) {
                int tag = FIRST_UNKNOWN_TAG + draw.between(0, 9);
                message.unknownTaggedFields().add(new RawTaggedField(tag, draw.bytes(3)));
            }
        }
    }

    private void set(Message message, Field field) throws Exception {
        String name = "set" + field.name.replace("_", "");
        Method setter = Arrays.stream(message.getClass().getMethods())
            .filter(method -> method.getName().equalsIgnoreCase(name))
            .findFirst().orElseThrow(() -> new NoSuchMethodException(name));
        setter.invoke(message, value(field.type, setter.getGenericParameterTypes()[0]));
    }

    private Object value(Type type, java.lang.reflect.Type wanted) throws Exception {
        if (type.isNullable() && draw.chance(0.2)) {
            return null;
        }
        if (wanted instanceof ParameterizedType list) {
            return elements(type, list.getActualTypeArguments()[0], new ArrayList<>());
        }
        Class<?> kind = (Class<?>) wanted;
        if (Collection.class.isAssignableFrom(kind)) {
            ParameterizedType parent = (ParameterizedType) kind.getGenericSuperclass();
            @SuppressWarnings("unchecked")
            Collection<Object> empty =
                (Collection<Object>) kind.getDeclaredConstructor().newInstance();
            return elements(type, parent.getActualTypeArguments()[0], empty);
        }
        if (Message.class.isAssignableFrom(kind)) {
            Message nested = (Message) kind.getDeclaredConstructor().newInstance();
            fill(nested, (Schema) type);
            return nested;
        }
        return primitive(type, kind);
    }

    private Collection<Object> elements(
            Type type, java.lang.reflect.Type wanted, Collection<Object> into) throws Exception {
        Type element = type.arrayElementType().orElseThrow();
        for (int left = draw.between(0, 3); left > 0; left--) {
            into.add(value(element, wanted));
        }
        return into;
    }

    private Object primitive(Type type, Class<?> kind) {
        ByteBuffer bits = ByteBuffer.wrap(draw.bytes(16));
        if (draw.chance(0.3)) {
            Arrays.fill(bits.array(), (byte) draw.between(-1, 0)); // -1 and 0 are most defaults
        }
        return switch (kind.getSimpleName()) {
            case "boolean" -> draw.chance(0.5);
            case "byte" -> bits.get();
            case "short" -> bits.getShort();
            case "int" -> type == Type.UINT16 ? bits.getShort() & 0xffff : bits.getInt();
            case "long" -> type == Type.UNSIGNED_INT32
                ? bits.getInt() & 0xffffffffL : bits.getLong();
            case "double" -> draw.chance(0.2) ? Double.NaN : bits.getInt() / 8.0;
            case "String" -> text();
            case "Uuid" -> new Uuid(bits.getLong(), bits.getLong());
            case "byte[]" -> draw.bytes(draw.between(0, 9));
            case "ByteBuffer" -> ByteBuffer.wrap(draw.bytes(draw.between(0, 9)));
            default -> throw new IllegalArgumentException("no value of " + kind);
        };
    }

    private String text() {
        StringBuilder text = new StringBuilder();
        for (int left = draw.between(0, 6); left > 0; left--) {
            text.appendCodePoint(draw.chance(0.9) ? draw.between('a', 'z') : "ä\"\n€𝄞\u0001".codePointAt(
                draw.between(0, 3)));
        }
        return text.toString();
    }
}
