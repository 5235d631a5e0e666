import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;

/** Rewrites a segment's messages v0 and v1 as the log cleaner does where it removes nothing. */
final class Cleaning {
    private Cleaning() {
    }

    /** Batches v2 are copied: the cleaner writes those with null values anew, with a horizon. */
    static Map<String, Object> write(Path log, Path target) throws IOException {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(log)));
        long rewritten = 0;
        try (OutputStream out = Files.newOutputStream(target);
            WritableByteChannel channel = Channels.newChannel(out)) {
            for (MutableRecordBatch batch : records.batches()) {
                ByteBuffer bytes = bytesOf(batch);
                if (batch.magic() < RecordBatch.MAGIC_VALUE_V2) {
                    bytes = cleaned(bytes);
                    rewritten++;
                }
                channel.write(bytes);
            }
        }
        return Map.of("rewritten", rewritten);
    }

    private static ByteBuffer bytesOf(MutableRecordBatch batch) {
        ByteBuffer buffer = ByteBuffer.allocate(batch.sizeInBytes());
        batch.writeTo(buffer);
        buffer.flip();
        return buffer;
    }

    private static ByteBuffer cleaned(ByteBuffer batch) {
        MemoryRecords.FilterResult result = MemoryRecords.readableRecords(batch).filterTo(
            new RetainAll(), ByteBuffer.allocate(2 * batch.remaining() + 1024),
            BufferSupplier.NO_CACHING);
        ByteBuffer output = result.outputBuffer().duplicate();
        output.flip();
        return output;
    }

    /** Keeps every record; the two numbers add up to no timestamp, so no delete horizon is set. */
    private static final class RetainAll extends MemoryRecords.RecordFilter {
        RetainAll() {
            super(RecordBatch.NO_TIMESTAMP, 0);
        }

        @Override
        protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
            return new BatchRetentionResult(BatchRetention.DELETE_EMPTY, false);
        }

        @Override
        protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
            return true;
        }
    }
}
