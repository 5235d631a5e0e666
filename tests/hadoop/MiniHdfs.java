import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A name node and a data node on free ports, until standard input ends: {@code MiniHdfs FOLDER}. */
public final class MiniHdfs {
  public static void main(String[] arguments) throws Exception {
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(new Configuration(), new File(arguments[0])).build();
    cluster.waitActive();
    System.out.println(cluster.getNameNodePort() + " " + cluster.getHttpUri(0));
    while (System.in.read() >= 0) {}
    Runtime.getRuntime().halt(0);
  }
}
