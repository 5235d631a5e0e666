import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Loads a log and lets the log cleaner at it once, as its thread does. */
final class CleanerRuns {
    private CleanerRuns() {
    }

    /** Gives the offset up to which the log is clean then, as the cleaner's checkpoint has it, and what is left. */
    static Map<String, Object> run(Path directory, JsonNode request) throws Exception {
        long now = request.get("now").asLong();
        KafkaState.StoppedClock clock = new KafkaState.StoppedClock(now);
        UnifiedLog log = load(directory, request, clock);
        try {
            log.updateHighWatermark(log.logEndOffset());
            Cleaner cleaner = new Cleaner(
                0, new SkimpyOffsetMap(request.get("map_bytes").asInt()), 1 << 16, 1 << 20, 0.9,
                new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner", "bytes", clock),
                clock, partition -> { });
            long until = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
            long from = request.get("first_dirty").asLong();
            Map<String, Object> left = new HashMap<>();
            left.put("clean", from);
            try {
                if (until > from) {
                    left.put("clean", cleaner.doClean(new LogToClean(log, from, until, true), now).getKey());
                }
                left.putAll(count(log));
                return left;
            } catch (RuntimeException e) {
                return Map.of("throws", e.getClass().getSimpleName(), "message", String.valueOf(e.getMessage()));
            }
        } finally {
            log.closeHandlers();
        }
    }

    private static Map<String, Object> count(UnifiedLog log) {
        long records = 0;
        long tombstones = 0;
        long markers = 0;
        for (LogSegment segment : log.logSegments()) {
            for (RecordBatch batch : segment.log().batches()) {
                if (batch.isControlBatch()) {
                    markers++;
                    continue;
                }
                for (Record record : batch) {
                    records++;
                    tombstones += record.hasValue() ? 0 : 1;
                }
            }
        }
        return Map.of("records", records, "tombstones", tombstones, "markers", markers);
    }

    private static UnifiedLog load(
            Path directory, JsonNode request, KafkaState.StoppedClock clock) throws Exception {
        return UnifiedLog.create(
            directory.toFile(),
            new LogConfig(Map.of(
                "cleanup.policy", "compact",
                "delete.retention.ms", request.get("delete_retention_ms").asText())),
            0L,
            0L,
            new KafkaState.IdleScheduler(),
            new BrokerTopicStats(true),
            clock,
            900_000,
            new ProducerStateManagerConfig(86_400_000, false),
            600_000,
            new LogDirFailureChannel(1),
            request.get("is_clean").asBoolean(),
            Optional.empty(),
            new ConcurrentHashMap<>(),
            true,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }
}
