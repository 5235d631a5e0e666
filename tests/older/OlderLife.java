import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What clients of an older release let its broker write; run with that release's JARs. */
public final class OlderLife {
    private static final String OFFSETS = "__consumer_offsets";
    private static final List<String> COORDINATED = List.of(OFFSETS, "__transaction_state");
    private static final Map<String, String> CLEANED_AT_ONCE = Map.of(
        "segment.ms", "1500", "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "1000");

    private static String bootstrap;
    private static Admin admin;
    private static Random draw;

    public static void main(String[] given) throws Exception {
        bootstrap = given[1];
        admin = Admin.create(settings(
            "default.api.timeout.ms", "30000", "request.timeout.ms", "10000"));
        try {
            act(given[0], List.of(given).subList(2, given.length));
        } catch (ApiException withoutTrace) { // the launcher of a source file does not print it
            throw new IllegalStateException(withoutTrace);
        }
        System.exit(0); // as a client that dies: members do not leave
    }

    private static void act(String action, List<String> given) throws Exception {
        switch (action) {
            case "live" -> live(drawn(given));
            case "live-on" -> liveOn(drawn(given));
            case "send" -> send(given.get(0), given.subList(1, given.size()));
            case "committed" -> committed(given);
            default -> throw new IllegalArgumentException(action);
        }
    }

    /** Takes the seed, and gives what follows: what the broker can besides. */
    private static List<String> drawn(List<String> given) {
        draw = new Random(Long.parseLong(given.get(0)));
        return given.subList(1, given.size());
    }

    private static Properties settings(String... more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < more.length; i += 2) {
            settings.put(more[i], more[i + 1]);
        }
        return settings;
    }

    private static void live(List<String> abilities) throws Exception {
        create("orders", 2, Map.of());
        create("gone", 1, Map.of("retention.ms", "5000"));
        alter("orders", Map.of("retention.ms", drawnNumber(), "max.message.bytes", "100000"));
        alter("orders", Map.of("retention.ms", drawnNumber()));
        admin.createPartitions(Map.of("orders", NewPartitions.increaseTo(3))).all().get();
        limit("producer_byte_rate", 1024.0);
        limit("request_percentage", 50.0);
        limit("request_percentage", null);
        if (abilities.contains("scram")) {
            keepPassword(4096);
            keepPassword(8192);
        }
        for (int number = 0; number < 3 + draw.nextInt(3); number++) {
            transact("t-" + number % 3, draw.nextBoolean());
        }
        read("classic", "passing-by", true);
        commit("by-hand", 1 + draw.nextInt(4));
        commit("forgotten", 2);
        admin.deleteConsumerGroups(List.of("forgotten")).all().get();
        admin.deleteTopics(List.of("gone")).all().get();
        if (abilities.contains("tiered")) {
            tier();
        }
        compact();
    }

    /** Lives on after the broker died; at the end a transaction is open, and members stay. */
    private static void liveOn(List<String> abilities) throws Exception {
        create("late", 1, Map.of("cleanup.policy", "compact"));
        alter("orders", Map.of("retention.ms", drawnNumber()));
        alter("orders", List.of("max.message.bytes"));
        transact("t-0", draw.nextBoolean());
        begin("timed-out", 6_000);
        Thread.sleep(9_000);
        commit("by-hand", 1 + draw.nextInt(4));
        admin.deleteConsumerGroupOffsets("by-hand", Set.of(new TopicPartition("orders", 1)))
            .all().get();
        begin("left-open", 900_000);
        read("classic", "staying", false);
        if (abilities.contains("consumer")) { // 3.9 does not load such a group from a cleaned log
            read("consumer", "staying", false);
        }
        Thread.sleep(2_000);
    }

    private static String drawnNumber() {
        return String.valueOf(1_000_000 + draw.nextInt(1_000_000));
    }

    private static void create(String name, int partitions, Map<String, String> configs)
            throws Exception {
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(configs)))
            .all().get();
    }

    private static void alter(String topic, Map<String, String> values) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        values.forEach((name, value) -> changes.add(
            new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        change(topic, changes);
    }

    private static void alter(String topic, Iterable<String> removed) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        removed.forEach(name -> changes.add(
            new AlterConfigOp(new ConfigEntry(name, null), AlterConfigOp.OpType.DELETE)));
        change(topic, changes);
    }

    private static void change(String topic, List<AlterConfigOp> changes) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    private static void limit(String name, Double value) throws Exception {
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "alice")),
            List.of(new ClientQuotaAlteration.Op(name, value))))).all().get();
    }

    private static void keepPassword(int iterations) throws Exception {
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(
            "alice", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, iterations), "secret")))
            .all().get();
    }

    private static KafkaProducer<byte[], byte[]> producer(String... more) {
        return new KafkaProducer<>(
            settings(more), new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Begins a transaction in two partitions; it stays open until its producer acts, or the end. */
    private static KafkaProducer<byte[], byte[]> begin(String id, int timeoutMs) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(
            "transactional.id", id, "transaction.timeout.ms", String.valueOf(timeoutMs));
        producer.initTransactions();
        producer.beginTransaction();
        for (int partition = 0; partition < 2; partition++) {
            producer.send(new ProducerRecord<>(
                "orders", partition, "key".getBytes(), id.getBytes())).get();
        }
        return producer;
    }

    private static void transact(String id, boolean commits) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = begin(id, 60_000)) {
            producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition("orders", 1), new OffsetAndMetadata(1, "exactly")),
                new ConsumerGroupMetadata("exactly-once"));
            if (commits) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
    }

    private static void read(String protocol, String what, boolean leaves) {
        Properties settings = settings(
            "group.id", protocol + "-" + what, "client.id", "reader",
            "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        if (protocol.equals("classic")) {
            settings.put("session.timeout.ms", "120000");
        } else {
            settings.put("group.protocol", protocol);
        }
        KafkaConsumer<byte[], byte[]> reader = new KafkaConsumer<>(
            settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        reader.subscribe(Set.of("orders"));
        int found = 0;
        for (int i = 0; i < 60 && found < 4; i++) {
            int more = reader.poll(Duration.ofMillis(500)).count();
            found += more;
            if (more > 0) {
                reader.commitSync();
            }
        }
        if (leaves) {
            reader.close();
        }
    }

    private static void commit(String group, int times) throws Exception {
        for (long offset = 1; offset <= times; offset++) {
            admin.alterConsumerGroupOffsets(group, Map.of(
                new TopicPartition("orders", 0), new OffsetAndMetadata(offset, "by hand"),
                new TopicPartition("orders", 1), new OffsetAndMetadata(offset)))
                .all().get();
        }
    }

    /** Lets the cleaner at what lies there; what is written after that is history again. */
    private static void compact() throws Exception {
        for (String topic : COORDINATED) {
            alter(topic, CLEANED_AT_ONCE);
        }
        for (int number = 0; number < 6; number++) {
            transact("churning", true);
            commit("by-hand", 1);
            Thread.sleep(1_000);
        }
        for (String topic : COORDINATED) {
            alter(topic, CLEANED_AT_ONCE.keySet());
        }
        commit("by-hand", 3);
    }

    private static void tier() throws Exception {
        for (String topic : List.of("tiered", "tiered-gone")) {
            create(topic, 1, Map.of(
                "remote.storage.enable", "true", "segment.ms", "1000",
                "local.retention.ms", "1000", "retention.ms", "-1"));
        }
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            for (int number = 0; number < 4; number++) {
                for (String topic : List.of("tiered", "tiered-gone")) {
                    producer.send(new ProducerRecord<>(topic, 0, null, new byte[50])).get();
                }
                Thread.sleep(1_300);
            }
        }
        Thread.sleep(2_000);
        admin.deleteTopics(List.of("tiered-gone")).all().get();
    }

    /** Sends records, each a partition, a key and a value; only this client may, by its name. */
    private static void send(String topic, List<String> records) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(
                "client.id", "__admin_client", "enable.idempotence", "false")) {
            for (int i = 0; i < records.size(); i += 3) {
                producer.send(new ProducerRecord<>(
                    topic, Integer.parseInt(records.get(i)),
                    HexFormat.of().parseHex(records.get(i + 1)),
                    records.get(i + 2).isEmpty() ? null : HexFormat.of().parseHex(records.get(i + 2)))).get();
            }
        }
    }

    private static void committed(List<String> groups) {
        for (String group : groups) {
            System.out.println(group + " " + committed(group));
        }
    }

    private static String committed(String group) {
        try {
            List<String> told = new ArrayList<>();
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                .forEach((partition, offset) -> told.add(
                    partition + "=" + (offset == null ? null : offset.offset())));
            Collections.sort(told);
            return told.toString();
        } catch (ExecutionException refused) {
            return refused.getCause().toString();
        } catch (InterruptedException ended) {
            throw new IllegalStateException(ended);
        }
    }
}
