import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * Tiered storage in a folder: a broker's plugin, one folder a segment, named by its id.
 *
 * <p>With {@code names=offsets} the files of a segment lie beside those of others, named by offset,
 * id and suffix, as docs/tiered.md has it of the raw layout.
 */
public final class FolderStorage implements RemoteStorageManager {
    private static final String LOG = "log";
    private static final Map<String, String> SUFFIXES = Map.of(
        LOG, ".log",
        IndexType.OFFSET.name(), ".index",
        IndexType.TIMESTAMP.name(), ".timeindex",
        IndexType.PRODUCER_SNAPSHOT.name(), ".snapshot",
        IndexType.TRANSACTION.name(), ".txnindex",
        IndexType.LEADER_EPOCH.name(), ".leader-epoch-checkpoint");

    private Path root;
    private boolean isNamedByOffset;

    @Override
    public void configure(Map<String, ?> configs) {
        root = Path.of((String) configs.get("folder"));
        isNamedByOffset = "offsets".equals(configs.get("names"));
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(
            RemoteLogSegmentMetadata segment, LogSegmentData data) throws RemoteStorageException {
        try {
            Files.createDirectories(file(segment, LOG).getParent());
            Files.copy(data.logSegment(), file(segment, LOG));
            Files.copy(data.offsetIndex(), file(segment, IndexType.OFFSET.name()));
            Files.copy(data.timeIndex(), file(segment, IndexType.TIMESTAMP.name()));
            Files.copy(data.producerSnapshotIndex(),
                file(segment, IndexType.PRODUCER_SNAPSHOT.name()));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(),
                    file(segment, IndexType.TRANSACTION.name()));
            }
            byte[] epochs = new byte[data.leaderEpochIndex().remaining()];
            data.leaderEpochIndex().duplicate().get(epochs);
            Files.write(file(segment, IndexType.LEADER_EPOCH.name()), epochs);
            return Optional.of(new CustomMetadata(
                segment.remoteLogSegmentId().id().toString().substring(0, 4).getBytes()));
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start)
            throws RemoteStorageException {
        return fetchLogSegment(segment, start, Integer.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        byte[] log = read(segment, LOG);
        int last = (int) Math.min(log.length, end + 1L);
        return new ByteArrayInputStream(Arrays.copyOfRange(log, start, last));
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type)
            throws RemoteStorageException {
        return new ByteArrayInputStream(read(segment, type.name()));
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment)
            throws RemoteStorageException {
        try {
            for (String name : SUFFIXES.keySet()) {
                Files.deleteIfExists(file(segment, name));
            }
            if (!isNamedByOffset) {
                Files.deleteIfExists(file(segment, LOG).getParent());
            }
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
    }

    @Override
    public void close() {
    }

    private byte[] read(RemoteLogSegmentMetadata segment, String name)
            throws RemoteStorageException {
        try {
            return Files.readAllBytes(file(segment, name));
        } catch (NoSuchFileException e) {
            throw new RemoteResourceNotFoundException(e);
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
    }

    private Path file(RemoteLogSegmentMetadata segment, String name) {
        var id = segment.remoteLogSegmentId();
        Path folder = root.resolve(id.topicIdPartition().topicPartition().toString());
        return isNamedByOffset
            ? folder.resolve(
                String.format("%020d-%s%s", segment.startOffset(), id.id(), SUFFIXES.get(name)))
            : folder.resolve(id.id().toString()).resolve(name);
    }
}
