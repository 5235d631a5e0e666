import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Supplier;
import java.util.zip.CRC32C;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

/**
 * What the log layer of a release, 3.9 to 4.4, does with logs: a task a line of a file, an answer a line.
 *
 * <p>load, folder, whether the stop was clean, index.interval.bytes, segment.index.bytes, ms: loads a
 * log in place as a starting broker does, and closes it as one that stops. lookup, file, ms, most
 * bytes of a record: looks a time up in a segment.
 */
public final class ReleaseAnswers {
    private static final String LOG = "org.apache.kafka.storage.internals.log.";

    private ReleaseAnswers() {
    }

    public static void main(String[] args) throws Exception {
        Scheduler scheduler = new AtOnce();
        StringBuilder answers = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] task = line.split("\t");
            String answer;
            try {
                answer = task[0].equals("load") ? load(task, scheduler) : lookup(task);
            } catch (InvocationTargetException error) {
                answer = "threw\t" + root(error).getClass().getSimpleName() + "\t" + root(error).getMessage();
            }
            answers.append(answer).append('\n');
        }
        Files.writeString(Path.of(args[1]), answers);
        Runtime.getRuntime().halt(0);
    }

    private static Throwable root(Throwable error) {
        return error.getCause() == null ? error : root(error.getCause());
    }

    private static String load(String[] task, Scheduler scheduler) throws Exception {
        File folder = new File(task[1]);
        LogConfig config = new LogConfig(Map.of(
            "index.interval.bytes", Integer.parseInt(task[3]),
            "segment.index.bytes", Integer.parseInt(task[4])));
        Object log = opened(
            folder, config, scheduler, new StoppedClock(Long.parseLong(task[5])),
            Boolean.parseBoolean(task[2]));
        String end = String.valueOf(log.getClass().getMethod("logEndOffset").invoke(log));
        String loaded = files(folder);
        for (String step : List.of("prepareActiveSegmentForClose", "close")) {
            for (Method method : log.getClass().getMethods()) {
                if (method.getName().equals(step) && method.getParameterCount() == 0) {
                    method.invoke(log);
                }
            }
        }
        return String.join("\t", end, loaded, files(folder));
    }

    private static Object opened(
            File folder, LogConfig config, Scheduler scheduler, Time time, boolean isClean)
            throws Exception {
        ProducerStateManagerConfig producers = new ProducerStateManagerConfig(86_400_000, false);
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        try {
            Object stats = Class.forName("org.apache.kafka.storage.log.metrics.BrokerTopicStats")
                .getConstructor().newInstance();
            return method(LOG + "UnifiedLog", "create", 13).invoke(
                null, folder, config, 0L, 0L, scheduler, stats, time, 900_000, producers, 600_000,
                failures, isClean, Optional.empty());
        } catch (ClassNotFoundException beforeFourOne) {
            Object stats = Class.forName("kafka.server.BrokerTopicStats")
                .getConstructor(boolean.class).newInstance(false);
            Object none = Class.forName("scala.Option").getMethod("empty").invoke(null);
            Object listener =
                Class.forName(LOG + "LogOffsetsListener").getField("NO_OP_OFFSETS_LISTENER").get(null);
            return method("kafka.log.UnifiedLog", "apply", 17).invoke(
                null, folder, config, 0L, 0L, scheduler, stats, time, 900_000, producers, 600_000,
                failures, isClean, none, true, new ConcurrentHashMap<>(), false, listener);
        }
    }

    private static String lookup(String[] task) throws Exception {
        Class<?> records;
        try {
            records = Class.forName("org.apache.kafka.common.record.internal.FileRecords");
        } catch (ClassNotFoundException beforeFourThree) {
            records = Class.forName("org.apache.kafka.common.record.FileRecords");
        }
        Object log = records.getMethod("open", File.class).invoke(null, new File(task[1]));
        long timestamp = Long.parseLong(task[2]);
        Method search = Arrays.stream(records.getMethods())
            .filter(method -> method.getName().equals("searchForTimestamp")).findAny().orElseThrow();
        Object found = search.getParameterCount() == 4
            ? search.invoke(log, timestamp, 0, 0L, Integer.parseInt(task[3]))
            : search.invoke(log, timestamp, 0, 0L);
        if (found == null) {
            return "none";
        }
        return found.getClass().getField("offset").get(found) + "\t"
            + found.getClass().getField("timestamp").get(found);
    }

    private static Method method(String type, String name, int parameters) throws Exception {
        return Arrays.stream(Class.forName(type).getMethods())
            .filter(method -> method.getName().equals(name))
            .filter(method -> method.getParameterCount() == parameters).findAny().orElseThrow();
    }

    /** Name, length and checksum of each file. */
    private static String files(File folder) throws Exception {
        Map<String, String> found = new TreeMap<>();
        for (File file : folder.listFiles(File::isFile)) {
            byte[] data = Files.readAllBytes(file.toPath());
            CRC32C sum = new CRC32C();
            sum.update(data);
            found.put(file.getName(), data.length + ":" + sum.getValue());
        }
        return found.toString();
    }

    /** Does at once what is not to wait, and nothing else. */
    static final class AtOnce implements Scheduler {
        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) {
            if (delay <= 0 && period < 0) {
                task.run();
            }
            return (ScheduledFuture<?>) Proxy.newProxyInstance(
                AtOnce.class.getClassLoader(), new Class<?>[] {ScheduledFuture.class},
                (proxy, method, given) -> method.getName().equals("cancel") ? true : null);
        }

        @Override
        public void resizeThreadPool(int size) {
        }
    }

    /** A clock that stands still. */
    record StoppedClock(long milliseconds) implements Time {
        @Override
        public long nanoseconds() {
            return milliseconds * 1_000_000;
        }

        public long hiResClockMs() {
            return milliseconds;
        }

        @Override
        public void sleep(long ms) {
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException("nothing waits on a stopped clock");
        }
    }
}
