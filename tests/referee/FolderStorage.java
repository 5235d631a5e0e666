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

/** Tiered storage in a folder: a broker's plugin, one folder a segment, named by its id. */
public final class FolderStorage implements RemoteStorageManager {
    private static final String LOG = "log";

    private Path root;

    @Override
    public void configure(Map<String, ?> configs) {
        root = Path.of((String) configs.get("folder"));
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(
            RemoteLogSegmentMetadata segment, LogSegmentData data) throws RemoteStorageException {
        try {
            Path folder = Files.createDirectories(folder(segment));
            Files.copy(data.logSegment(), folder.resolve(LOG));
            Files.copy(data.offsetIndex(), folder.resolve(IndexType.OFFSET.name()));
            Files.copy(data.timeIndex(), folder.resolve(IndexType.TIMESTAMP.name()));
            Files.copy(data.producerSnapshotIndex(),
                folder.resolve(IndexType.PRODUCER_SNAPSHOT.name()));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(),
                    folder.resolve(IndexType.TRANSACTION.name()));
            }
            byte[] epochs = new byte[data.leaderEpochIndex().remaining()];
            data.leaderEpochIndex().duplicate().get(epochs);
            Files.write(folder.resolve(IndexType.LEADER_EPOCH.name()), epochs);
            return Optional.of(new CustomMetadata(
                folder.getFileName().toString().substring(0, 4).getBytes()));
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
        try (var files = Files.list(folder(segment))) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
            Files.delete(folder(segment));
        } catch (NoSuchFileException gone) {
            return; // a broker tries again what it has deleted
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
            return Files.readAllBytes(folder(segment).resolve(name));
        } catch (NoSuchFileException e) {
            throw new RemoteResourceNotFoundException(e);
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
    }

    private Path folder(RemoteLogSegmentMetadata segment) {
        var id = segment.remoteLogSegmentId();
        return root.resolve(id.topicIdPartition().topicPartition().toString())
            .resolve(id.id().toString());
    }
}
