import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.utils.Time;
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

    static Map<String, Object> run(
            Path directory, boolean isClean, long recoveryPoint, long truncateTo)
            throws Exception {
        Time time = new KafkaState.StoppedClock(0);
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(
            directory.toFile(),
            KafkaState.logConfig(4096, 10_485_760),
            0,
            recoveryPoint,
            scheduler,
            new BrokerTopicStats(),
            time,
            TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(PRODUCER_EXPIRATION_MS, false),
            PRODUCER_CHECK_MS,
            new LogDirFailureChannel(1),
            isClean,
            Optional.empty());
        if (truncateTo != NO_TRUNCATION) {
            log.truncateTo(truncateTo);
        }
        List<Long> bases = log.logSegments().stream().map(LogSegment::baseOffset).toList();
        long logEndOffset = log.logEndOffset();
        log.close();
        scheduler.shutdown(); // what it was to delete later stays
        return Map.of("base_offsets", bases, "log_end_offset", logEndOffset);
    }
}
