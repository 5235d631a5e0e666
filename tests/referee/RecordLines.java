import java.io.IOException;
import java.io.Writer;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/** Records as lines of text: offset, timestamp, key, value, then each header's key and value. */
final class RecordLines {
    private static final String NULL = "-";

    private RecordLines() {
    }

    /** Writes every record of a segment, control records among them, as Kafka's classes read it. */
    static Map<String, Object> write(Path log, Path target) throws IOException {
        long count = 0;
        try (FileRecords records = FileRecords.open(log.toFile(), false);
            Writer out = Files.newBufferedWriter(target)) {
            for (RecordBatch batch : records.batches()) {
                for (Record record : batch) {
                    out.write(line(
                        record.offset(), record.timestamp(), hex(record.key()),
                        hex(record.value()), List.of(record.headers())));
                    count++;
                }
            }
        }
        return Map.of("records", count);
    }

    static String line(
            long offset, long timestamp, String key, String value, Iterable<Header> headers) {
        StringBuilder line = new StringBuilder();
        line.append(offset).append(' ').append(timestamp);
        line.append(' ').append(key).append(' ').append(value);
        for (Header header : headers) {
            line.append(' ').append(hex(header.key().getBytes(StandardCharsets.UTF_8)));
            line.append(' ').append(hex(header.value()));
        }
        return line.append('\n').toString();
    }

    static String hex(byte[] bytes) {
        return bytes == null ? NULL : HexFormat.of().formatHex(bytes);
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return NULL;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return hex(bytes);
    }
}
