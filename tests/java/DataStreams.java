// SPDX-License-Identifier: MIT
// What java.io.DataOutputStream and DataInputStream do with the same calls.
//
// java DataStreams.java write SCRIPT BYTES    runs the calls of SCRIPT, a line
//     each, and leaves the bytes in BYTES; prints an answer for each line
// java DataStreams.java read SCRIPT BYTES     reads BYTES by the calls of
//     SCRIPT; prints an answer for each line
//
// Text is given and printed as the hex of its UTF-16 units, floats as the hex
// of their bits, bytes as hex, so that no encoding stands between.

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UTFDataFormatException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

public class DataStreams {
    public static void main(String[] args) throws IOException {
        List<String> answers = new ArrayList<>();
        List<String> script = Files.readAllLines(Path.of(args[1]));
        Path bytes = Path.of(args[2]);

        if (args[0].equals("write")) {
            ByteArrayOutputStream sink = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(sink);
            for (String line : script) {
                String[] words = line.split(" ", -1);
                answers.add(answer(() -> write(out, words)));
            }
            out.flush();
            Files.write(bytes, sink.toByteArray());
        } else {
            DataInputStream in = new DataInputStream(
                new ByteArrayInputStream(Files.readAllBytes(bytes)));
            for (String line : script) {
                String[] words = line.split(" ", -1);
                answers.add(answer(() -> read(in, words)));
            }
        }
        System.out.print(String.join("\n", answers));
    }

    interface Call {
        String run() throws IOException;
    }

    static String answer(Call call) throws IOException {
        try {
            return call.run();
        } catch (EOFException e) {
            return "EOF";
        } catch (UTFDataFormatException e) {
            return "UTF";
        } catch (IndexOutOfBoundsException e) {
            return "INDEX";
        }
    }

    static String write(DataOutputStream out, String[] words) throws IOException {
        String value = words.length > 1 ? words[1] : "";
        switch (words[0]) {
            case "writeBoolean" -> out.writeBoolean(value.equals("1"));
            case "writeByte" -> out.writeByte(Integer.parseInt(value));
            case "writeShort" -> out.writeShort(Integer.parseInt(value));
            case "writeChar" -> out.writeChar(Integer.parseInt(value));
            case "writeInt" -> out.writeInt(Integer.parseInt(value));
            case "writeLong" -> out.writeLong(Long.parseLong(value));
            case "writeFloat" -> out.writeFloat(
                Float.intBitsToFloat(Integer.parseUnsignedInt(value, 16)));
            case "writeDouble" -> out.writeDouble(
                Double.longBitsToDouble(Long.parseUnsignedLong(value, 16)));
            case "writeBytes" -> out.writeBytes(text(value));
            case "writeChars" -> out.writeChars(text(value));
            case "writeUTF" -> out.writeUTF(text(value));
            case "write" -> out.write(Integer.parseInt(value));
            case "writePart" -> out.write(
                bytes(value), Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            default -> throw new IllegalArgumentException(words[0]);
        }
        return Integer.toString(out.size());
    }

    @SuppressWarnings("deprecation") // readLine
    static String read(DataInputStream in, String[] words) throws IOException {
        int n = words.length > 1 ? Integer.parseInt(words[1]) : 0;
        switch (words[0]) {
            case "readBoolean": return in.readBoolean() ? "1" : "0";
            case "readByte": return Integer.toString(in.readByte());
            case "readUnsignedByte": return Integer.toString(in.readUnsignedByte());
            case "readShort": return Integer.toString(in.readShort());
            case "readUnsignedShort": return Integer.toString(in.readUnsignedShort());
            case "readChar": return Integer.toString(in.readChar());
            case "readInt": return Integer.toString(in.readInt());
            case "readLong": return Long.toString(in.readLong());
            case "readFloat":
                return Integer.toHexString(Float.floatToRawIntBits(in.readFloat()));
            case "readDouble":
                return Long.toHexString(Double.doubleToRawLongBits(in.readDouble()));
            case "readUTF": return units(in.readUTF());
            case "readLine": {
                String line = in.readLine();
                return line == null ? "null" : units(line);
            }
            case "read": return Integer.toString(in.read());
            case "readBuffer": {
                byte[] buffer = new byte[n];
                int count = in.read(buffer);
                return count + " " + hex(buffer);
            }
            case "readFully": {
                byte[] buffer = new byte[n];
                in.readFully(buffer);
                return hex(buffer);
            }
            case "skipBytes": return Integer.toString(in.skipBytes(n));
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    static String text(String hex) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < hex.length(); i += 4) {
            text.append((char) Integer.parseInt(hex.substring(i, i + 4), 16));
        }
        return text.toString();
    }

    static String units(String text) {
        StringBuilder hex = new StringBuilder();
        for (int i = 0; i < text.length(); i++) {
            hex.append(String.format("%04x", (int) text.charAt(i)));
        }
        return "'" + hex;
    }

    static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    static String hex(byte[] bytes) {
        StringBuilder hex = new StringBuilder("'");
        for (byte b : bytes) {
            hex.append(String.format("%02x", b));
        }
        return hex.toString();
    }
}
