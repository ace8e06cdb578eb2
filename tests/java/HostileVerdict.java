// SPDX-License-Identifier: MIT
// Reads every member of each archive named, as a file and as a stream, and says how it ended:
// name TAB verdict of ZipFile TAB verdict of ZipInputStream.
import java.io.BufferedInputStream;
import java.io.FileInputStream;
import java.io.InputStream;
import java.util.Enumeration;
import java.util.function.UnaryOperator;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipInputStream;

public class HostileVerdict {
    private static final long MILLISECONDS = 5000;

    private static long drain(InputStream in) throws Exception {
        byte[] buffer = new byte[65536];
        long total = 0;
        for (int n; (n = in.read(buffer)) > 0; ) {
            total += n;
        }
        return total;
    }

    private static String asFile(String path) {
        int good = 0, bad = 0;
        try (ZipFile zip = new ZipFile(path)) {
            for (Enumeration<? extends ZipEntry> all = zip.entries(); all.hasMoreElements(); ) {
                ZipEntry entry = all.nextElement();
                try (InputStream in = zip.getInputStream(entry)) {
                    long size = drain(in);
                    if (entry.getSize() >= 0 && entry.getSize() != size) {
                        bad++;
                    } else {
                        good++;
                    }
                } catch (Throwable e) {
                    bad++;
                }
            }
        } catch (Throwable e) {
            return "refuses";
        }
        return bad == 0 ? "reads " + good : good == 0 ? "refuses" : "reads " + good + " of " + (good + bad);
    }

    private static String asStream(String path) {
        int good = 0;
        try (ZipInputStream in = new ZipInputStream(new BufferedInputStream(new FileInputStream(path)))) {
            while (in.getNextEntry() != null) {
                drain(in);
                good++;
            }
        } catch (Throwable e) {
            return good == 0 ? "refuses" : "reads " + good + ", then refuses";
        }
        return "reads " + good;
    }

    // In a thread of its own: some archives keep a reader busy for ever.
    private static String within(UnaryOperator<String> reader, String path) throws InterruptedException {
        String[] verdict = {"**hangs**"};
        Thread thread = new Thread(() -> verdict[0] = reader.apply(path));
        thread.setDaemon(true);
        thread.start();
        thread.join(MILLISECONDS);
        return verdict[0];
    }

    public static void main(String[] paths) throws InterruptedException {
        for (String path : paths) {
            System.out.println(
                path + "\t" + within(HostileVerdict::asFile, path) + "\t" + within(HostileVerdict::asStream, path));
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
