import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.storage.internals.log.LazyIndex;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.RollParams;
import org.apache.kafka.storage.internals.log.TransactionIndex;

/** Asks copies of a recovered segment whether they roll, under one setting and append each. */
final class RollRuns {
    private RollRuns() {
    }

    /** One answer a case; a case lists what {@code roll} of kafka_referee.py names. */
    static Map<String, Object> run(Path directory, long base, JsonNode cases) throws IOException {
        List<Boolean> answers = new ArrayList<>();
        try (Scratch scratch = new Scratch()) {
            for (JsonNode one : cases) {
                answers.add(rolls(directory.toFile(), scratch.directory.toFile(), base, one));
            }
        }
        return Map.of("rolls", answers);
    }

    private static boolean rolls(File from, File to, long base, JsonNode one) throws IOException {
        File log = copy(LogFileUtils.logFile(from, base), to);
        File index = copy(LogFileUtils.offsetIndexFile(from, base), to);
        File timeIndex = copy(LogFileUtils.timeIndexFile(from, base), to);
        int indexBytes = one.get("segment_index_bytes").asInt();
        try (LogSegment segment = new LogSegment(
                FileRecords.open(log),
                LazyIndex.forOffset(index, base, indexBytes),
                LazyIndex.forTime(timeIndex, base, indexBytes),
                new TransactionIndex(base, LogFileUtils.transactionIndexFile(to, base, "")),
                base,
                4096,
                one.get("jitter_ms").asLong(),
                new KafkaState.StoppedClock(one.get("created_ms").asLong()))) {
            segment.resizeIndexes(indexBytes);
            return segment.shouldRoll(new RollParams(
                one.get("segment_ms").asLong(),
                one.get("segment_bytes").asInt(),
                one.get("append_timestamp_ms").asLong(),
                one.get("append_last_offset").asLong(),
                one.get("append_bytes").asInt(),
                one.get("now_ms").asLong()));
        }
    }

    private static File copy(File file, File folder) throws IOException {
        Path target = folder.toPath().resolve(file.getName());
        Files.copy(file.toPath(), target, StandardCopyOption.REPLACE_EXISTING);
        return target.toFile();
    }
}
