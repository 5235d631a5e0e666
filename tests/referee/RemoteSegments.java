import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.metadata.storage.RemotePartitionMetadataStore;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.RemoteIndexCache;

/** What a broker makes of segments in tiered storage and of their indexes. */
final class RemoteSegments {
    private static final TopicIdPartition LOG = new TopicIdPartition(Uuid.ONE_UUID, 0, "t");

    private static final long CACHE_BYTES = 1 << 30;

    private RemoteSegments() {
    }

    /** Has Kafka's cache fetch the index files in a directory; {@code fails} is what it throws. */
    static Map<String, Object> cache(Path directory, long base) throws IOException {
        RemoteLogSegmentMetadata segment =
            segment(Uuid.fromString("adh9f8BMS4anaUnD8KWfWg"), base, base + 1000, 1, Map.of(0, base));
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("fails", null);
        try (Scratch scratch = new Scratch();
            RemoteIndexCache cache = new RemoteIndexCache(
                CACHE_BYTES, new Folder(directory, base), scratch.directory.toString())) {
            RemoteIndexCache.Entry entry = cache.getIndexEntry(segment);
            answer.put("offset_index_entries", entry.offsetIndex().entries());
            answer.put("time_index_entries", entry.timeIndex().entries());
        } catch (RuntimeException e) {
            Throwable cause = e;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            answer.put("fails", cause.getClass().getSimpleName());
        }
        return answer;
    }

    /** Announces uploads one after another; {@code taken} is the id that an offset leads to. */
    static Map<String, Object> announce(JsonNode uploads, int epoch, long offset)
            throws ReflectiveOperationException {
        RemotePartitionMetadataStore store = new RemotePartitionMetadataStore();
        store.maybeLoadPartition(LOG);
        store.markInitialized(LOG);
        for (JsonNode upload : uploads) {
            Map<Integer, Long> epochs = new LinkedHashMap<>();
            upload.get("epochs").properties().forEach(
                entry -> epochs.put(Integer.valueOf(entry.getKey()), entry.getValue().asLong()));
            RemoteLogSegmentMetadata segment = segment(
                Uuid.fromString(upload.get("id").asText()),
                upload.get("start").asLong(),
                upload.get("end").asLong(),
                upload.get("event_ms").asLong(),
                epochs);
            store.handleRemoteLogSegmentMetadata(segment);
            store.handleRemoteLogSegmentMetadataUpdate(new RemoteLogSegmentMetadataUpdate(
                segment.remoteLogSegmentId(),
                upload.get("event_ms").asLong(),
                Optional.empty(),
                RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
                1));
        }
        Method reader = RemotePartitionMetadataStore.class.getDeclaredMethod(
            "remoteLogSegmentMetadata", TopicIdPartition.class, long.class, int.class);
        reader.setAccessible(true); // what is public waits for a topic of a real broker
        Optional<?> found = (Optional<?>) reader.invoke(store, LOG, offset, epoch);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("taken", found
            .map(segment -> ((RemoteLogSegmentMetadata) segment).remoteLogSegmentId().id().toString())
            .orElse(null));
        return answer;
    }

    private static RemoteLogSegmentMetadata segment(
            Uuid id, long start, long end, long eventMs, Map<Integer, Long> epochs) {
        return new RemoteLogSegmentMetadata(
            new RemoteLogSegmentId(LOG, id), start, end, 1, 1, eventMs, 1, epochs);
    }

    /** Serves the index files of one segment from a directory. */
    private record Folder(Path directory, long base) implements RemoteStorageManager {
        @Override
        public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type)
                throws RemoteStorageException {
            String suffix = switch (type) {
                case OFFSET -> ".index";
                case TIMESTAMP -> ".timeindex";
                default -> ".txnindex";
            };
            Path file = directory.resolve(LogFileUtils.filenamePrefixFromOffset(base) + suffix);
            try {
                return new ByteArrayInputStream(Files.readAllBytes(file));
            } catch (IOException e) {
                throw new RemoteResourceNotFoundException(e);
            }
        }

        @Override
        public Optional<CustomMetadata> copyLogSegmentData(
                RemoteLogSegmentMetadata segment, LogSegmentData data) {
            throw new UnsupportedOperationException();
        }

        @Override
        public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) {
            throw new UnsupportedOperationException();
        }

        @Override
        public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void configure(Map<String, ?> configs) {
        }

        @Override
        public void close() {
        }
    }
}
