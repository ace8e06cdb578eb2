// SPDX-License-Identifier: MIT
// java.util.zip.ZipFile: every member streamed through an 8 KiB buffer
// (JDK-8244659's case), and opening an archive to look one member up.
//
// java Zips.java read ARCHIVE ROUNDS | java Zips.java open ARCHIVE ROUNDS NAME
//
// Prints the best round's µs per member, or per open, after a warm-up.

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

public class Zips {
    static long sum;

    static double readAll(ZipFile zip, List<ZipEntry> entries, byte[] buffer) throws IOException {
        long start = System.nanoTime();
        for (ZipEntry entry : entries) {
            try (InputStream in = zip.getInputStream(entry)) {
                int n;
                while ((n = in.read(buffer)) > 0) {
                    sum += buffer[n - 1];
                }
            }
        }
        return (System.nanoTime() - start) / 1e3 / entries.size();
    }

    public static void main(String[] args) throws IOException {
        int rounds = Integer.parseInt(args[2]);
        double best = Double.MAX_VALUE;
        if (args[0].equals("open")) {
            for (int i = 0; i < rounds; i++) {
                long start = System.nanoTime();
                try (ZipFile zip = new ZipFile(args[1])) {
                    sum += zip.getEntry(args[3]).getSize();
                }
                best = Math.min(best, (System.nanoTime() - start) / 1e3);
            }
        } else {
            try (ZipFile zip = new ZipFile(args[1])) {
                List<ZipEntry> entries = new ArrayList<>();
                zip.stream().forEach(entries::add);
                byte[] buffer = new byte[8192];
                long until = System.nanoTime() + 1_500_000_000L;
                while (System.nanoTime() < until) {
                    readAll(zip, entries, buffer);
                }
                for (int i = 0; i < rounds; i++) {
                    best = Math.min(best, readAll(zip, entries, buffer));
                }
            }
        }
        System.out.printf("%.2f %d%n", best, sum);
    }
}
