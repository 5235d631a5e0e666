import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.common.TopicPartition;

/** What Admin says of transactions, which it does from 3.0 on; run with a release's JARs. */
public final class OlderTransactions {
    public static void main(String[] given) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        Admin admin = Admin.create(settings);
        List<String> ids = admin.listTransactions().all().get().stream()
            .map(TransactionListing::transactionalId).toList();
        Map<String, Object> rows = new TreeMap<>();
        admin.describeTransactions(ids).all().get().forEach((id, found) -> {
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("transactional_id", id);
            json.put("state", found.state().toString());
            json.put("producer_id", found.producerId());
            json.put("producer_epoch", found.producerEpoch());
            json.put("timeout_ms", found.transactionTimeoutMs());
            json.put("partitions", new TreeSet<>(
                found.topicPartitions().stream().map(TopicPartition::toString).toList()));
            rows.put(id, json);
        });
        System.out.println(new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT)
            .writeValueAsString(rows.values()));
        System.exit(0);
    }
}
