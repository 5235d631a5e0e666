import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Kafka's own classes behind a line protocol: one JSON request a line on standard input, one JSON
 * answer a line on standard output. An answer holds {@code ok}; where that is false, {@code error}.
 */
public final class Referee {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Referee() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers =
            new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever Kafka prints must not look like an answer
        BufferedReader requests =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(answer(line)));
        }
    }

    private static Map<String, Object> answer(String line) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            Map<String, Object> result = run(JSON.readTree(line));
            answer.put("ok", true);
            answer.putAll(result);
        } catch (Exception | Error error) {
            error.printStackTrace();
            answer.put("ok", false);
            answer.put("error", error.toString());
        }
        return answer;
    }

    private static Map<String, Object> run(JsonNode request) throws Exception {
        String command = text(request, "command");
        return switch (command) {
            case "recover" -> new PartitionRecovery(
                directory(request),
                integer(request, "index_interval_bytes"),
                integer(request, "segment_index_bytes"),
                required(request, "now_ms").asLong()).run();
            case "generate" -> new PartitionGenerator(
                required(request, "seed").asLong(),
                text(request, "kind")).write(directory(request));
            case "damage" -> new Damage(
                required(request, "seed").asLong()).apply(directory(request));
            case "lookup" -> IndexLookup.run(
                directory(request),
                required(request, "base").asLong(),
                longs(request, "offsets"),
                longs(request, "timestamps"));
            case "cache_remote" -> RemoteSegments.cache(
                directory(request), required(request, "base").asLong());
            case "announce" -> RemoteSegments.announce(
                required(request, "uploads"),
                integer(request, "epoch"),
                required(request, "offset").asLong());
            case "truncate" -> new Truncation(
                directory(request),
                required(request, "base").asLong(),
                integer(request, "segment_index_bytes")).run(longs(request, "offsets"));
            case "load_log" -> LogStart.run(directory(request), request);
            case "load_groups" -> GroupLoad.run(directory(request), request);
            case "time_recover" -> new RecoverBenchmark(
                paths(request),
                integer(request, "threads"),
                integer(request, "index_interval_bytes"))
                .run(integer(request, "warmup"), integer(request, "rounds"));
            case "append" -> history(request).append(
                directory(request),
                longs(request, "restarts"),
                required(request, "closed").booleanValue());
            case "append_sets" -> history(request).appendSets(
                directory(request),
                integer(request, "set_batches"),
                required(request, "first_offsets").booleanValue(),
                required(request, "record_offsets").booleanValue());
            case "roll" -> RollRuns.run(
                directory(request),
                required(request, "base").asLong(),
                required(request, "cases"));
            case "load" -> history(request).load();
            case "records" -> RecordLines.write(
                Path.of(text(request, "log")), Path.of(text(request, "target")));
            case "consume" -> ConsumerReads.read(Path.of(text(request, "log")));
            case "clean" -> Cleaning.write(
                Path.of(text(request, "log")), Path.of(text(request, "target")));
            case "clean_log" -> CleanerRuns.run(directory(request), request);
            case "cleaner_picks" -> CleanerPicks.run(directory(request), request);
            case "retention" -> RetentionRuns.run(required(request, "logs"));
            case "write_commits" -> Commits.write(
                required(request, "commits"), integer(request, "partitions"));
            case "read_commits" -> Commits.read(required(request, "records"));
            case "lags" -> Commits.lags(longs(request, "offsets"), longs(request, "ends"));
            case "message_types" -> Messages.types();
            case "draw_messages" -> Messages.draw(
                required(request, "seed").asLong(), integer(request, "rounds"));
            case "read_messages" -> Messages.read(required(request, "messages"));
            case "read_remote" -> RemoteMetadata.read(
                required(request, "values"), integer(request, "partitions"));
            case "remote_states" -> RemoteMetadata.states(required(request, "values"));
            case "remote_within" -> RemoteMetadata.within(required(request, "cases"));
            case "config_types" -> ConfigTypes.run(required(request, "names"));
            default -> BrokerCommands.run(command, request);
        };
    }

    private static IndexHistory history(JsonNode request) {
        return new IndexHistory(
            Path.of(text(request, "log")),
            integer(request, "index_interval_bytes"),
            integer(request, "segment_index_bytes"));
    }

    private static JsonNode required(JsonNode request, String field) {
        JsonNode value = request.get(field);
        if (value == null || value.isNull()) {
            throw new IllegalArgumentException("the request lacks " + field);
        }
        return value;
    }

    private static String text(JsonNode request, String field) {
        return required(request, field).asText();
    }

    private static int integer(JsonNode request, String field) {
        return required(request, field).intValue();
    }

    private static Path directory(JsonNode request) {
        return Path.of(text(request, "dir"));
    }

    private static List<Long> longs(JsonNode request, String field) {
        List<Long> values = new ArrayList<>();
        required(request, field).forEach(value -> values.add(value.asLong()));
        return values;
    }

    private static List<Path> paths(JsonNode request) {
        List<Path> values = new ArrayList<>();
        required(request, "files").forEach(value -> values.add(Path.of(value.asText())));
        return values;
    }
}
