import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Draws the compacted logs of a log directory, writes them, and has the cleaner's manager choose. */
final class CleanerPicks {
    private static final short TRANSACTION_VERSION = 1;
    private final Path directory;
    private final long now;
    private final Random random;
    private final LogDirFailureChannel failures = new LogDirFailureChannel(1);

    private CleanerPicks(Path directory, long now, long seed) {
        this.directory = directory;
        this.now = now;
        this.random = new Random(seed);
    }

    /** Gives what it makes of each log, and those that it would clean, one after another. */
    static Map<String, Object> run(Path directory, JsonNode request) throws Exception {
        return new CleanerPicks(
            directory, request.get("now").asLong(), request.get("seed").asLong())
            .draw(request.get("logs").intValue());
    }

    private Map<String, Object> draw(int count) throws Exception {
        ConcurrentHashMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>();
        Map<TopicPartition, Long> cleaned = new HashMap<>();
        Map<TopicPartition, Long> starts = new HashMap<>();
        Map<TopicPartition, Long> watermarks = new HashMap<>();
        Map<String, Object> drawn = new HashMap<>();
        for (int number = 0; number < count; number++) {
            Map<String, String> config = config();
            UnifiedLog log = fill("t" + number + "-0", config);
            TopicPartition partition = log.topicPartition();
            logs.put(partition, log);
            starts.put(partition, log.logStartOffset());
            watermarks.put(partition, log.highWatermark());
            if (random.nextInt(4) > 0) {
                long end = log.logEndOffset();
                cleaned.put(partition, random.nextLong(random.nextBoolean() ? end + 10 : end / 2 + 1));
            }
            drawn.put(partition.topic(), new HashMap<>(Map.of("config", config)));
        }
        write(LogCleanerManager.OFFSET_CHECKPOINT_FILE, cleaned);
        write("log-start-offset-checkpoint", starts);
        write("replication-offset-checkpoint", watermarks);
        for (UnifiedLog log : logs.values()) {
            @SuppressWarnings("unchecked")
            Map<String, Object> of = (Map<String, Object>) drawn.get(log.topicPartition().topic());
            of.putAll(view(log, Optional.ofNullable(cleaned.get(log.topicPartition()))));
        }
        LogCleanerManager manager = new LogCleanerManager(
            List.of(directory.toFile()), logs, failures);
        List<List<Object>> picks = new ArrayList<>();
        Optional<LogToClean> next = pick(manager);
        while (next.isPresent()) {
            picks.add(List.of(next.get().topicPartition().topic(), next.get().cleanableRatio()));
            next = pick(manager);
        }
        write(LogCleanerManager.OFFSET_CHECKPOINT_FILE, cleaned); // it has put wrong entries right
        for (UnifiedLog log : logs.values()) {
            log.flush(true);
            log.closeHandlers();
        }
        return Map.of("logs", drawn, "picks", picks);
    }

    private Optional<LogToClean> pick(LogCleanerManager manager) {
        return manager.grabFilthiestCompactedLog(
            new KafkaState.StoppedClock(now), new PreCleanStats());
    }

    private Map<String, String> config() {
        Map<String, String> config = new HashMap<>();
        config.put("cleanup.policy", random.nextBoolean() ? "compact" : "compact,delete");
        config.put("min.cleanable.dirty.ratio", List.of("0", "0.1", "0.5", "0.9").get(random.nextInt(4)));
        config.put("min.compaction.lag.ms", List.of("0", "0", "20000", "60000").get(random.nextInt(4)));
        config.put("max.compaction.lag.ms",
            List.of("" + Long.MAX_VALUE, "" + Long.MAX_VALUE, "60000", "90000").get(random.nextInt(4)));
        return config;
    }

    private UnifiedLog fill(String name, Map<String, String> config) throws Exception {
        Map<String, String> own = new HashMap<>(config);
        own.put("segment.bytes", "" + (1_048_576));
        Path folder = Files.createDirectory(directory.resolve(name));
        UnifiedLog log = UnifiedLog.create(
            folder.toFile(), new LogConfig(own), 0L, 0L, new KafkaState.IdleScheduler(),
            new BrokerTopicStats(true), new KafkaState.StoppedClock(now), 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, failures, false,
            Optional.empty(), new ConcurrentHashMap<>(), true,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        int batches = random.nextInt(40);
        Map<Long, Integer> open = new HashMap<>();
        for (int number = 0; number < batches; number++) {
            if (random.nextInt(5) == 0 && log.activeSegment().size() > 0) {
                log.roll();
            }
            long timestamp = random.nextInt(20) == 0 ? -1 : now - 120_000 + number * 3_000L;
            long producer = random.nextInt(3);
            if (open.containsKey(producer) && random.nextInt(2) == 0) {
                log.appendAsLeader(
                    MemoryRecords.withEndTransactionMarker(
                        now, producer, (short) 0,
                        new EndTransactionMarker(ControlRecordType.COMMIT, 0)),
                    0, AppendOrigin.COORDINATOR, RequestLocal.noCaching(),
                    VerificationGuard.SENTINEL, TRANSACTION_VERSION);
                open.remove(producer);
            } else if (random.nextInt(6) == 0) {
                int sequence = open.getOrDefault(producer, 0);
                log.appendAsLeader(
                    MemoryRecords.withTransactionalRecords(
                        Compression.NONE, producer, (short) 0, next.merge(name + producer, 1, Integer::sum) - 1,
                        record(timestamp)),
                    0);
                open.put(producer, sequence + 1);
            } else {
                log.appendAsLeader(
                    MemoryRecords.withRecords(Compression.NONE, record(timestamp)), 0);
            }
        }
        long end = log.logEndOffset();
        log.updateHighWatermark(random.nextInt(3) > 0 ? end : random.nextLong(end + 1));
        if (random.nextInt(3) == 0) {
            log.maybeIncrementLogStartOffset(
                random.nextLong(log.highWatermark() + 1),
                LogStartOffsetIncrementReason.ClientRecordDeletion);
        }
        return log;
    }

    private final Map<String, Integer> next = new HashMap<>();

    private SimpleRecord record(long timestamp) {
        byte[] key = {(byte) random.nextInt(20)};
        return new SimpleRecord(timestamp, key, new byte[random.nextInt(300)]);
    }

    private Map<String, Object> view(UnifiedLog log, Optional<Long> cleaned) throws Exception {
        Method offsets = LogCleanerManager.class.getDeclaredMethod(
            "cleanableOffsets", UnifiedLog.class, Optional.class, long.class);
        offsets.setAccessible(true);
        Object found = offsets.invoke(null, log, cleaned, now);
        long firstDirty = offset(found, "firstDirtyOffset");
        long until = offset(found, "firstUncleanableDirtyOffset");
        Method delay = LogCleanerManager.class.getDeclaredMethod(
            "maxCompactionDelay", UnifiedLog.class, long.class, long.class);
        delay.setAccessible(true);
        LogToClean clean = new LogToClean(
            log, firstDirty, until, false);
        return Map.of(
            "first_dirty", firstDirty,
            "until", until,
            "clean_bytes", clean.cleanBytes(),
            "cleanable_bytes", clean.cleanableBytes(),
            "overdue_ms", (long) delay.invoke(null, log, firstDirty, now),
            "bases", log.logSegments().stream().map(LogSegment::baseOffset).toList());
    }

    private static long offset(Object offsets, String name) throws Exception {
        Method method = offsets.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return (long) method.invoke(offsets);
    }

    private void write(String name, Map<TopicPartition, Long> offsets) throws IOException {
        new OffsetCheckpointFile(new File(directory.toFile(), name), failures).write(offsets);
    }
}
