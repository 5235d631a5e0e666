import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AbstractIndex;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.TimestampOffset;

/** Truncates copies of a segment with its indexes, one for each offset asked. */
final class Truncation {
    private final Path directory;
    private final long base;
    private final LogConfig config;

    Truncation(Path directory, long base, int segmentIndexBytes) {
        this.directory = directory;
        this.base = base;
        this.config = KafkaState.logConfig(4096, segmentIndexBytes);
    }

    Map<String, Object> run(List<Long> offsets) throws IOException {
        List<Object> answers = new ArrayList<>();
        for (long offset : offsets) {
            try (Scratch scratch = new Scratch()) {
                answers.add(truncate(scratch, offset));
            }
        }
        return Map.of("truncated", answers);
    }

    private Map<String, Object> truncate(Scratch scratch, long offset) throws IOException {
        File folder = directory.toFile();
        copy(LogFileUtils.logFile(folder, base), scratch);
        copy(LogFileUtils.offsetIndexFile(folder, base), scratch);
        copy(LogFileUtils.timeIndexFile(folder, base), scratch);
        Time time = new KafkaState.StoppedClock(0);
        Map<String, Object> answer = new LinkedHashMap<>();
        try (LogSegment segment = LogSegment.open(
                scratch.directory.toFile(), base, config, time, true, 0, false, "")) {
            segment.readMaxTimestampAndOffsetSoFar(); // else truncation does not reload it
            segment.truncateTo(offset);
            TimestampOffset largest = segment.readMaxTimestampAndOffsetSoFar();
            answer.put("log_bytes", segment.size());
            answer.put("max_timestamp", largest.timestamp());
            answer.put("offset_of_max_timestamp", largest.offset());
            answer.put("offset_index", indexOf(segment.offsetIndex(), 8));
            answer.put("time_index", indexOf(segment.timeIndex(), 12));
        }
        return answer;
    }

    private static Map<String, Object> indexOf(AbstractIndex index, int entryBytes)
            throws IOException {
        index.flush();
        byte[] bytes = Files.readAllBytes(index.file().toPath());
        byte[] entries = Arrays.copyOf(bytes, index.entries() * entryBytes);
        return Map.of(
            "entries", HexFormat.of().formatHex(entries),
            "file_bytes", bytes.length,
            "max_entries", index.maxEntries(),
            "is_full", index.isFull());
    }

    private static void copy(File file, Scratch scratch) throws IOException {
        Files.copy(file.toPath(), scratch.directory.resolve(file.getName()));
    }
}
