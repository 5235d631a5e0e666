import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.TimeIndex;

/** One segment's index files as brokers of different ages leave them, and what 4.3 makes of them. */
final class IndexHistory {
    private final Path log;
    private final long base;
    private final LogConfig config;
    private final int indexIntervalBytes;
    private final int segmentIndexBytes;

    IndexHistory(Path log, int indexIntervalBytes, int segmentIndexBytes) {
        this.log = log;
        this.base = LogFileUtils.offsetFromFile(log.toFile());
        this.config = KafkaState.logConfig(indexIntervalBytes, segmentIndexBytes);
        this.indexIntervalBytes = indexIntervalBytes;
        this.segmentIndexBytes = segmentIndexBytes;
    }

    /**
     * Appends the log's batches one by one to a new segment in the directory, with Kafka's own
     * append. The broker stops cleanly before each batch whose ordinal is in {@code restarts}; where
     * {@code closed} is false it is killed in the end, and the files keep their zeros.
     */
    Map<String, Object> append(Path directory, List<Long> restarts, boolean closed)
            throws IOException {
        Files.createDirectories(directory);
        LogSegment segment = LogSegment.open(
            directory.toFile(), base, config, Time.SYSTEM, false, 0, false, "");
        segment.offsetIndex();
        segment.timeIndex();
        long ordinal = 0;
        try (FileRecords records = FileRecords.open(log.toFile(), false)) {
            for (FileChannelRecordBatch batch : records.batches()) {
                if (restarts.contains(ordinal++)) {
                    segment.close();
                    segment = LogSegment.open(
                        directory.toFile(), base, config, Time.SYSTEM, true, 0, false, "");
                    segment.resizeIndexes(segmentIndexBytes);
                }
                segment.append(batch.lastOffset(), bytesOf(batch));
            }
        }
        if (closed) {
            segment.close();
        } else {
            segment.offsetIndex().flush();
            segment.timeIndex().flush();
        }
        return Map.of("batches", ordinal);
    }

    /**
     * Writes the index files that appends of {@code setBatches} batches left before KAFKA-806: one
     * check an append, the offset of the set's first or last record, the set's position. Where
     * {@code recordOffsets} is true the time index names the first record that has the greatest
     * timestamp, as a leader up to 3.6 wrote it, else its batch's last offset.
     */
    Map<String, Object> appendSets(
            Path directory, int setBatches, boolean firstOffsets, boolean recordOffsets)
            throws IOException {
        Files.createDirectories(directory);
        Files.copy(log, directory.resolve(log.getFileName()));
        try (FileRecords records = FileRecords.open(log.toFile(), false);
            OffsetIndex offsets = new OffsetIndex(
                LogFileUtils.offsetIndexFile(directory.toFile(), base), base, segmentIndexBytes);
            TimeIndex times = new TimeIndex(
                LogFileUtils.timeIndexFile(directory.toFile(), base), base, segmentIndexBytes)) {
            Sets sets = new Sets(offsets, times, firstOffsets, recordOffsets);
            List<FileChannelRecordBatch> set = new ArrayList<>();
            for (FileChannelRecordBatch batch : records.batches()) {
                set.add(batch);
                if (set.size() == setBatches) {
                    sets.append(set);
                    set.clear();
                }
            }
            if (!set.isEmpty()) {
                sets.append(set);
            }
            times.maybeAppend(sets.maxTimestamp, sets.offsetOfMaxTimestamp, true);
            offsets.trimToValidSize();
            times.trimToValidSize();
        }
        return Map.of();
    }

    /** Loads the segment as 4.3 does after a clean stop, as the active one; appends and rolls. */
    Map<String, Object> load() throws IOException {
        File folder = log.getParent().toFile();
        Map<String, Object> facts = new LinkedHashMap<>();
        boolean hasTimeIndex = LogFileUtils.timeIndexFile(folder, base).exists();
        LogSegment segment = LogSegment.open(
            folder, base, config, Time.SYSTEM, true, 0, false, "");
        facts.put("sanity", thrown(() -> segment.sanityCheck(!hasTimeIndex)));
        facts.put("largestTimestamp", segment.largestTimestamp());
        facts.put("nextOffset", segment.readNextOffset());
        facts.put("indexEntries", segment.offsetIndex().entries());
        facts.put("timeIndexEntries", segment.timeIndex().entries());
        long next = segment.readNextOffset();
        segment.resizeIndexes(segmentIndexBytes);
        MemoryRecords record = MemoryRecords.withRecords(
            RecordBatch.MAGIC_VALUE_V2,
            next,
            Compression.NONE,
            TimestampType.CREATE_TIME,
            new SimpleRecord(Time.SYSTEM.milliseconds(), new byte[10]));
        facts.put("append", thrown(() -> segment.append(next, record)));
        facts.put("roll", thrown(segment::onBecomeInactiveSegment));
        segment.close();
        return facts;
    }

    private interface Action {
        void run() throws Exception;
    }

    /** Names what an action throws, or null. */
    private static String thrown(Action action) {
        try {
            action.run();
            return null;
        } catch (Exception refusal) {
            return refusal.getClass().getName();
        }
    }

    private MemoryRecords bytesOf(FileChannelRecordBatch batch) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(batch.sizeInBytes());
        try (FileChannel channel = FileChannel.open(log)) {
            channel.read(bytes, batch.position());
        }
        bytes.flip();
        return MemoryRecords.readableRecords(bytes);
    }

    /** The append path before KAFKA-806, on Kafka's own index classes. */
    private final class Sets {
        private final OffsetIndex offsets;
        private final TimeIndex times;
        private final boolean firstOffsets;
        private final boolean recordOffsets;
        private long bytesSinceLastEntry;
        private long maxTimestamp = RecordBatch.NO_TIMESTAMP;
        private long offsetOfMaxTimestamp = base;

        Sets(OffsetIndex offsets, TimeIndex times, boolean firstOffsets, boolean recordOffsets) {
            this.offsets = offsets;
            this.times = times;
            this.firstOffsets = firstOffsets;
            this.recordOffsets = recordOffsets;
        }

        void append(List<FileChannelRecordBatch> set) throws IOException {
            for (RecordBatch batch : set) {
                if (batch.maxTimestamp() > maxTimestamp) {
                    maxTimestamp = batch.maxTimestamp();
                    offsetOfMaxTimestamp = recordOffsets ? recordWithMax(batch) : batch.lastOffset();
                }
            }
            if (bytesSinceLastEntry > indexIntervalBytes) {
                long offset = firstOffsets
                    ? set.get(0).baseOffset() : set.get(set.size() - 1).lastOffset();
                offsets.append(offset, set.get(0).position());
                times.maybeAppend(maxTimestamp, offsetOfMaxTimestamp);
                bytesSinceLastEntry = 0;
            }
            for (FileChannelRecordBatch batch : set) {
                bytesSinceLastEntry += batch.sizeInBytes();
            }
        }

        private long recordWithMax(RecordBatch batch) {
            for (Record record : batch) {
                if (record.timestamp() == batch.maxTimestamp()) {
                    return record.offset();
                }
            }
            return batch.lastOffset();
        }
    }
}
