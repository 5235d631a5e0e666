import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.SupportedConfigChecker;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.snapshot.SnapshotPath;
import org.apache.kafka.snapshot.Snapshots;

/** The images that a broker makes of the cluster's metadata, from a snapshot and the log after it. */
final class MetadataImages {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final MetadataBatchLoader loader = new MetadataBatchLoader(
        new LogContext(),
        Time.SYSTEM,
        (message, cause) -> {
            throw new IllegalStateException(message, cause);
        },
        (delta, after, manifest) -> image = after,
        SupportedConfigChecker.TRUE);
    private MetadataImage image = MetadataImage.EMPTY;

    private MetadataImages() {
    }

    /**
     * Writes the image as of each offset, in ascending order, as a line of JSON. The replay begins
     * with a snapshot of the folder, or with the log where {@code snapshot} is null.
     */
    static Map<String, Object> write(
            Path folder, String snapshot, List<Long> offsets, Path target) throws IOException {
        MetadataImages images = new MetadataImages();
        if (snapshot != null) {
            images.loadSnapshot(folder.resolve(snapshot));
        }
        List<Batch<ApiMessageAndVersion>> batches = new ArrayList<>();
        for (File log : logs(folder)) {
            batches.addAll(batches(log));
        }
        long next = images.image.offset() + 1;
        try (Writer out = Files.newBufferedWriter(target)) {
            for (long offset : offsets) {
                images.loadLog(batches, next, offset);
                next = offset + 1;
                Map<String, Object> line = new LinkedHashMap<>();
                line.put("offset", offset);
                line.putAll(ImageJson.of(images.image));
                out.write(JSON.writeValueAsString(line));
                out.write('\n');
            }
        }
        return Map.of();
    }

    private void loadSnapshot(Path file) throws IOException {
        SnapshotPath path = Snapshots.parse(file).orElseThrow();
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        for (Batch<ApiMessageAndVersion> batch : batches(file.toFile())) {
            batch.records().forEach(record -> delta.replay(record.message()));
        }
        delta.finishSnapshot();
        image = delta.apply(new MetadataProvenance(
            path.snapshotId().offset() - 1, path.snapshotId().epoch(), 0, true));
        loader.resetToImage(image);
    }

    /**
     * Loads what lies between two offsets; the last batch may be cut. Each batch makes an image, as
     * in a broker that keeps up: where one change to the image creates and deletes a topic, Kafka
     * leaves the topic's configs in it.
     */
    private void loadLog(List<Batch<ApiMessageAndVersion>> batches, long first, long last) {
        for (Batch<ApiMessageAndVersion> batch : batches) {
            long begin = Math.max(first, batch.baseOffset());
            long end = Math.min(last, batch.lastOffset());
            if (begin <= end) {
                loader.loadBatch(Batch.data(
                    begin,
                    batch.epoch(),
                    batch.appendTimestamp(),
                    batch.sizeInBytes(),
                    batch.records().subList(
                        (int) (begin - batch.baseOffset()), (int) (end - batch.baseOffset() + 1))),
                    LeaderAndEpoch.UNKNOWN);
                loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN, true);
            }
        }
    }

    private static List<Batch<ApiMessageAndVersion>> batches(File file) throws IOException {
        List<Batch<ApiMessageAndVersion>> batches = new ArrayList<>();
        try (FileRecords records = FileRecords.open(file, false)) {
            for (RecordBatch batch : records.batches()) {
                if (batch.isControlBatch()) {
                    continue;
                }
                List<ApiMessageAndVersion> messages = new ArrayList<>();
                for (Record record : batch) {
                    messages.add(MetadataRecordSerde.INSTANCE.read(
                        new ByteBufferAccessor(record.value()), record.valueSize()));
                }
                batches.add(Batch.data(
                    batch.baseOffset(), batch.partitionLeaderEpoch(), batch.maxTimestamp(),
                    batch.sizeInBytes(), messages));
            }
        }
        return batches;
    }

    private static List<File> logs(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.toString().endsWith(".log")).sorted()
                .map(Path::toFile).toList();
        }
    }
}
