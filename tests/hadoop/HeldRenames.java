import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/**
 * The local disk for Hadoop's FileContext, where the rename to a commit of a table waits behind all
 * looks at what is there. While {@code held.folder} has a file {@code hold}, a rename to a commit in
 * the folder {@code held.commits} makes {@code held} and waits.
 */
public final class HeldRenames extends ChecksumFs {
  public HeldRenames(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(new Raw(conf));
  }

  private static final class Raw extends DelegateToFileSystem {
    Raw(Configuration conf) throws IOException, URISyntaxException {
      super(URI.create("file:///"), new Disk(), conf, "file", false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }
  }

  private static final class Disk extends RawLocalFileSystem {
    @Override
    public boolean rename(Path from, Path to) throws IOException {
      String commits = getConf().get("held.commits");
      String path = to.toUri().getPath();
      if (path.startsWith(commits + "/") && to.getName().matches("\\d{20}\\.json")) {
        waitWhileHeld(Paths.get(getConf().get("held.folder")), to.getName());
      }
      return super.rename(from, to);
    }

    private static void waitWhileHeld(java.nio.file.Path folder, String name) throws IOException {
      while (Files.exists(folder.resolve("hold"))) {
        Files.writeString(folder.resolve("held"), name);
        try {
          Thread.sleep(20);
        } catch (InterruptedException interrupted) {
          throw new IOException(interrupted);
        }
      }
    }
  }
}
