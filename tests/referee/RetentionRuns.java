import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Loads logs with the segments that were asked for, and runs the broker's retention over each. */
final class RetentionRuns {
    private RetentionRuns() {
    }

    static Map<String, Object> run(JsonNode logs) throws IOException {
        List<Object> left = new ArrayList<>();
        for (JsonNode log : logs) {
            try (Scratch scratch = new Scratch()) {
                left.add(segmentsLeft(log, Files.createDirectory(scratch.directory.resolve("t-0"))));
            }
        }
        return Map.of("left", left);
    }

    private static List<Long> segmentsLeft(JsonNode request, Path folder) throws IOException {
        for (JsonNode segment : request.get("segments")) {
            Files.write(logOf(folder, segment), batch(segment));
        }
        UnifiedLog log = load(request, folder);
        try {
            for (JsonNode segment : request.get("segments")) {
                logOf(folder, segment).toFile().setLastModified(segment.get("mtime").asLong());
            }
            JsonNode watermark = request.get("high_watermark");
            log.updateHighWatermark(
                watermark.isNull() ? log.logEndOffset() : watermark.asLong());
            if (!request.get("highest_remote").isNull()) {
                log.updateHighestOffsetInRemoteStorage(request.get("highest_remote").asLong());
            }
            log.deleteOldSegments();
            return log.logSegments().stream().map(LogSegment::baseOffset).toList();
        } finally {
            log.closeHandlers();
        }
    }

    private static UnifiedLog load(JsonNode request, Path folder) throws IOException {
        Map<String, String> config = new HashMap<>();
        request.get("config").properties().forEach(
            entry -> config.put(entry.getKey(), entry.getValue().asText()));
        return UnifiedLog.create(
            folder.toFile(),
            new LogConfig(config),
            request.get("log_start").asLong(),
            0L,
            new KafkaState.IdleScheduler(),
            new BrokerTopicStats(true),
            new KafkaState.StoppedClock(request.get("now").asLong()),
            900_000,
            new ProducerStateManagerConfig(86_400_000, false),
            600_000,
            new LogDirFailureChannel(1),
            false,
            Optional.empty(),
            new ConcurrentHashMap<>(),
            true,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    private static Path logOf(Path folder, JsonNode segment) {
        return LogFileUtils.logFile(folder.toFile(), segment.get("base").asLong()).toPath();
    }

    /** One batch of the size asked for, or no bytes. */
    private static byte[] batch(JsonNode segment) {
        int wanted = segment.get("bytes").intValue();
        for (int padding = 0; padding < wanted; padding++) {
            ByteBuffer batch = records(segment, padding).buffer();
            if (batch.remaining() >= wanted) {
                byte[] bytes = new byte[batch.remaining()];
                batch.get(bytes);
                if (bytes.length != wanted) {
                    throw new IllegalArgumentException("no batch has " + wanted + " bytes");
                }
                return bytes;
            }
        }
        return new byte[0];
    }

    private static MemoryRecords records(JsonNode segment, int padding) {
        long base = segment.get("base").asLong();
        int count = (int) (segment.get("next").asLong() - base);
        SimpleRecord[] records = new SimpleRecord[count];
        for (int number = 0; number < count; number++) {
            byte[] value = new byte[number == 0 ? padding : 0];
            records[number] = new SimpleRecord(segment.get("timestamp").asLong(), null, value);
        }
        return MemoryRecords.withRecords(
            RecordBatch.MAGIC_VALUE_V2, base, Compression.NONE, TimestampType.CREATE_TIME, records);
    }
}
