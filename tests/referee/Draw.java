import java.util.List;
import java.util.Random;

/** Random choices that a seed repeats. */
final class Draw {
    private final Random random;

    Draw(long seed) {
        random = new Random(seed);
    }

    boolean chance(double probability) {
        return random.nextDouble() < probability;
    }

    /** A number of the range, both ends included. */
    int between(int low, int high) {
        return low + random.nextInt(high - low + 1);
    }

    long anyLong() {
        return random.nextLong();
    }

    /** A number up to the limit whose size, not value, is evenly spread: small ones are common. */
    int skewed(int limit) {
        return (int) Math.pow(limit + 1.0, random.nextDouble()) - 1;
    }

    <T> T oneOf(List<T> choices) {
        return choices.get(random.nextInt(choices.size()));
    }

    byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }
}
