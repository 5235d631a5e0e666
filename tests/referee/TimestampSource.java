import java.util.List;

/** Record timestamps of one habit, and the broker's clock beside them. */
final class TimestampSource {
    private static final long START_MS = 1_700_000_000_000L;
    private static final long FAR_FUTURE_MS = 9_000_000_000_000_000_000L;

    private enum Habit {
        INCREASING, OUT_OF_ORDER, EQUAL, DECREASING, ABSENT, SOMETIMES_ABSENT, SMALL, FAR_FUTURE
    }

    private final Draw draw;
    private Habit habit;
    private long clockMs = START_MS;

    TimestampSource(Draw draw) {
        this.draw = draw;
        changeHabit();
    }

    void changeHabit() {
        habit = draw.oneOf(List.of(Habit.values()));
    }

    /** Time of the broker: never goes back. */
    long clockMs() {
        clockMs += draw.between(0, 500);
        return clockMs;
    }

    /** Time of a record, as its producer says: anything, or -1 for none. */
    long recordMs() {
        long now = clockMs();
        return switch (habit) {
            case INCREASING -> now;
            case OUT_OF_ORDER -> now + draw.between(-600_000, 600_000);
            case EQUAL -> START_MS;
            case DECREASING -> 2 * START_MS - now;
            case ABSENT -> -1;
            case SOMETIMES_ABSENT -> draw.chance(0.5) ? -1 : now;
            case SMALL -> draw.between(0, 3);
            case FAR_FUTURE -> draw.chance(0.05) ? FAR_FUTURE_MS + draw.between(0, 9) : now;
        };
    }
}
