// SPDX-License-Identifier: MIT
// 4096 bytes of int, short and char by DataOutputStream into an array, a
// buffered file and a raw file: JDK-8254078's cases. Prints µs per 4096 bytes.
//
// java Streams.java FOLDER

import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;

public class Streams {
    interface Body {
        void run() throws IOException;
    }

    static double microseconds(Body body) throws IOException {
        double best = Double.MAX_VALUE;
        for (int round = 0; round < 12; round++) {
            long start = System.nanoTime();
            for (int i = 0; i < 200; i++) {
                body.run();
            }
            best = Math.min(best, (System.nanoTime() - start) / 200e3);
        }
        return best;
    }

    static void measure(String sink, OutputStream raw, ByteArrayOutputStream array) throws IOException {
        DataOutputStream out = new DataOutputStream(raw);
        String[] types = {"int", "short", "char"};
        Body[] bodies = {
            () -> { for (int i = 0; i < 1024; i++) out.writeInt(i); },
            () -> { for (int i = 0; i < 2048; i++) out.writeShort(i); },
            () -> { for (int i = 0; i < 2048; i++) out.writeChar(i); },
        };
        for (int k = 0; k < types.length; k++) {
            Body body = bodies[k];
            double us = microseconds(() -> {
                if (array != null) {
                    array.reset();
                }
                body.run();
                out.flush();
            });
            System.out.printf("%s %s %.2f%n", sink, types[k], us);
        }
    }

    public static void main(String[] args) throws IOException {
        String folder = args[0];
        ByteArrayOutputStream array = new ByteArrayOutputStream(4096);
        measure("array", array, array);
        try (OutputStream file = new FileOutputStream(Path.of(folder, "java_buffered").toFile())) {
            measure("buffered", new BufferedOutputStream(file), null);
        }
        try (OutputStream file = new FileOutputStream(Path.of(folder, "java_raw").toFile())) {
            measure("raw", file, null);
        }
    }
}
