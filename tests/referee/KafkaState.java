import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

/** What a segment's recovery needs beside the segment, with a broker's defaults. */
final class KafkaState {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    private static final int MAX_TRANSACTION_TIMEOUT_MS = 900_000;
    private static final int PRODUCER_ID_EXPIRATION_MS = 86_400_000;

    private KafkaState() {
    }

    static LogConfig logConfig(int indexIntervalBytes, int segmentIndexBytes) {
        return new LogConfig(Map.of(
            "index.interval.bytes", indexIntervalBytes,
            "segment.index.bytes", segmentIndexBytes));
    }

    /** Producer state that starts from the snapshots in the directory, and writes them there. */
    static ProducerStateManager producers(Path directory, Time time) throws IOException {
        return new ProducerStateManager(
            PARTITION,
            directory.toFile(),
            MAX_TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(PRODUCER_ID_EXPIRATION_MS, false),
            time);
    }

    /** Leader epochs that start empty; the checkpoint is written to the directory. */
    static LeaderEpochFileCache leaderEpochs(Path directory) throws IOException {
        File checkpoint = LeaderEpochCheckpointFile.newFile(directory.toFile());
        return new LeaderEpochFileCache(
            PARTITION,
            new LeaderEpochCheckpointFile(checkpoint, new LogDirFailureChannel(1)),
            new IdleScheduler());
    }

    /** A clock that stands still. */
    record StoppedClock(long milliseconds) implements Time {
        @Override
        public long nanoseconds() {
            return milliseconds * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException("nothing waits on a stopped clock");
        }
    }

    /** Runs nothing: recovery schedules background flushes only. */
    static final class IdleScheduler implements Scheduler {
        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) {
            return null;
        }

        @Override
        public void resizeThreadPool(int size) {
        }
    }
}
