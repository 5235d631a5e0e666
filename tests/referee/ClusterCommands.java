import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.TopicPartition;

/** What tests ask of a cluster that runs, and of the records of its internal topics. */
final class ClusterCommands {
    private static Admin admin;
    private static ClusterChanges changes;
    private static ClusterClients clients;

    private ClusterCommands() {
    }

    static Map<String, Object> run(String command, JsonNode request) throws Exception {
        return switch (command) {
            case "cluster_connect" -> {
                Map<String, Object> common =
                    Map.of("bootstrap.servers", request.get("bootstrap").asText());
                admin = Admin.create(common);
                changes = new ClusterChanges(admin);
                clients = new ClusterClients(common);
                yield Map.of();
            }
            case "cluster_change" -> {
                changes.run(request.get("change").asText(), request);
                yield Map.of();
            }
            case "cluster_client" -> clients.run(request.get("action").asText(), request);
            case "cluster_answers" -> new ClusterAnswers(admin).all();
            case "cluster_producers" ->
                Map.of("producers", new ClusterAnswers(admin).producers());
            case "cluster_topics" -> Map.of("partitions", new ClusterAnswers(admin).partitions());
            case "internal_records" -> InternalRecords.write(
                request.get("topic").asText(), path(request, "log"), path(request, "target"));
            case "metadata_images" -> MetadataImages.write(
                path(request, "dir"),
                request.get("snapshot").isNull() ? null : request.get("snapshot").asText(),
                offsets(request),
                path(request, "target"));
            default -> throw new IllegalArgumentException("unknown command " + command);
        };
    }

    static TopicPartition partition(JsonNode name) {
        return partition(name.asText());
    }

    static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(
            name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }

    private static Path path(JsonNode request, String field) {
        return Path.of(request.get(field).asText());
    }

    private static List<Long> offsets(JsonNode request) {
        List<Long> offsets = new ArrayList<>();
        request.get("offsets").forEach(offset -> offsets.add(offset.asLong()));
        return offsets;
    }
}
