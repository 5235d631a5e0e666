import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/** Requests about one broker at a time. */
final class BrokerCommands {
    private static Broker broker;

    private BrokerCommands() {
    }

    static Map<String, Object> run(String command, JsonNode request) throws Exception {
        switch (command) {
            case "broker_start" -> {
                List<String> formatting = new ArrayList<>();
                request.get("formatting").forEach(argument -> formatting.add(argument.asText()));
                broker = Broker.start(
                    Path.of(request.get("config").asText()), request.get("cluster_id").asText(),
                    formatting);
            }
            case "broker_stop" -> broker.stop();
            case "broker_create" -> {
                Map<String, Integer> partitions = new HashMap<>();
                request.get("topics").fields().forEachRemaining(
                    topic -> partitions.put(topic.getKey(), topic.getValue().intValue()));
                broker.create(partitions);
            }
            case "broker_list_offsets" -> {
                return Map.of("offsets", broker.listOffsets(queries(request.get("queries"))));
            }
            case "broker_producers" -> {
                return Map.of("producers", broker.producers(
                    partition(request.get("partition").asText())));
            }
            case "broker_fetch" -> {
                long records = broker.fetch(
                    partition(request.get("partition").asText()),
                    request.get("first").asLong(),
                    Path.of(request.get("target").asText()));
                return Map.of("records", records);
            }
            case "broker_consume" -> {
                List<Long> seeks = new ArrayList<>();
                request.get("seeks").forEach(offset -> seeks.add(offset.asLong()));
                return broker.consume(partition(request.get("partition").asText()), seeks);
            }
            default -> {
                return ClusterCommands.run(command, request);
            }
        }
        return Map.of();
    }

    private static Map<TopicPartition, List<String>> queries(JsonNode asked) {
        Map<TopicPartition, List<String>> queries = new HashMap<>();
        asked.fields().forEachRemaining(entry -> {
            List<String> texts = new ArrayList<>();
            entry.getValue().forEach(text -> texts.add(text.asText()));
            queries.put(partition(entry.getKey()), texts);
        });
        return queries;
    }

    private static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(
            name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }
}
