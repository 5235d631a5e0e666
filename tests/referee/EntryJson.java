import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.metadata.ControllerRegistration;
import org.apache.kafka.metadata.authorizer.StandardAcl;

/** What an image holds by a name: ACLs, quotas, SCRAM credentials, controllers and tokens. */
final class EntryJson {
    private EntryJson() {
    }

    static List<Object> of(MetadataImage image) {
        List<Object> rows = new ArrayList<>();
        image.acls().acls().forEach((id, acl) -> rows.add(acl(id, acl)));
        image.clientQuotas().entities().forEach((entity, quotas) -> quotas.quotas().forEach(
            (key, value) -> rows.add(quota(entity, key, value))));
        image.scram().mechanisms().forEach((mechanism, users) -> users.forEach((user, data) ->
            rows.add(row("scram-credential", user + " " + mechanism.mechanismName(),
                Map.of("iterations", data.iterations())))));
        image.cluster().controllers().values().forEach(one -> rows.add(controller(one)));
        image.delegationTokens().tokens().forEach(
            (id, data) -> rows.add(token(id, data.tokenInformation())));
        return rows;
    }

    private static Map<String, Object> row(String kind, String name, Map<String, Object> value) {
        return Map.of("kind", kind, "name", name, "value", value);
    }

    private static Map<String, Object> acl(Uuid id, StandardAcl acl) {
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("principal", acl.principal());
        value.put("permission", acl.permissionType().toString().toLowerCase());
        value.put("operation", acl.operation().toString().toLowerCase());
        value.put("resource_type", acl.resourceType().toString().toLowerCase());
        value.put("pattern_type", acl.patternType().toString().toLowerCase());
        value.put("resource_name", acl.resourceName());
        value.put("host", acl.host());
        return row("acl", id.toString(), value);
    }

    private static Map<String, Object> quota(ClientQuotaEntity entity, String key, double quota) {
        Map<String, String> entities = new TreeMap<>(entity.entries());
        StringBuilder name = new StringBuilder();
        entities.forEach((kind, one) -> name
            .append(kind).append('=').append(one == null ? "<default>" : one).append(' '));
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("entity", entities);
        value.put("key", key);
        value.put("value", quota);
        return row("client-quota", name + key, value);
    }

    private static Map<String, Object> controller(ControllerRegistration controller) {
        Map<String, Object> endpoints = new TreeMap<>();
        controller.listeners().forEach(
            (name, one) -> endpoints.put(name, one.host() + ":" + one.port()));
        Map<String, Object> features = new TreeMap<>();
        controller.supportedFeatures().forEach(
            (name, range) -> features.put(name, List.of(range.min(), range.max())));
        return row("controller", String.valueOf(controller.id()), Map.of(
            "incarnation_id", controller.incarnationId().toString(),
            "zk_migration_ready", controller.zkMigrationReady(),
            "endpoints", endpoints,
            "features", features));
    }

    private static Map<String, Object> token(String id, TokenInformation token) {
        return row("delegation-token", id, Map.of(
            "owner", token.ownerAsString(),
            "requester", token.tokenRequesterAsString(),
            "renewers", List.copyOf(token.renewersAsString()),
            "issue_ms", token.issueTimestamp(),
            "expiration_ms", token.expiryTimestamp(),
            "max_ms", token.maxTimestamp()));
    }
}
