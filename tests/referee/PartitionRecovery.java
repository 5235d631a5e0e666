import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.errors.InvalidOffsetException;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.TimestampOffset;
import org.xerial.snappy.SnappyError;

/**
 * Recovers every segment of a partition directory on its own, in ascending order.
 *
 * <p>Producer state and leader epochs are carried from segment to segment and kept outside the
 * directory. A segment that is emptied or that cannot be recovered leaves no trace in the producer
 * state of those after it. Where one ends at a marker that cannot be parsed, Kafka throws before it
 * recovers those after it: it reads the marker again, as the producer state does not reach behind it.
 * It does not if the marker reaches into the next segment, or lies behind its start.
 */
final class PartitionRecovery {
    private final Path directory;
    private final LogConfig config;
    private final Time time;

    PartitionRecovery(Path directory, int indexIntervalBytes, int segmentIndexBytes, long nowMs) {
        this.directory = directory;
        this.config = KafkaState.logConfig(indexIntervalBytes, segmentIndexBytes);
        this.time = new KafkaState.StoppedClock(nowMs);
    }

    Map<String, Object> run() throws IOException {
        List<Object> segments = new ArrayList<>();
        try (Scratch scratch = new Scratch()) {
            LeaderEpochFileCache epochs = KafkaState.leaderEpochs(scratch.directory);
            ProducerStateManager producers = KafkaState.producers(scratch.directory, time);
            Exception unread = null;
            long unreadEnd = 0;
            for (Path log : logsOf(directory)) {
                long baseOffset = LogFileUtils.offsetFromFile(log.toFile());
                producers.updateMapEndOffset(baseOffset);
                producers.takeSnapshot();
                if (unread != null && unreadEnd <= baseOffset) {
                    segments.add(failure(log, baseOffset, unread));
                    continue;
                }
                Map<String, Object> segment = recover(log, baseOffset, producers, epochs);
                segments.add(segment);
                if (!segment.containsKey("threw")) {
                    unread = readAgain(log, segment, producers.mapEndOffset());
                    unreadEnd = (long) segment.get("nextOffset");
                }
                if (segment.containsKey("caught") || segment.containsKey("threw")) {
                    producers = KafkaState.producers(scratch.directory, time);
                    producers.truncateAndReload(0, baseOffset, time.milliseconds());
                }
            }
        }
        return Map.of("segments", segments);
    }

    /** The segments of a partition directory, in ascending order. */
    static List<Path> logsOf(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> LogFileUtils.isLogFile(file.toFile())).sorted().toList();
        }
    }

    private Map<String, Object> recover(
            Path log, long baseOffset, ProducerStateManager producers, LeaderEpochFileCache epochs)
            throws IOException {
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("baseOffset", baseOffset);
        facts.put("fileBytes", Files.size(log));
        LogSegment segment = null;
        try {
            segment = LogSegment.open(
                directory.toFile(), baseOffset, config, time, true, 0, false, "");
            facts.putAll(recoverOpened(segment, producers, epochs));
            segment.close();
        } catch (Exception | SnappyError fatal) {
            abandon(segment, baseOffset);
            return failure(log, baseOffset, fatal);
        }
        return facts;
    }

    private static Map<String, Object> failure(Path log, long baseOffset, Throwable fatal)
            throws IOException {
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("baseOffset", baseOffset);
        facts.put("fileBytes", Files.size(log));
        facts.put("threw", fatal.getClass().getName());
        facts.put("message", withoutMtime(fatal.getMessage()));
        return facts;
    }

    /** Reads a recovered segment's last batch as UnifiedLog.rebuildProducerState does. */
    private static Exception readAgain(Path log, Map<String, Object> segment, long reached)
            throws IOException {
        if (!segment.containsKey("nextOffset") || (long) segment.get("nextOffset") <= reached) {
            return null;
        }
        RecordBatch last = null;
        try (FileRecords records = FileRecords.open(log.toFile(), false)) {
            for (RecordBatch batch : records.batches()) {
                last = batch;
            }
            if (last != null && last.hasProducerId() && last.isControlBatch()) {
                Iterator<Record> markers = last.iterator();
                if (markers.hasNext()) {
                    EndTransactionMarker.deserialize(markers.next());
                }
            }
            return null;
        } catch (CorruptRecordException | InvalidRecordException bad) {
            return bad;
        }
    }

    /** Does what the broker's LogLoader does with a segment past the recovery point. */
    private static Map<String, Object> recoverOpened(
            LogSegment segment, ProducerStateManager producers, LeaderEpochFileCache epochs)
            throws IOException {
        int bytesBefore = segment.size();
        InvalidOffsetException caught = null;
        int returned;
        try {
            returned = segment.recover(producers, epochs);
        } catch (InvalidOffsetException invalidOffset) {
            caught = invalidOffset;
            returned = segment.truncateTo(segment.baseOffset());
        }
        Map<String, Object> facts = factsOf(segment, bytesBefore, returned);
        if (caught != null) {
            facts.put("caught", caught.getClass().getName());
        }
        return facts;
    }

    private static Map<String, Object> factsOf(LogSegment segment, int bytesBefore, int returned)
            throws IOException {
        TimestampOffset largest = segment.readMaxTimestampAndOffsetSoFar();
        long firstBatchTimestamp = segment.getFirstBatchTimestamp();
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("validBytes", segment.size());
        facts.put("truncatedBytes", bytesBefore - segment.size());
        facts.put("recoverReturned", returned);
        facts.put("indexEntries", segment.offsetIndex().entries());
        facts.put("timeIndexEntries", segment.timeIndex().entries());
        facts.put("largestTimestamp", largest.timestamp());
        facts.put("offsetOfLargestTimestamp", largest.offset());
        // Kafka answers Long.MAX_VALUE where the first batch has no timestamp.
        facts.put("firstBatchTimestamp",
            firstBatchTimestamp == Long.MAX_VALUE ? -1 : firstBatchTimestamp);
        facts.put("nextOffset", segment.readNextOffset());
        return facts;
    }

    private void abandon(LogSegment segment, long baseOffset) throws IOException {
        if (segment != null) {
            segment.close();
        }
        File folder = directory.toFile();
        Files.deleteIfExists(LogFileUtils.offsetIndexFile(folder, baseOffset).toPath());
        Files.deleteIfExists(LogFileUtils.timeIndexFile(folder, baseOffset).toPath());
        Files.deleteIfExists(LogFileUtils.transactionIndexFile(folder, baseOffset).toPath());
    }

    private static String withoutMtime(String message) {
        return String.valueOf(message).replaceAll("lastModifiedTime=\\d+", "lastModifiedTime=?");
    }
}
