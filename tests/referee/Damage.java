import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Spoils a few segments of a partition directory in place. */
final class Damage {
    private static final int OFFSET_AT = 0;
    private static final int LENGTH_AT = 8;
    private static final int MAGIC_AT = 16;
    private static final int PREFIX_BYTES = 17;

    private enum Kind {
        FLIP_ANYWHERE, FLIP_IN_HEADER, TRUNCATE, ZERO_TAIL, GARBAGE_TAIL, WRONG_LENGTH, ZERO_RANGE,
        DUPLICATE_RANGE, DUPLICATE_BATCHES
    }

    private final Draw draw;

    Damage(long seed) {
        draw = new Draw(seed);
    }

    Map<String, Object> apply(Path directory) throws IOException {
        List<Path> logs = new ArrayList<>(PartitionRecovery.logsOf(directory));
        List<Object> done = new ArrayList<>();
        for (int count = draw.between(0, 2); count > 0 && !logs.isEmpty(); count--) {
            done.add(spoil(logs.remove(draw.between(0, logs.size() - 1))));
        }
        return Map.of("damage", done);
    }

    private Map<String, Object> spoil(Path log) throws IOException {
        byte[] bytes = Files.readAllBytes(log);
        Kind kind = bytes.length < PREFIX_BYTES
            ? draw.oneOf(List.of(Kind.ZERO_TAIL, Kind.GARBAGE_TAIL))
            : draw.oneOf(List.of(Kind.values()));
        byte[] spoilt = spoil(kind, bytes);
        Files.write(log, spoilt);
        int changedAt = Arrays.mismatch(bytes, spoilt);
        return Map.of(
            "file", log.getFileName().toString(), "kind", kind.name().toLowerCase(),
            "position", changedAt, "bytes_before", bytes.length, "bytes_after", spoilt.length);
    }

    private byte[] spoil(Kind kind, byte[] bytes) {
        return switch (kind) {
            case FLIP_ANYWHERE -> flipAnywhere(bytes);
            case FLIP_IN_HEADER -> flipInHeader(bytes);
            case TRUNCATE -> Arrays.copyOf(bytes, draw.between(0, bytes.length - 1));
            case ZERO_TAIL -> Arrays.copyOf(bytes, bytes.length + 1 + draw.skewed(20_000));
            case GARBAGE_TAIL -> insert(bytes, bytes.length, draw.bytes(1 + draw.skewed(20_000)));
            case WRONG_LENGTH -> wrongLength(bytes);
            case ZERO_RANGE -> zeroRange(bytes);
            case DUPLICATE_RANGE -> duplicateRange(bytes);
            case DUPLICATE_BATCHES -> duplicateBatches(bytes);
        };
    }

    private byte[] flipAnywhere(byte[] bytes) {
        byte[] spoilt = bytes.clone();
        for (int count = draw.between(1, 3); count > 0; count--) {
            flip(spoilt, draw.between(0, bytes.length - 1));
        }
        return spoilt;
    }

    private byte[] flipInHeader(byte[] bytes) {
        byte[] spoilt = bytes.clone();
        int field = draw.oneOf(List.of(
            OFFSET_AT + draw.between(0, 7), LENGTH_AT + draw.between(0, 3), MAGIC_AT));
        flip(spoilt, draw.oneOf(batchStarts(bytes)) + field);
        return spoilt;
    }

    private void flip(byte[] bytes, int position) {
        bytes[position] ^= (byte) (1 << draw.between(0, 7));
    }

    private byte[] wrongLength(byte[] bytes) {
        byte[] spoilt = bytes.clone();
        int at = draw.oneOf(batchStarts(bytes)) + LENGTH_AT;
        int length = ByteBuffer.wrap(bytes).getInt(at);
        int wrong = draw.oneOf(List.of(
            0, 1, 13, 14, 48, 49, -1, Integer.MIN_VALUE, Integer.MAX_VALUE, 1 << 20,
            length - 1, length + 1, length + 100, bytes.length));
        ByteBuffer.wrap(spoilt).putInt(at, wrong);
        return spoilt;
    }

    private byte[] zeroRange(byte[] bytes) {
        byte[] spoilt = bytes.clone();
        int from = draw.between(0, bytes.length - 1);
        int length = Math.min(1 + draw.skewed(20_000), bytes.length - from);
        Arrays.fill(spoilt, from, from + length, (byte) 0);
        return spoilt;
    }

    private byte[] duplicateRange(byte[] bytes) {
        int from = draw.between(0, bytes.length - 1);
        int length = Math.min(1 + draw.skewed(20_000), bytes.length - from);
        byte[] range = Arrays.copyOfRange(bytes, from, from + length);
        return insert(bytes, from + length, range);
    }

    private byte[] duplicateBatches(byte[] bytes) {
        List<Integer> starts = batchStarts(bytes);
        starts.add(bytes.length);
        int first = draw.between(0, starts.size() - 2);
        int last = draw.between(first + 1, starts.size() - 1);
        byte[] range = Arrays.copyOfRange(bytes, starts.get(first), starts.get(last));
        return insert(bytes, starts.get(last), range);
    }

    private static byte[] insert(byte[] bytes, int position, byte[] inserted) {
        return ByteBuffer.allocate(bytes.length + inserted.length)
            .put(bytes, 0, position)
            .put(inserted)
            .put(bytes, position, bytes.length - position)
            .array();
    }

    /** Where the batches of a sound log start; the first place at least. */
    private static List<Integer> batchStarts(byte[] bytes) {
        ByteBuffer log = ByteBuffer.wrap(bytes);
        List<Integer> starts = new ArrayList<>();
        int position = 0;
        while (bytes.length - position >= PREFIX_BYTES) {
            int length = log.getInt(position + LENGTH_AT);
            starts.add(position);
            if (length < 0 || length > bytes.length) {
                break;
            }
            position += LENGTH_AT + Integer.BYTES + length;
        }
        return starts;
    }
}
