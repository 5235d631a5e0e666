import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoaderImpl;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** Loads a partition of __consumer_offsets as the group coordinator does, and counts records. */
final class GroupLoad {
    private static final int BUFFER_BYTES = 5_242_880;

    private GroupLoad() {
    }

    /**
     * How many records were read, how many of them the coordinator takes (the others it has left
     * out, or they are markers), and why it gave up: null if it did not.
     */
    static Map<String, Object> run(Path directory, JsonNode request) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = LogStart.load(directory, request, scheduler);
        Counted counted = new Counted();
        Map<String, Object> answer = new HashMap<>();
        try (CoordinatorLoader<CoordinatorRecord> loader = new CoordinatorLoaderImpl<>(
                Time.SYSTEM,
                partition -> Optional.of(log),
                partition -> Optional.of(log.logEndOffset()),
                new GroupCoordinatorRecordSerde(),
                BUFFER_BYTES,
                CoordinatorLoaderImpl.DEFAULT_COMMIT_INTERVAL_OFFSETS)) {
            TopicPartition partition = log.topicPartition();
            answer.put("records", loader.load(partition, counted).get().numRecords());
            answer.put("error", null);
        } catch (ExecutionException refusal) {
            answer.put("error", refusal.getCause().toString());
        } finally {
            log.close();
            scheduler.shutdown();
        }
        answer.put("taken", counted.records);
        return answer;
    }

    private static final class Counted implements CoordinatorPlayback<CoordinatorRecord> {
        private long records;

        @Override
        public void replay(long offset, long producerId, short epoch, CoordinatorRecord record) {
            records++;
        }

        @Override
        public void replayEndTransactionMarker(long id, short epoch, TransactionResult result) {
        }

        @Override
        public void updateLastWrittenOffset(long offset) {
        }

        @Override
        public void updateLastCommittedOffset(long offset) {
        }
    }
}
