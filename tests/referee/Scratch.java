import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** A temporary directory that goes away with everything in it. */
final class Scratch implements AutoCloseable {
    final Path directory;

    Scratch() throws IOException {
        directory = Files.createTempDirectory("kafka-referee-");
    }

    @Override
    public void close() throws IOException {
        List<Path> paths;
        try (Stream<Path> walk = Files.walk(directory)) {
            paths = walk.sorted(Comparator.reverseOrder()).toList();
        }
        for (Path path : paths) {
            Files.delete(path);
        }
    }
}
