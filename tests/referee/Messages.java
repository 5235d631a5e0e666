import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.message.ControlRecordTypeSchema;
import org.apache.kafka.common.message.EndTxnMarker;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Generated messages that lie in logs: which there are, drawn ones as records, and reading. */
final class Messages {
    private static final Map<String, String> TOPICS = Map.of(
        "org.apache.kafka.common.metadata", "__cluster_metadata",
        "org.apache.kafka.coordinator.group.generated", "__consumer_offsets",
        "org.apache.kafka.coordinator.transaction.generated", "__transaction_state",
        "org.apache.kafka.coordinator.share.generated", "__share_group_state",
        "org.apache.kafka.server.log.remote.metadata.storage.generated", "__remote_log_metadata");
    private static final String CLIENTS = "org.apache.kafka.common.message";
    private static final String CONVERTER = "JsonConverter";
    private static final Map<ControlRecordType, String> CONTROL = Map.of(
        ControlRecordType.ABORT, "EndTxnMarker",
        ControlRecordType.COMMIT, "EndTxnMarker",
        ControlRecordType.LEADER_CHANGE, "LeaderChangeMessage",
        ControlRecordType.SNAPSHOT_HEADER, "SnapshotHeaderRecord",
        ControlRecordType.SNAPSHOT_FOOTER, "SnapshotFooterRecord",
        ControlRecordType.KRAFT_VERSION, "KRaftVersionRecord",
        ControlRecordType.KRAFT_VOTERS, "VotersRecord");

    private static Map<String, Class<?>> found;

    private Messages() {
    }

    /** Name, type number, versions and defaults of every message that may lie in a log. */
    static Map<String, Object> types() throws Exception {
        List<Object> types = new ArrayList<>();
        for (Class<?> type : classes().values()) {
            Message message = (Message) type.getDeclaredConstructor().newInstance();
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("name", type.getSimpleName());
            answer.put("topic", TOPICS.get(type.getPackageName()));
            answer.put("type_id", typeId(message));
            answer.put("lowest", message.lowestSupportedVersion());
            answer.put("highest", message.highestSupportedVersion());
            answer.put("fresh", written(message, message.highestSupportedVersion()));
            types.add(answer);
        }
        return Map.of("types", types);
    }

    /** Rounds of one record of each type and version, with the JSON that Kafka makes of it. */
    static Map<String, Object> draw(long seed, int rounds) throws Exception {
        Draw choice = new Draw(seed);
        MessageDraw draw = new MessageDraw(choice);
        List<Object> records = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            for (Class<?> type : classes().values()) {
                String topic = TOPICS.get(type.getPackageName());
                String name = type.getSimpleName();
                if (topic == null || name.endsWith("Key") || !isRecord(type)) {
                    continue;
                }
                for (short version = lowest(type); version <= highest(type); version++) {
                    ApiMessage value = (ApiMessage) draw.message(type, version);
                    records.add(name.endsWith("Value")
                        ? keyed(topic, draw, value, version, choice.chance(0.05))
                        : framed(topic, value, version));
                }
            }
            for (Map.Entry<ControlRecordType, String> entry : new TreeMap<>(CONTROL).entrySet()) {
                Class<?> type = classes().get(CLIENTS + "." + entry.getValue());
                for (short version = lowest(type); version <= highest(type); version++) {
                    records.add(control(entry.getKey(), draw.message(type, version), version));
                }
            }
        }
        return Map.of("records", records);
    }

    /** What Kafka reads of each: JSON and the bytes left over; {@code error} where it throws. */
    static Map<String, Object> read(JsonNode messages) throws Exception {
        List<Object> answers = new ArrayList<>();
        for (JsonNode asked : messages) {
            Class<?> type = named(asked.get("name").asText());
            short version = asked.get("version").shortValue();
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(asked.get("data").asText()));
            try {
                answers.add(Map.of("json", json(type, bytes, version), "left", bytes.remaining()));
            } catch (InvocationTargetException | RuntimeException refusal) {
                answers.add(Map.of("error", refusal.toString()));
            }
        }
        return Map.of("messages", answers);
    }

    private static Map<String, Object> framed(String topic, ApiMessage value, short version)
            throws Exception {
        ApiMessageAndVersion versioned = new ApiMessageAndVersion(value, version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = MetadataRecordSerde.INSTANCE.recordSize(versioned, cache);
        ByteBuffer bytes = ByteBuffer.allocate(size);
        MetadataRecordSerde.INSTANCE.write(versioned, cache, new ByteBufferAccessor(bytes));
        Map<String, Object> record = record(topic, value, version);
        record.put("value", hex(bytes.array()));
        return record;
    }

    private static Map<String, Object> keyed(
            String topic, MessageDraw draw, ApiMessage value, short version, boolean isTombstone)
            throws Exception {
        Class<?> type = named(value.getClass().getSimpleName().replaceAll("Value$", "Key"));
        ApiMessage key = (ApiMessage) draw.message(type, (short) 0);
        Map<String, Object> record = record(topic, value, version);
        record.put("key", hex(MessageUtil.toCoordinatorTypePrefixedBytes(key)));
        record.put("key_json", json(key, (short) 0));
        record.put("value", hex(MessageUtil.toVersionPrefixedBytes(version, value)));
        if (isTombstone) {
            record.put("value", null);
            record.put("value_json", null);
            record.put("version", null);
        }
        return record;
    }

    private static Map<String, Object> control(
            ControlRecordType type, Message value, short version) throws Exception {
        ByteBuffer bytes;
        if (value instanceof EndTxnMarker) {
            bytes = MessageUtil.toVersionPrefixedByteBuffer(version, value);
        } else {
            value.getClass().getMethod("setVersion", short.class).invoke(value, version);
            bytes = MessageUtil.toByteBufferAccessor(value, version).buffer();
        }
        Map<String, Object> record = record("__cluster_metadata", value, version);
        record.put("type_id", (int) type.type());
        record.put("key", hex(MessageUtil.byteBufferToArray(type.recordKey())));
        ControlRecordTypeSchema key = new ControlRecordTypeSchema().setType(type.type());
        record.put("key_json", json(key, (short) 0));
        record.put("value", hex(MessageUtil.byteBufferToArray(bytes)));
        return record;
    }

    private static Map<String, Object> record(String topic, Message value, short version)
            throws Exception {
        Map<String, Object> record = new LinkedHashMap<>();
        record.put("topic", topic);
        record.put("kind", value.getClass().getSimpleName().replaceAll("Value$", ""));
        record.put("type_id", typeId(value));
        record.put("version", version);
        record.put("key", null);
        record.put("key_json", null);
        record.put("value_json", json(value, version));
        return record;
    }

    /** The JSON of a message once it was written and read: UTF-8 cannot hold all of Java's text. */
    private static String json(Message message, short version) throws Exception {
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
        return json(message.getClass(), bytes, version);
    }

    private static String json(Class<?> type, ByteBuffer bytes, short version) throws Exception {
        Message message = (Message) type.getDeclaredConstructor().newInstance();
        message.read(new ByteBufferAccessor(bytes), version);
        return written(message, version);
    }

    private static String written(Message message, short version) throws Exception {
        Class<?> type = message.getClass();
        return Class.forName(type.getName() + CONVERTER)
            .getMethod("write", type, short.class)
            .invoke(null, message, version)
            .toString();
    }

    private static Class<?> named(String name) throws Exception {
        for (Class<?> type : classes().values()) {
            if (type.getSimpleName().equals(name)) {
                return type;
            }
        }
        throw new IllegalArgumentException("no message " + name);
    }

    /** Whether it is a record, and no file's content, which has no type number. */
    private static boolean isRecord(Class<?> type) throws ReflectiveOperationException {
        return typeId((Message) type.getDeclaredConstructor().newInstance()) != null;
    }

    private static Integer typeId(Message message) {
        int id = message instanceof ApiMessage typed ? typed.apiKey() : -1;
        return id < 0 ? null : id;
    }

    private static short lowest(Class<?> type) throws ReflectiveOperationException {
        return type.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
    }

    private static short highest(Class<?> type) throws ReflectiveOperationException {
        return type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
    }

    private static Map<String, Class<?>> classes() throws IOException, ClassNotFoundException {
        if (found == null) {
            Map<String, Class<?>> classes = new TreeMap<>();
            for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
                for (File jar : jars(path)) {
                    addClasses(jar, classes);
                }
            }
            found = classes;
        }
        return found;
    }

    private static List<File> jars(String path) {
        File[] files = path.endsWith("*") ? new File(path).getParentFile().listFiles() : null;
        List<File> all = files == null ? List.of(new File(path)) : List.of(files);
        return all.stream().filter(file -> file.getName().matches("kafka.*\\.jar")).toList();
    }

    private static void addClasses(File file, Map<String, Class<?>> classes)
            throws IOException, ClassNotFoundException {
        try (JarFile jar = new JarFile(file)) {
            for (JarEntry entry : Collections.list(jar.entries())) {
                String path = entry.getName();
                if (path.contains("$") || !path.endsWith(CONVERTER + ".class")) {
                    continue;
                }
                String name = path.replace(CONVERTER + ".class", "").replace('/', '.');
                String folder = name.substring(0, name.lastIndexOf('.'));
                boolean isOfClients = folder.equals(CLIENTS) && !name.endsWith("Data");
                if (isOfClients || TOPICS.containsKey(folder)) {
                    classes.put(name, Class.forName(name));
                }
            }
        }
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
