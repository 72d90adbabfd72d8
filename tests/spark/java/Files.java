import java.io.IOException;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system, which leaves permissions as the system makes them. Hadoop, where it has no library of
 * its own, starts a program for each file and folder to set them, and that is the larger part of a small write.
 */
public class Files extends LocalFileSystem {
  public Files() {
    super(new RawLocalFileSystem() {
      public void setPermission(Path path, FsPermission permission) throws IOException {}
    });
  }
}
