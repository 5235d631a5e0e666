import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

/** Reads a segment as a consumer reads what it has fetched, and goes on where it can. */
final class ConsumerReads {
    private ConsumerReads() {
    }

    /** Gives the batches that it cannot read, where the bytes end in none, and how many records. */
    static Map<String, Object> read(Path log) throws IOException {
        Iterator<MutableRecordBatch> batches =
            MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(log))).batchIterator();
        List<List<Object>> bad = new ArrayList<>();
        long records = 0;
        long next = -1;
        while (true) {
            MutableRecordBatch batch;
            try {
                if (!batches.hasNext()) {
                    return Map.of("bad", bad, "records", records, "next", next, "stuck", false);
                }
                batch = batches.next();
            } catch (CorruptRecordException e) {
                return Map.of("bad", bad, "records", records, "next", next, "stuck", true);
            }
            try {
                long found = readBatch(batch);
                records += batch.isControlBatch() ? 0 : found;
            } catch (KafkaException e) { // which it wraps in one of its own
                bad.add(List.of(batch.baseOffset(), batch.lastOffset() + 1, "KafkaException"));
            } catch (RuntimeException e) {
                bad.add(List.of(
                    batch.baseOffset(), batch.lastOffset() + 1, e.getClass().getSimpleName()));
            }
            next = batch.lastOffset() + 1;
        }
    }

    private static long readBatch(MutableRecordBatch batch) {
        if (batch.magic() >= RecordBatch.MAGIC_VALUE_V2) {
            batch.ensureValid();
        }
        long count = 0;
        try (CloseableIterator<Record> records = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
            while (records.hasNext()) {
                records.next().ensureValid();
                count++;
            }
        }
        return count;
    }
}
