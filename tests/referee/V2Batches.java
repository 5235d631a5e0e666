import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Batches of magic 2 in an order that recovery accepts: a transactional producer sends nothing
 * outside its transactions, and every marker is one that can be parsed. Where transactions are
 * most of what there is, a producer forgets the first rule at times.
 */
final class V2Batches {
    private static final List<Compression> CODECS = List.of(
        Compression.NONE,
        Compression.NONE,
        Compression.gzip().build(),
        Compression.snappy().build(),
        Compression.lz4().build(),
        Compression.zstd().build());

    private final Draw draw;
    private final TimestampSource timestamps;
    private final Payloads payloads;
    private final List<Producer> producers = new ArrayList<>();
    private final boolean mostlyTransactions;
    private int leaderEpoch;

    V2Batches(Draw draw, TimestampSource timestamps, boolean mostlyTransactions) {
        this.mostlyTransactions = mostlyTransactions;
        this.draw = draw;
        this.timestamps = timestamps;
        this.payloads = new Payloads(draw);
        this.leaderEpoch = draw.chance(0.2) ? RecordBatch.NO_PARTITION_LEADER_EPOCH
            : draw.between(0, 5);
        int fewest = mostlyTransactions ? 3 : 0;
        for (int count = draw.between(fewest, fewest + 5); count > 0; count--) {
            producers.add(new Producer(draw, mostlyTransactions ? 0.85 : 0.6));
        }
    }

    Entry next(long offset) {
        if (draw.chance(0.03)) {
            leaderEpoch += draw.between(1, 3);
        }
        if (leaderEpoch >= 0 && draw.chance(0.02)) {
            return raftControl(offset);
        }
        Producer producer = draw.chance(mostlyTransactions ? 0.1 : 0.4) || producers.isEmpty()
            ? Producer.NONE : draw.oneOf(producers);
        if (producer.transactional && draw.chance(producer.inTransaction ? 0.35 : 0.05)) {
            return marker(offset, producer);
        }
        return draw.chance(0.07) ? empty(offset, producer) : data(offset, producer);
    }

    /** One record: nothing about its last offset is left to chance. */
    Entry single(long offset) {
        MemoryRecordsBuilder builder = builder(256, offset, Producer.NONE);
        builder.appendWithOffset(offset, timestamps.recordMs(), null, draw.bytes(9));
        return new Entry(builder.build().buffer(), offset);
    }

    private Entry data(long offset, Producer producer) {
        MemoryRecordsBuilder builder = builder(payloads.startBatch(), offset, producer);
        long next = offset + (draw.chance(0.05) ? draw.between(1, 20) : 0);
        long last = next;
        for (int i = 0; i < payloads.recordCount(); i++) {
            builder.appendWithOffset(
                next, timestamps.recordMs(), payloads.key(), payloads.value(), payloads.headers());
            last = next;
            next += payloads.offsetStep();
        }
        if (draw.chance(0.05)) {
            last += draw.between(1, 20);
            builder.overrideLastOffset(last);
        }
        producer.sent(last - offset);
        return new Entry(builder.build().buffer(), last);
    }

    private MemoryRecordsBuilder builder(int room, long offset, Producer producer) {
        boolean logAppendTime = draw.chance(0.25);
        return new MemoryRecordsBuilder(
            new ByteBufferOutputStream(ByteBuffer.allocate(room)),
            RecordBatch.MAGIC_VALUE_V2,
            draw.oneOf(CODECS),
            logAppendTime ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
            offset,
            logAppendTime ? timestamps.clockMs() : RecordBatch.NO_TIMESTAMP,
            producer.id,
            producer.epoch,
            producer.sequence,
            producer.transactional && !forgets(),
            false,
            leaderEpoch,
            room,
            draw.chance(0.05) ? timestamps.clockMs() : RecordBatch.NO_TIMESTAMP);
    }

    /** Whether a batch lies outside its producer's transaction: the broker refuses that. */
    private boolean forgets() {
        return mostlyTransactions && draw.chance(0.001);
    }

    /** What compaction leaves of a batch whose records are all gone. */
    private Entry empty(long offset, Producer producer) {
        long last = offset + draw.skewed(500);
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        boolean control = draw.chance(0.2) && producer.transactional;
        DefaultRecordBatch.writeEmptyHeader(
            buffer,
            RecordBatch.MAGIC_VALUE_V2,
            producer.id,
            producer.epoch,
            producer.sequence,
            offset,
            last,
            leaderEpoch,
            draw.chance(0.5) ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME,
            timestamps.recordMs(),
            producer.transactional,
            control);
        buffer.flip();
        if (!control) {
            producer.sent(last - offset);
        }
        return new Entry(buffer, last);
    }

    private Entry marker(long offset, Producer producer) {
        if (draw.chance(0.3)) {
            producer.epoch++;
            producer.sequence = 0;
        }
        producer.inTransaction = false;
        ControlRecordType type =
            draw.chance(0.5) ? ControlRecordType.ABORT : ControlRecordType.COMMIT;
        EndTransactionMarker marker = new EndTransactionMarker(type, draw.between(0, 20));
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(
            offset, timestamps.clockMs(), leaderEpoch, producer.id, producer.epoch, marker);
        return new Entry(records.buffer(), offset);
    }

    private Entry raftControl(long offset) {
        long now = timestamps.clockMs();
        ByteBuffer buffer = ByteBuffer.allocate(256);
        MemoryRecords records = switch (draw.between(0, 3)) {
            case 0 -> MemoryRecords.withLeaderChangeMessage(
                offset, now, leaderEpoch, buffer, new LeaderChangeMessage().setLeaderId(1));
            case 1 -> MemoryRecords.withSnapshotHeaderRecord(
                offset, now, leaderEpoch, buffer, new SnapshotHeaderRecord());
            case 2 -> MemoryRecords.withSnapshotFooterRecord(
                offset, now, leaderEpoch, buffer, new SnapshotFooterRecord());
            default -> MemoryRecords.withKRaftVersionRecord(
                offset, now, leaderEpoch, buffer,
                new KRaftVersionRecord().setKRaftVersion((short) 1));
        };
        return new Entry(records.buffer(), offset);
    }

    /** A producer as its batches show it. */
    private static final class Producer {
        static final Producer NONE = new Producer(
            RecordBatch.NO_PRODUCER_ID,
            RecordBatch.NO_PRODUCER_EPOCH,
            RecordBatch.NO_SEQUENCE,
            false);

        final long id;
        final boolean transactional;
        short epoch;
        int sequence;
        boolean inTransaction;

        private Producer(long id, short epoch, int sequence, boolean transactional) {
            this.id = id;
            this.epoch = epoch;
            this.sequence = sequence;
            this.transactional = transactional;
        }

        Producer(Draw draw, double transactionalShare) {
            this(
                draw.anyLong() >>> draw.between(1, 60),
                (short) draw.between(0, 100),
                draw.chance(0.2) ? Integer.MAX_VALUE - draw.between(0, 50) : 0,
                draw.chance(transactionalShare));
        }

        void sent(long lastOffsetDelta) {
            if (this != NONE) {
                int span = (int) lastOffsetDelta + 1;
                sequence = DefaultRecordBatch.incrementSequence(sequence, span);
                inTransaction = transactional;
            }
        }
    }
}
