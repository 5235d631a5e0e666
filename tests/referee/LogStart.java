import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Loads a partition directory in place as a starting broker does, and closes it in order. */
final class LogStart {
    private static final int TRANSACTION_TIMEOUT_MS = 900_000;
    private static final int PRODUCER_CHECK_MS = 600_000;
    private static final int PRODUCER_EXPIRATION_MS = 86_400_000;
    private static final long NO_TRUNCATION = -1;

    private LogStart() {
    }

    static Map<String, Object> run(Path directory, JsonNode request) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        try {
            UnifiedLog log = load(directory, request, scheduler);
            long truncateTo = request.get("truncate_to").asLong();
            if (truncateTo != NO_TRUNCATION) {
                log.truncateTo(truncateTo);
            }
            List<Long> bases = log.logSegments().stream().map(LogSegment::baseOffset).toList();
            long logEndOffset = log.logEndOffset();
            log.close();
            return Map.of("base_offsets", bases, "log_end_offset", logEndOffset);
        } finally {
            scheduler.shutdown(); // what it was to delete later stays
        }
    }

    static UnifiedLog load(Path directory, JsonNode request, KafkaScheduler scheduler)
            throws Exception {
        return UnifiedLog.create(
            directory.toFile(),
            KafkaState.logConfig(
                request.get("index_interval_bytes").intValue(),
                request.get("segment_index_bytes").intValue()),
            request.get("log_start_offset").asLong(),
            request.get("recovery_point").asLong(),
            scheduler,
            new BrokerTopicStats(),
            new KafkaState.StoppedClock(request.get("now_ms").asLong()),
            TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(PRODUCER_EXPIRATION_MS, false),
            PRODUCER_CHECK_MS,
            new LogDirFailureChannel(1),
            request.get("is_clean").booleanValue(),
            Optional.empty());
    }
}
