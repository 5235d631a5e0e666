import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.log.LogFileUtils;

/**
 * Writes one partition directory of random segments that recovery accepts as they are; but of kind
 * transactions, where one producer or another at times forgets that its transaction is open.
 */
final class PartitionGenerator {
    private static final int MAX_SEGMENT_BYTES = 300_000;
    private static final int SPAN_OF_ANY_BATCH = 1 << 20;
    private static final long MAX_RELATIVE_OFFSET = Integer.MAX_VALUE;
    private static final byte V0 = RecordBatch.MAGIC_VALUE_V0;
    private static final byte V1 = RecordBatch.MAGIC_VALUE_V1;
    private static final byte V2 = RecordBatch.MAGIC_VALUE_V2;
    private static final String TRANSACTIONS = "transactions";
    private static final Map<String, List<Byte>> MAGICS = Map.of(
        "v2", List.of(V2), "legacy", List.of(V0, V1), "mixed", List.of(V0, V1, V2),
        TRANSACTIONS, List.of(V2));

    private final Draw draw;
    private final List<Byte> magics;
    private final TimestampSource timestamps;
    private final LegacyBatches legacyBatches;
    private final V2Batches v2Batches;
    private long nextOffset;

    PartitionGenerator(long seed, String kind) {
        if (!MAGICS.containsKey(kind)) {
            throw new IllegalArgumentException("unknown kind " + kind);
        }
        draw = new Draw(seed);
        magics = MAGICS.get(kind);
        timestamps = new TimestampSource(draw);
        legacyBatches = new LegacyBatches(draw, timestamps);
        v2Batches = new V2Batches(draw, timestamps, kind.equals(TRANSACTIONS));
        nextOffset = firstBaseOffset();
    }

    Map<String, Object> write(Path directory) throws IOException {
        Path partition = Files.createDirectories(directory.resolve("t-0"));
        List<Object> segments = new ArrayList<>();
        for (int count = draw.between(1, 5); count > 0; count--) {
            segments.add(writeSegment(partition));
        }
        return Map.of("partition", partition.toString(), "segments", segments);
    }

    private long firstBaseOffset() {
        long offset = draw.oneOf(List.of(0L, 0L, 1L << 16, 1L << 31, 1L << 33, 1L << 50));
        return offset == 0 ? 0 : offset + draw.between(-1000, 1000);
    }

    private Map<String, Object> writeSegment(Path partition) throws IOException {
        if (draw.chance(0.5)) {
            timestamps.changeHabit();
        }
        long base = nextOffset;
        Path log = LogFileUtils.logFile(partition.toFile(), base).toPath();
        int batches = 0;
        try (OutputStream out = Files.newOutputStream(log);
            WritableByteChannel channel = Channels.newChannel(out)) {
            long left = targetBytes();
            while (left > 0 && nextOffset - base < MAX_RELATIVE_OFFSET - SPAN_OF_ANY_BATCH) {
                left -= write(nextEntry(base), channel);
                batches++;
            }
            if (batches > 0 && draw.chance(0.03)) {
                write(single(base + MAX_RELATIVE_OFFSET), channel);
                batches++;
            }
        }
        nextOffset = Math.max(nextOffset, base + 1) + (draw.chance(0.2) ? draw.skewed(5000) : 0);
        return Map.of(
            "base", base, "file", log.getFileName().toString(),
            "bytes", Files.size(log), "batches", batches);
    }

    private long targetBytes() {
        if (draw.chance(0.08)) {
            return 0;
        }
        if (draw.chance(0.5)) {
            return draw.between(1, MAX_SEGMENT_BYTES);
        }
        return draw.chance(0.2) ? 1 : 1 + draw.skewed(MAX_SEGMENT_BYTES - 1);
    }

    private Entry nextEntry(long base) {
        nextOffset += gap(base);
        byte magic = draw.oneOf(magics);
        return magic == V2 ? v2Batches.next(nextOffset) : legacyBatches.next(magic, nextOffset);
    }

    /** Offsets that compaction took out before the next batch; rarely most of those left. */
    private long gap(long base) {
        if (draw.chance(0.002)) {
            long room = MAX_RELATIVE_OFFSET - SPAN_OF_ANY_BATCH - (nextOffset - base);
            return draw.skewed((int) room);
        }
        return draw.chance(0.05) ? draw.skewed(1000) : 0;
    }

    /** An entry of exactly one offset, for the highest that a segment can hold. */
    private Entry single(long offset) {
        if (magics.contains(V2)) {
            return v2Batches.single(offset);
        }
        return legacyBatches.single(draw.oneOf(magics), offset);
    }

    private int write(Entry entry, WritableByteChannel channel) throws IOException {
        int bytes = entry.bytes().remaining();
        channel.write(entry.bytes());
        nextOffset = entry.lastOffset() + 1;
        return bytes;
    }
}
