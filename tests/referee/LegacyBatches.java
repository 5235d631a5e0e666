import java.nio.ByteBuffer;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;

/** Messages of magic 0 and 1: one by one, or several in a compressed wrapper. */
final class LegacyBatches {
    private static final List<Compression> CODECS = List.of(
        Compression.NONE,
        Compression.NONE,
        Compression.gzip().build(),
        Compression.snappy().build(),
        Compression.lz4().build());

    private final Draw draw;
    private final TimestampSource timestamps;
    private final Payloads payloads;

    LegacyBatches(Draw draw, TimestampSource timestamps) {
        this.draw = draw;
        this.timestamps = timestamps;
        this.payloads = new Payloads(draw);
    }

    Entry next(byte magic, long offset) {
        boolean logAppendTime = magic > RecordBatch.MAGIC_VALUE_V0 && draw.chance(0.3);
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(payloads.startBatch()),
            magic,
            draw.oneOf(CODECS),
            logAppendTime ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
            offset,
            logAppendTime ? timestamps.clockMs() : RecordBatch.NO_TIMESTAMP);
        long next = offset;
        long last = offset;
        for (int i = 0; i < payloads.recordCount(); i++) {
            builder.appendWithOffset(
                next, timestampFor(magic), payloads.key(), payloads.value());
            last = next;
            next += payloads.offsetStep();
        }
        return new Entry(builder.build().buffer(), last);
    }

    /** One uncompressed message. */
    Entry single(byte magic, long offset) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(256), magic, Compression.NONE, TimestampType.CREATE_TIME, offset);
        builder.appendWithOffset(offset, timestampFor(magic), null, draw.bytes(9));
        return new Entry(builder.build().buffer(), offset);
    }

    private long timestampFor(byte magic) {
        return magic == RecordBatch.MAGIC_VALUE_V0
            ? RecordBatch.NO_TIMESTAMP : timestamps.recordMs();
    }
}
