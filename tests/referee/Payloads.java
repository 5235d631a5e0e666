import java.util.Arrays;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** How many records a batch has, and what is in them. */
final class Payloads {
    private static final int MAX_RECORDS = 200;
    private static final int MAX_BATCH_BYTES = 40_000;
    private static final int ROOM_PER_RECORD = 64;

    private final Draw draw;
    private int recordCount;
    private int valueBytes;
    private boolean compressible;
    private boolean gaps;

    Payloads(Draw draw) {
        this.draw = draw;
    }

    /** Settles the shape of the next batch and gives a buffer size that suits it. */
    int startBatch() {
        recordCount = draw.chance(0.4) ? 1 : 1 + draw.skewed(MAX_RECORDS - 1);
        int bytes = draw.skewed(MAX_BATCH_BYTES);
        valueBytes = bytes / recordCount;
        compressible = draw.chance(0.5);
        gaps = draw.chance(0.15);
        return 128 + bytes + recordCount * ROOM_PER_RECORD;
    }

    int recordCount() {
        return recordCount;
    }

    /** Distance to the next record: 1, or more where compaction took records out. */
    int offsetStep() {
        return gaps && draw.chance(0.5) ? draw.between(2, 50) : 1;
    }

    byte[] key() {
        return draw.chance(0.3) ? null : draw.bytes(draw.between(0, 12));
    }

    byte[] value() {
        if (draw.chance(0.05)) {
            return null;
        }
        if (!compressible) {
            return draw.bytes(valueBytes);
        }
        byte[] value = new byte[valueBytes];
        Arrays.fill(value, (byte) draw.between('a', 'z'));
        return value;
    }

    Header[] headers() {
        if (draw.chance(0.8)) {
            return new Header[0];
        }
        byte[] value = draw.chance(0.3) ? null : draw.bytes(draw.between(0, 9));
        return new Header[] {new RecordHeader("h" + draw.between(0, 9), value)};
    }
}
