import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.storage.internals.log.AbstractIndex;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.TimestampOffset;

/** Asks Kafka what it reads in index files that somebody else wrote. */
final class IndexLookup {
    private static final int SIZE_OF_THE_FILE = -1;

    private IndexLookup() {
    }

    static Map<String, Object> run(
            Path directory, long base, List<Long> offsets, List<Long> timestamps)
            throws IOException {
        File folder = directory.toFile();
        try (Scratch scratch = new Scratch()) {
            File offsetCopy = copy(LogFileUtils.offsetIndexFile(folder, base), scratch);
            File timeCopy = copy(LogFileUtils.timeIndexFile(folder, base), scratch);
            Map<String, Object> answer = new LinkedHashMap<>();
            try (OffsetIndex offsetIndex =
                    new OffsetIndex(offsetCopy, base, SIZE_OF_THE_FILE, false);
                TimeIndex timeIndex = new TimeIndex(timeCopy, base, SIZE_OF_THE_FILE, false)) {
                answer.put("offsets", lookUpOffsets(offsetIndex, offsets));
                answer.put("timestamps", lookUpTimestamps(timeIndex, timestamps));
                answer.put("offset_index_entries", offsetIndex.entries());
                answer.put("time_index_entries", timeIndex.entries());
                answer.put("offset_index_sanity", sanityOf(offsetIndex));
                answer.put("time_index_sanity", sanityOf(timeIndex));
            }
            return answer;
        }
    }

    private static File copy(File index, Scratch scratch) throws IOException {
        return Files.copy(index.toPath(), scratch.directory.resolve(index.getName())).toFile();
    }

    private static List<Object> lookUpOffsets(OffsetIndex index, List<Long> offsets) {
        List<Object> found = new ArrayList<>();
        for (long offset : offsets) {
            OffsetPosition entry = index.lookup(offset);
            found.add(List.of(entry.offset(), entry.position()));
        }
        return found;
    }

    private static List<Object> lookUpTimestamps(TimeIndex index, List<Long> timestamps) {
        List<Object> found = new ArrayList<>();
        for (long timestamp : timestamps) {
            TimestampOffset entry = index.lookup(timestamp);
            found.add(List.of(entry.timestamp(), entry.offset()));
        }
        return found;
    }

    /** What Kafka's sanity check throws, or null. */
    private static String sanityOf(AbstractIndex index) {
        try {
            index.sanityCheck();
            return null;
        } catch (RuntimeException refusal) {
            String message = String.valueOf(refusal.getMessage());
            return refusal.getClass().getName() + ": "
                + message.replace(index.file().getAbsolutePath(), index.file().getName());
        }
    }
}
