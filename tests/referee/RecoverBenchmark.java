import java.io.File;
import java.io.IOException;
import java.nio.channels.NonWritableChannelException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LazyIndex;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.TransactionIndex;

/**
 * Times LogSegment.recover() on segments where they lie.
 *
 * <p>Logs are opened read-only and index files go to a scratch directory. Opening and closing is
 * not timed; creating the index files is, because recover() itself does it.
 */
final class RecoverBenchmark {
    private static final int SEGMENT_INDEX_BYTES = 10_485_760;

    private final List<Path> logs;
    private final int threads;
    private final LogConfig config;

    RecoverBenchmark(List<Path> logs, int threads, int indexIntervalBytes) {
        this.logs = logs;
        this.threads = threads;
        this.config = KafkaState.logConfig(indexIntervalBytes, SEGMENT_INDEX_BYTES);
    }

    Map<String, Object> run(int warmup, int rounds) throws Exception {
        List<Double> seconds = new ArrayList<>();
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            for (int round = -warmup; round < rounds; round++) {
                double elapsed = timeRound(pool);
                if (round >= 0) {
                    seconds.add(elapsed);
                }
            }
        } finally {
            pool.shutdownNow();
        }
        long bytes = 0;
        for (Path log : logs) {
            bytes += Files.size(log);
        }
        return Map.of("seconds", seconds, "bytes", bytes, "files", logs.size());
    }

    private double timeRound(ExecutorService pool) throws Exception {
        List<Subject> subjects = new ArrayList<>();
        try (Scratch scratch = new Scratch()) {
            try {
                for (Path log : logs) {
                    subjects.add(open(log, scratch.directory.resolve("" + subjects.size())));
                }
                return timeRecovery(pool, subjects);
            } finally {
                for (Subject subject : subjects) {
                    subject.segment.close();
                }
            }
        }
    }

    private double timeRecovery(ExecutorService pool, List<Subject> subjects)
            throws InterruptedException, ExecutionException {
        ConcurrentLinkedQueue<Subject> queue = new ConcurrentLinkedQueue<>(subjects);
        Callable<Void> worker = () -> {
            for (Subject next = queue.poll(); next != null; next = queue.poll()) {
                next.recover();
            }
            return null;
        };
        long start = System.nanoTime();
        List<Future<Void>> ended = pool.invokeAll(Collections.nCopies(threads, worker));
        double seconds = (System.nanoTime() - start) / 1e9;
        for (Future<Void> end : ended) {
            end.get(); // throws what the worker threw
        }
        return seconds;
    }

    private Subject open(Path log, Path directory) throws IOException {
        Files.createDirectory(directory);
        File folder = directory.toFile();
        long base = LogFileUtils.offsetFromFile(log.toFile());
        LogSegment segment = new LogSegment(
            FileRecords.open(log.toFile(), false),
            LazyIndex.forOffset(
                LogFileUtils.offsetIndexFile(folder, base), base, config.maxIndexSize),
            LazyIndex.forTime(LogFileUtils.timeIndexFile(folder, base), base, config.maxIndexSize),
            new TransactionIndex(base, LogFileUtils.transactionIndexFile(folder, base)),
            base,
            config.indexInterval,
            0,
            Time.SYSTEM);
        return new Subject(
            log,
            segment,
            KafkaState.producers(directory, Time.SYSTEM),
            KafkaState.leaderEpochs(directory));
    }

    /** One opened segment and what its recovery needs. */
    private record Subject(
            Path log, LogSegment segment, ProducerStateManager producers,
            LeaderEpochFileCache epochs) {
        void recover() throws IOException {
            try {
                segment.recover(producers, epochs);
            } catch (NonWritableChannelException truncation) {
                throw new IOException(log + " is not intact: Kafka would truncate it", truncation);
            }
        }
    }
}
