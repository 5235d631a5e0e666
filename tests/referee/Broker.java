import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Time;

/** A KRaft broker, controller in the same process, and the clients that ask it. */
final class Broker {
    private final Path config;
    private final KafkaRaftServer server;
    private final Map<String, Object> clients;

    private Broker(Path config) throws IOException {
        this.config = config;
        Properties properties = new Properties();
        try (var reader = Files.newBufferedReader(config)) {
            properties.load(reader);
        }
        clients = Map.of("bootstrap.servers", properties.getProperty("advertised.listeners")
            .replaceFirst("^[A-Z]+://", ""));
        server = new KafkaRaftServer(KafkaConfig.fromProps(properties), Time.SYSTEM);
    }

    static Broker start(Path config, String clusterId, List<String> formatting) throws IOException {
        List<String> arguments = new ArrayList<>(List.of(
            "format", "--ignore-formatted", "--cluster-id", clusterId, "--config", config.toString()));
        arguments.addAll(formatting);
        StorageTool.execute(arguments.toArray(String[]::new), System.err);
        Broker broker = new Broker(config);
        broker.server.startup();
        return broker;
    }

    void stop() {
        server.shutdown();
        server.awaitShutdown();
    }

    void create(Map<String, Integer> partitions) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        partitions.forEach((topic, count) -> topics.add(new NewTopic(topic, count, (short) 1)));
        try (Admin admin = Admin.create(clients)) {
            admin.createTopics(topics).all().get();
        }
    }

    /** Gives (offset, timestamp, leader epoch or null) for each query of a partition. */
    Map<String, Object> listOffsets(Map<TopicPartition, List<String>> queries) throws Exception {
        Map<String, Object> answers = new HashMap<>();
        try (Admin admin = Admin.create(clients)) {
            Map<TopicPartition, List<ListOffsetsResult>> asked = new HashMap<>();
            queries.forEach((partition, texts) -> asked.put(partition, texts.stream()
                .map(text -> admin.listOffsets(Map.of(partition, spec(text)))).toList()));
            for (Map.Entry<TopicPartition, List<ListOffsetsResult>> entry : asked.entrySet()) {
                List<Object> found = new ArrayList<>();
                for (ListOffsetsResult result : entry.getValue()) {
                    ListOffsetsResultInfo info = result.partitionResult(entry.getKey()).get();
                    found.add(List.of(info.offset(), info.timestamp()));
                }
                answers.put(entry.getKey().toString(), found);
            }
        }
        return answers;
    }

    /** Gives what the broker knows of each producer of a partition, by its id. */
    List<Object> producers(TopicPartition partition) throws Exception {
        try (Admin admin = Admin.create(clients)) {
            return admin.describeProducers(List.of(partition)).partitionResult(partition).get()
                .activeProducers().stream()
                .sorted(Comparator.comparing(ProducerState::producerId))
                .map(ProducerState::toString).map(Object.class::cast).toList();
        }
    }

    private static OffsetSpec spec(String query) {
        return switch (query) {
            case "EARLIEST" -> OffsetSpec.earliest();
            case "LATEST" -> OffsetSpec.latest();
            case "MAX_TIMESTAMP" -> OffsetSpec.maxTimestamp();
            default -> OffsetSpec.forTimestamp(Long.parseLong(query));
        };
    }

    /** Writes every record of a partition from {@code first} on, as {@link RecordLines} does. */
    long fetch(TopicPartition partition, long first, Path target) throws IOException {
        Map<String, Object> settings = new HashMap<>(clients);
        settings.put("auto.offset.reset", "none");
        settings.put("enable.auto.commit", false);
        long count = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            Writer out = Files.newBufferedWriter(target)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, first);
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofSeconds(10));
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    out.write(RecordLines.line(
                        record.offset(), record.timestamp(), RecordLines.hex(record.key()),
                        RecordLines.hex(record.value()), record.headers()));
                    count++;
                }
            }
        }
        return count;
    }

    /** Reads a partition to its end as an application does that seeks over what it is told of. */
    Map<String, Object> consume(TopicPartition partition, List<Long> seeks) {
        Map<String, Object> settings = new HashMap<>(clients);
        settings.put("enable.auto.commit", false);
        List<List<Object>> thrown = new ArrayList<>();
        long count = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                try {
                    count += consumer.poll(Duration.ofSeconds(10)).count();
                } catch (RuntimeException e) {
                    long at = consumer.position(partition);
                    thrown.add(List.of(at, e.getClass().getSimpleName()));
                    OptionalLong behind = seeks.stream().mapToLong(Long::longValue)
                        .filter(offset -> offset >= at).findFirst();
                    if (behind.isEmpty() || thrown.size() > 20) {
                        break;
                    }
                    consumer.assign(List.of()); // or it goes on with what it has fetched
                    consumer.assign(List.of(partition));
                    consumer.seek(partition, behind.getAsLong());
                }
            }
        }
        return Map.of("records", count, "thrown", thrown);
    }
}
