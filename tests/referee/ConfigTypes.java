import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeSet;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.server.config.DynamicConfig;

/** Which configs of a broker Kafka shows, and which it takes for sensitive. */
final class ConfigTypes {
    private ConfigTypes() {
    }

    static Map<String, Object> run(JsonNode names) {
        TreeSet<String> known = new TreeSet<>(KafkaConfig.configDef().configKeys().keySet());
        known.addAll(DynamicConfig.Broker.configKeys().keySet());
        Map<String, Object> sensitive = new LinkedHashMap<>();
        known.forEach(name -> sensitive.put(name, isSensitive(name)));
        names.forEach(name -> sensitive.put(name.asText(), isSensitive(name.asText())));
        return Map.of("sensitive", sensitive);
    }

    static boolean isShown(ConfigResource resource, String name) {
        return resource.type() != ConfigResource.Type.BROKER || !isSensitive(name);
    }

    private static boolean isSensitive(String name) {
        return KafkaConfig.maybeSensitive(KafkaConfig.configType(name));
    }
}
