import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.internals.AsyncKafkaConsumer;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceListener;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producers with transactions and members of groups, kept until they are told to go. */
final class ClusterClients {
    private static final Duration WAIT = Duration.ofMillis(300);

    private final Map<String, Object> common;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new LinkedHashMap<>();
    private final Map<String, Member> members = new LinkedHashMap<>();

    ClusterClients(Map<String, Object> common) {
        this.common = common;
    }

    Map<String, Object> run(String action, JsonNode with) throws Exception {
        switch (action) {
            case "open_producer" -> openProducer(with);
            case "begin" -> producer(with).beginTransaction();
            case "send" -> send(with);
            case "send_bytes" -> sendBytes(with);
            case "send_offset" -> producer(with).sendOffsetsToTransaction(
                Map.of(
                    ClusterCommands.partition(with.get("partition")),
                    new OffsetAndMetadata(with.get("offset").asLong(), "in a transaction")),
                new ConsumerGroupMetadata(with.get("group").asText()));
            case "commit_transaction" -> producer(with).commitTransaction();
            case "abort_transaction" -> producer(with).abortTransaction();
            case "close_producer" ->
                producers.remove(with.get("producer").asText()).close(Duration.ofSeconds(10));
            case "join" -> members.put(with.get("member").asText(), join(with));
            case "poll" -> {
                return Map.of("records", poll(with));
            }
            case "leave" -> members.remove(with.get("member").asText()).close();
            default -> throw new IllegalArgumentException("unknown action " + action);
        }
        return Map.of();
    }

    private void openProducer(JsonNode with) {
        Map<String, Object> settings = new HashMap<>(common);
        JsonNode transactional = with.get("transactional_id");
        if (!transactional.isNull()) {
            settings.put("transactional.id", transactional.asText());
            settings.put("transaction.timeout.ms", with.get("timeout_ms").asInt());
        }
        boolean hasName = !with.get("client_id").isNull();
        if (hasName) {
            settings.put("client.id", with.get("client_id").asText());
        }
        settings.put("enable.idempotence", !hasName); // a commit with a producer id is pending
        settings.put("linger.ms", 0);
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
            settings, new ByteArraySerializer(), new ByteArraySerializer());
        if (!transactional.isNull()) {
            producer.initTransactions();
        }
        producers.put(with.get("producer").asText(), producer);
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode with) {
        return producers.get(with.get("producer").asText());
    }

    private void send(JsonNode with) throws Exception {
        TopicPartition partition = ClusterCommands.partition(with.get("partition"));
        JsonNode timestamp = with.get("timestamp_ms");
        for (int number = 0; number < with.get("count").asInt(); number++) {
            producer(with).send(new ProducerRecord<>(
                partition.topic(), partition.partition(),
                timestamp.isNull() ? null : timestamp.asLong(),
                ("key " + number).getBytes(), new byte[with.get("bytes").asInt()])).get();
        }
    }

    private void sendBytes(JsonNode with) throws Exception {
        TopicPartition partition = ClusterCommands.partition(with.get("partition"));
        JsonNode value = with.get("value");
        producer(with).send(new ProducerRecord<>(
            partition.topic(), partition.partition(),
            HexFormat.of().parseHex(with.get("key").asText()),
            value.isNull() ? null : HexFormat.of().parseHex(value.asText()))).get();
    }

    private Member join(JsonNode with) {
        Map<String, Object> settings = new HashMap<>(common);
        settings.put("group.id", with.get("group").asText());
        settings.put("client.id", with.get("member").asText());
        settings.put("max.poll.interval.ms", 3_600_000);
        List<String> topics = new ArrayList<>();
        with.get("topics").forEach(topic -> topics.add(topic.asText()));
        String protocol = with.get("protocol").asText();
        if (protocol.equals("share")) {
            KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(
                settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(topics);
            return new Sharing(consumer);
        }
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        if (!with.get("instance").isNull()) {
            settings.put("group.instance.id", with.get("instance").asText());
        }
        if (protocol.equals("streams")) {
            return new Consuming(streams(settings, topics));
        }
        settings.put("group.protocol", protocol);
        Consumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(topics);
        return new Consuming(consumer);
    }

    /** A member of a streams group of one subtopology that reads topics, without Kafka Streams. */
    private static Consumer<byte[], byte[]> streams(
            Map<String, Object> settings, List<String> topics) {
        settings.put("group.protocol", "consumer");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        StreamsRebalanceData data = new StreamsRebalanceData(
            UUID.randomUUID(), Optional.empty(), Optional.empty(),
            Map.of("0", new StreamsRebalanceData.Subtopology(
                Set.copyOf(topics), Set.of(), Map.of(), Map.of(), List.of())),
            Map.of("kind", "test"));
        AsyncKafkaConsumer<byte[], byte[]> consumer = new AsyncKafkaConsumer<>(
            new ConsumerConfig(settings), new ByteArrayDeserializer(), new ByteArrayDeserializer(),
            Optional.of(data));
        consumer.subscribe(topics, new StreamsRebalanceListener() {
            @Override
            public void onTasksRevoked(Set<StreamsRebalanceData.TaskId> tasks) {
            }

            @Override
            public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) {
                data.setReconciledAssignment(assignment);
            }

            @Override
            public void onAllTasksLost() {
                data.setReconciledAssignment(StreamsRebalanceData.Assignment.EMPTY);
            }
        });
        return consumer;
    }

    /** Lets members read in turns until they have so many records together; then each commits. */
    private long poll(JsonNode with) {
        long wanted = with.get("records").asLong();
        List<Member> polled = new ArrayList<>();
        with.get("members").forEach(name -> polled.add(members.get(name.asText())));
        long count = 0;
        for (int round = 0; round < with.get("rounds").asInt() && count < wanted; round++) {
            for (Member member : polled) {
                count += member.poll();
            }
        }
        if (with.get("commits").asBoolean()) {
            polled.forEach(Member::commit);
        }
        return count;
    }

    /** A member of a group. */
    private interface Member {
        long poll();

        void commit();

        void close();
    }

    private record Consuming(Consumer<byte[], byte[]> consumer) implements Member {
        @Override
        public long poll() {
            return consumer.poll(WAIT).count();
        }

        @Override
        public void commit() {
            consumer.commitSync();
        }

        @Override
        public void close() {
            consumer.close();
        }
    }

    /** A member of a share group; what it has read is accepted at the next poll or commit. */
    private record Sharing(KafkaShareConsumer<byte[], byte[]> consumer) implements Member {
        @Override
        public long poll() {
            long count = 0;
            for (ConsumerRecord<byte[], byte[]> ignored : consumer.poll(WAIT)) {
                count++;
            }
            return count;
        }

        @Override
        public void commit() {
            consumer.commitSync();
        }

        @Override
        public void close() {
            consumer.close();
        }
    }
}
