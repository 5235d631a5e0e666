import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;

/**
 * Records of internal topics as lines of JSON, by the classes of the release that wrote them.
 *
 * <p>Where a release has no converter for a message, its fields are told by its accessors: all,
 * those that the version does not have with their defaults.
 */
public final class OlderRecords {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String REMOTE =
        "org.apache.kafka.server.log.remote.metadata.storage.generated";
    private static final List<String> PACKAGES = List.of(
        "kafka.internals.generated.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.");
    private static final Map<Integer, String> GROUPS = Map.ofEntries(
        Map.entry(0, "OffsetCommit"), Map.entry(1, "OffsetCommit"), Map.entry(2, "GroupMetadata"),
        Map.entry(3, "ConsumerGroupMetadata"), Map.entry(4, "ConsumerGroupPartitionMetadata"),
        Map.entry(5, "ConsumerGroupMemberMetadata"),
        Map.entry(6, "ConsumerGroupTargetAssignmentMetadata"),
        Map.entry(7, "ConsumerGroupTargetAssignmentMember"),
        Map.entry(8, "ConsumerGroupCurrentMemberAssignment"));

    public static void main(String[] files) throws Exception {
        for (String name : files) {
            File file = new File(name);
            String topic = file.getParentFile().getName().replaceFirst("-[0-9]+$", "");
            try (FileRecords records = FileRecords.open(file, false)) {
                for (RecordBatch batch : records.batches()) {
                    for (Record record : batch) {
                        System.out.println(JSON.writeValueAsString(
                            line(topic, batch.isControlBatch(), record)
                                .put("folder", file.getParentFile().getName())
                                .put("file", file.getName())));
                    }
                }
            }
        }
    }

    private static ObjectNode line(String topic, boolean isControl, Record record) {
        ObjectNode line = JSON.createObjectNode();
        line.put("offset", record.offset());
        line.put("timestamp_ms", record.timestamp());
        line.put("is_control", isControl);
        if (isControl) {
            return line;
        }
        try {
            switch (topic) {
                case "__cluster_metadata" -> metadata(line, record);
                case "__remote_log_metadata" -> remote(line, record);
                default -> keyed(line, topic, record);
            }
        } catch (Exception problem) {
            Throwable cause =
                problem instanceof InvocationTargetException ? problem.getCause() : problem;
            line.put("problem", cause.toString());
        }
        return line;
    }

    private static void metadata(ObjectNode line, Record record) throws Exception {
        Object read = invoke(Class.forName("org.apache.kafka.metadata.MetadataRecordSerde")
            .getDeclaredConstructor().newInstance(), "read",
            new ByteBufferAccessor(record.value()), record.valueSize());
        value(line, (ApiMessage) invoke(read, "message"), (Short) invoke(read, "version"),
            "org.apache.kafka.common.metadata");
    }

    private static void remote(ObjectNode line, Record record) throws Exception {
        ByteBufferAccessor bytes = new ByteBufferAccessor(record.value());
        if (bytes.readUnsignedVarint() != 1) {
            throw new IllegalArgumentException("the frame's version");
        }
        short type = (short) bytes.readUnsignedVarint();
        short version = (short) bytes.readUnsignedVarint();
        Object found = Class.forName(REMOTE + ".MetadataRecordType")
            .getMethod("fromId", short.class).invoke(null, type);
        ApiMessage message = (ApiMessage) invoke(found, "newMetadataRecord");
        message.read(bytes, version);
        value(line, message, version, REMOTE);
    }

    private static void value(ObjectNode line, ApiMessage message, short version, String converters)
            throws Exception {
        line.put("kind", message.getClass().getSimpleName());
        line.put("value_version", version);
        line.set("value", (JsonNode) Class.forName(converters + ".MetadataJsonConverters")
            .getMethod("writeJson", ApiMessage.class, short.class).invoke(null, message, version));
    }

    private static Object invoke(Object on, String name, Object... with) throws Exception {
        for (Method method : on.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == with.length
                    && !method.isBridge()) {
                return method.invoke(on, with);
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static void keyed(ObjectNode line, String topic, Record record) throws Exception {
        ByteBuffer key = record.key();
        short type = key.getShort();
        boolean isTransaction = topic.equals("__transaction_state");
        String kind = isTransaction ? "TransactionLog" : GROUPS.get((int) type);
        line.put("kind", kind);
        line.put("key_version", type);
        line.set("key", json(kind + "Key", isTransaction || type > 2 ? 0 : type, key));
        if (!record.hasValue()) {
            line.set("value", null);
            return;
        }
        ByteBuffer value = record.value();
        short version = value.getShort();
        line.put("value_version", version);
        line.set("value", json(kind + "Value", version, value));
    }

    private static JsonNode json(String name, int version, ByteBuffer bytes) throws Exception {
        Class<?> layout = null;
        for (String place : PACKAGES) {
            try {
                layout = Class.forName(place + name);
                break;
            } catch (ClassNotFoundException elsewhere) {
                // the next place
            }
        }
        Message message = (Message) layout.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(bytes), (short) version);
        try {
            return (JsonNode) Class.forName(layout.getName() + "JsonConverter")
                .getMethod("write", layout, short.class).invoke(null, message, (short) version);
        } catch (ClassNotFoundException none) {
            return fields(message);
        }
    }

    private static JsonNode fields(Object message) throws Exception {
        ObjectNode json = JSON.createObjectNode();
        for (Field field : message.getClass().getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers()) && !field.getName().startsWith("_")) {
                field.setAccessible(true);
                json.set(field.getName(), value(field.get(message)));
            }
        }
        return json;
    }

    private static JsonNode value(Object value) throws Exception {
        if (value instanceof byte[] bytes) {
            return JSON.getNodeFactory().textNode(Base64.getEncoder().encodeToString(bytes));
        }
        if (value instanceof Uuid uuid) {
            return JSON.getNodeFactory().textNode(uuid.toString());
        }
        if (value instanceof Iterable<?> list) {
            ArrayNode array = JSON.createArrayNode();
            for (Object one : list) {
                array.add(value(one));
            }
            return array;
        }
        return value instanceof Message ? fields(value) : JSON.valueToTree(value);
    }
}
