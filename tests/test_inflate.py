# SPDX-License-Identifier: MIT
"""inflate and Inflater beside zlib and gzip."""

from __future__ import annotations

import array
import copy
import gzip
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inflate_help import BOUNDS, WBITS, outcome, pack, text

from pyio_chunked import Inflater, LimitError, inflate

# ---------------------------------------------------------------- whole buffers


@pytest.mark.parametrize("format", WBITS)
@pytest.mark.parametrize("size", BOUNDS)
def test_every_length(size, format):
    data = text(size)
    packed = pack(data, format)
    assert inflate(packed, format) == data
    assert inflate(packed) == data  # found by its first bytes
    out = bytearray(size)
    assert inflate(packed, format, out=out) == size
    assert out == data
    assert inflate(packed, format, max_size=size) == data
    out = bytearray(size + 3)
    assert inflate(memoryview(packed), format, out=out) == size
    assert out == data + bytes(3)


@pytest.mark.parametrize("format", WBITS)
def test_bounds_of_output(format):
    data = text(100_000)
    packed = pack(data, format)
    for bound in (0, 1, 99_999):
        with pytest.raises(LimitError) as caught:
            inflate(packed, format, max_size=bound)
        assert (caught.value.limit, caught.value.allowed) == ("max_size", bound)
        assert caught.value.value > bound
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, gzip.BadGzipFile) == (format == "gzip")
        assert pickle.loads(pickle.dumps(caught.value)).allowed == bound
        with pytest.raises(ValueError, match="out is too small") as small:
            inflate(packed, format, out=bytearray(bound))
        assert not isinstance(small.value, LimitError)
    with pytest.raises(LimitError):
        inflate(packed, format, max_size=5, out=bytearray(10))
    with pytest.raises(ValueError, match="max_size"):
        inflate(packed, format, max_size=-1)


def test_a_bomb_takes_no_memory():
    packed = pack(bytes(200 << 20), "gzip", 9)
    code = """
import resource, sys, pyio_chunked
packed = sys.stdin.buffer.read()
pyio_chunked.inflate(packed[:0], "gzip")
size = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (size + (24 << 20),) * 2)
try:
    pyio_chunked.inflate(packed, max_size=1 << 20)
except pyio_chunked.LimitError as error:
    print(error.limit)
"""
    done = subprocess.run([sys.executable, "-c", code], input=packed, capture_output=True)
    assert done.stdout.split() == [b"max_size"], done.stderr


def test_a_forged_size_is_no_reason_for_memory():
    """ISIZE says 4 GiB; what comes is small, under an address-space limit."""
    packed = pack(os.urandom(1000) * 50, "gzip")
    forged = packed[:-4] + b"\xff\xff\xff\xff"
    code = """
import gzip, io, resource, sys, pyio_chunked
packed = sys.stdin.buffer.read()
size = int(open("/proc/self/statm").read().split()[0]) * 4096
gzip.BadGzipFile
resource.setrlimit(resource.RLIMIT_AS, (size + (16 << 20),) * 2)
for call in (
    lambda: pyio_chunked.inflate(packed),
    lambda: pyio_chunked.GzipFile(fileobj=io.BytesIO(packed)).read(),
    lambda: pyio_chunked.GzipFile(sys.argv[1]).read(),
):
    try:
        call()
    except gzip.BadGzipFile as error:
        print(type(error).__name__)
"""
    path = f"/proc/self/fd/{os.memfd_create('forged')}"
    fd = int(path.rsplit("/", 1)[1])
    os.write(fd, forged)
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, path],
            input=forged,
            capture_output=True,
            pass_fds=[fd],
        )
    finally:
        os.close(fd)
    assert done.stdout.split() == [b"BadGzipFile"] * 3, done.stderr


@pytest.mark.parametrize("call", ["read()", "read(150 << 20)", "readline()"])
def test_no_memory_for_a_result_loses_nothing(call):
    packed = pack(bytes(range(16, 256)) * (160 << 12), "gzip")
    code = f"""
import io, resource, sys, pyio_chunked
f = pyio_chunked.GzipFile(fileobj=io.BytesIO(sys.stdin.buffer.read()))
f.read(1)
size = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (size + (48 << 20),) * 2)
try:
    f.{call}
except MemoryError:
    print(f.tell(), f.read(1000) == (bytes(range(16, 256)) * 5)[1:1001], f.tell())
"""
    done = subprocess.run([sys.executable, "-c", code], input=packed, capture_output=True)
    assert done.stdout.split() == [b"1", b"True", b"1001"], done.stderr


@pytest.mark.parametrize("format", WBITS)
def test_cut_at_every_byte(format):
    packed = pack(text(3000), format) + pack(text(10), format) * (format == "gzip")
    first = len(pack(text(3000), format))
    for cut in range(len(packed)):
        piece = packed[:cut]
        if format == "gzip" and cut in (0, first):
            assert inflate(piece, format) == (text(3000) if cut else b"")
        elif format == "gzip":
            with pytest.raises((EOFError, gzip.BadGzipFile)):
                inflate(piece, format)
        else:
            with pytest.raises(zlib.error, match="Error -5 .* incomplete or truncated stream"):
                inflate(piece, format)


@pytest.mark.parametrize("format", WBITS)
def test_every_bit_matters_or_changes_nothing(format):
    data = text(300)
    packed = pack(data, format)
    decompress = {"gzip": gzip.decompress}.get(format, lambda p: zlib.decompress(p, WBITS[format]))
    for bit in range(8 * len(packed)):
        bad = bytearray(packed)
        bad[bit // 8] ^= 1 << bit % 8
        ours, theirs = outcome(inflate, bad, format), outcome(decompress, bytes(bad))
        if format == "raw":
            assert ours == theirs, bit
        elif isinstance(ours, bytes):
            assert ours == data == theirs, bit
        else:
            assert issubclass(ours, (zlib.error, gzip.BadGzipFile, EOFError)), bit


def test_bytes_behind_the_end_are_treated_as_the_standard_library_does():
    data = text(1000)
    assert inflate(pack(data, "zlib") + b"junk") == data
    assert inflate(pack(data, "raw") + b"junk", "raw") == data
    member = pack(data, "gzip")
    assert inflate(member + bytes(1000) + member + bytes(3)) == data * 2
    with pytest.raises(gzip.BadGzipFile, match=r"Not a gzipped file \(b'ju'\).*member 2"):
        inflate(member + b"junk")
    with pytest.raises(gzip.BadGzipFile, match="Not a gzipped file"):
        inflate(member + b"\x1f")
    with pytest.raises(EOFError):
        inflate(member + b"\x1f\x8b")


def test_words_of_the_errors_say_where():
    member = pack(text(1000), "gzip")
    bad = bytearray(member + member)
    bad[-6] ^= 1
    with pytest.raises(gzip.BadGzipFile, match=r"CRC check failed 0x\w+ != 0x\w+ .*member 2, after 2000"):
        inflate(bad)
    bad = bytearray(member)
    bad[-1] ^= 1
    with pytest.raises(gzip.BadGzipFile, match="Incorrect length of data produced: 1000"):
        inflate(bad)
    bad = bytearray(member)
    bad[2] = 9
    with pytest.raises(gzip.BadGzipFile, match="Unknown compression method 9"):
        inflate(bad)
    with pytest.raises(zlib.error, match="Error -3 while decompressing data: incorrect data check"):
        inflate(pack(b"abc", "zlib")[:-1] + b"x")
    with pytest.raises(zlib.error, match="Error 2 while decompressing data"):
        inflate(pack(b"abc" * 99, "zlib", zdict=b"abcabc"))


@settings(max_examples=150)
@given(st.binary(max_size=3000), st.sampled_from(list(WBITS)), st.integers(0, 9), st.data())
def test_inflate_is_zlib(data, format, level, draw):
    packed = bytearray(pack(data, format, level))
    for _ in range(draw.draw(st.integers(0, 2))):
        packed[draw.draw(st.integers(0, len(packed) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    decompress = {"gzip": gzip.decompress}.get(format, lambda p: zlib.decompress(p, WBITS[format]))
    ours, theirs = outcome(inflate, packed, format), outcome(decompress, bytes(packed))
    if isinstance(theirs, bytes) and not (packed[0] == 31 and packed[3] & 0xE2):
        assert ours == theirs
    elif format == "raw":
        assert ours == theirs


# Streams that are valid or not by a hair; zlib is the judge.
def bits(*fields: tuple[int, int] | str) -> bytes:
    """(value, width) low bit first; a str is a Huffman code, first bit first."""
    out, at = 0, 0
    for field in fields:
        if isinstance(field, str):
            for bit in field:
                out |= int(bit) << at
                at += 1
        else:
            out |= field[0] << at
            at += field[1]
    return out.to_bytes((at + 7) // 8, "little")


ODD_STREAMS = {
    "stored, empty": b"\x01\x00\x00\xff\xff",
    "stored, 65535 bytes": b"\x01\xff\xff\x00\x00" + bytes(65535),
    "stored, length and complement differ": b"\x01\x00\x00\x00\x00",
    "stored, then empty final": b"\x00\x03\x00\xfc\xffabc\x01\x00\x00\xff\xff",
    "stored, no final block": b"\x00\x03\x00\xfc\xffabc",
    "fixed, empty": b"\x03\x00",
    "fixed, block type 3": b"\x07\x00",
    "fixed, distance too far": bits((3, 3), "0000001", "00000", "0000000"),
    "fixed, length code 286": bits((3, 3), "11000110", "00000", "0000000"),
    "fixed, distance code 30": bits((3, 3), "00110000", "0000001", "11110", "0000000"),
    "dynamic, too many codes": bits((1, 1), (2, 2), (31, 5), (0, 5), (0, 4), (0, 12)),
    "dynamic, code lengths over-subscribed": bits((1, 1), (2, 2), (0, 5), (0, 5), (0, 4), *[(1, 3)] * 4),
    "dynamic, code lengths incomplete": bits((1, 1), (2, 2), (0, 5), (0, 5), (0, 4), *[(3, 3)] * 4),
    "dynamic, all lengths zero": bits((1, 1), (2, 2), (0, 5), (0, 5), (0, 4), *[(0, 3)] * 4),
}


@pytest.mark.parametrize("name", ODD_STREAMS)
def test_odd_streams_by_zlibs_verdict(name):
    raw = ODD_STREAMS[name]
    theirs = outcome(zlib.decompress, raw, -15)
    assert outcome(inflate, raw, "raw") == theirs
    assert outcome(inflate, raw + b"tail", "raw") == outcome(zlib.decompress, raw + b"tail", -15)
    plain = theirs if isinstance(theirs, bytes) else b""
    framed = b"\x1f\x8b\x08" + bytes(7) + raw + struct.pack("<II", zlib.crc32(plain), len(plain))
    ours = outcome(inflate, framed, "gzip")
    assert ours == plain if isinstance(theirs, bytes) else (ours == b"" or isinstance(ours, type))


def test_distance_of_32768():
    data = os.urandom(32768) * 2
    for level in (1, 9):
        for format in WBITS:
            packed = pack(data, format, level)
            assert inflate(packed, format) == data
            inflater = Inflater(WBITS[format])
            assert (
                b"".join(inflater.decompress(packed[i : i + 100]) for i in range(0, len(packed), 100)) == data
            )


def test_arguments():
    packed = pack(b"abc", "zlib")
    assert inflate(array.array("B", packed)) == b"abc"
    assert inflate(data=packed, format="zlib") == b"abc"
    for wrong in ("abc", 5, None):
        with pytest.raises(TypeError):
            inflate(wrong)
    with pytest.raises(ValueError, match="format"):
        inflate(packed, "bzip2")
    with pytest.raises(TypeError):
        inflate(packed, "zlib", 5)
    with pytest.raises((TypeError, BufferError)):
        inflate(packed, out=b"read-only")
    with pytest.raises((TypeError, BufferError, ValueError)):
        inflate(memoryview(packed)[::2])
    out = array.array("i", [0] * 3)
    assert inflate(pack(b"abcdefgh", "zlib"), out=out) == 8
    assert out.tobytes() == b"abcdefgh" + bytes(4)
    assert inflate(b"", "gzip") == b""
    with pytest.raises(zlib.error):
        inflate(b"")


def test_many_members_at_once():
    data = [text(100, i) for i in range(3000)]
    packed = b"".join(map(gzip.compress, data))
    assert inflate(packed) == b"".join(data)
    with pytest.raises(LimitError):
        inflate(packed, max_size=299_999)
    assert inflate(packed, max_size=300_000) == b"".join(data)


def test_a_signal_gets_through_endless_empty_members():
    packed = gzip.compress(b"") * 3_000_000

    def handler(*_):
        raise InterruptedError("stop")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(InterruptedError, match="stop"):
            while True:
                inflate(packed)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---------------------------------------------------------------- Inflater


def state(inflater):
    return inflater.unused_data, inflater.unconsumed_tail, inflater.eof


@settings(max_examples=200)
@given(
    st.binary(max_size=400),
    st.integers(1, 400),
    st.sampled_from([-15, -9, 0, 9, 15, 25, 31, 47]),
    st.booleans(),
    st.data(),
)
def test_inflater_is_decompressobj_in_pieces(seed, repeat, wbits, bounded, draw):
    data = seed * repeat
    made = {47: 31, 0: 15}.get(wbits, wbits)
    packer = zlib.compressobj(6, zlib.DEFLATED, made)
    packed = packer.compress(data) + packer.flush() + draw.draw(st.sampled_from([b"", b"tail", b"\0" * 40]))
    theirs, ours = zlib.decompressobj(wbits), Inflater(wbits)
    at = 0
    while at < len(packed):
        size = draw.draw(st.integers(1, len(packed)))
        piece = packed[at : at + size]
        at += size
        for _ in range(50):
            # For raw data bounded calls may also follow unbounded ones.
            mixed = wbits < 0 and draw.draw(st.booleans())
            most = draw.draw(st.sampled_from([1, 7, 300, 20000])) if bounded and not mixed else 0
            assert ours.decompress(piece, most) == theirs.decompress(piece, most)
            assert state(ours) == state(theirs)
            piece = theirs.unconsumed_tail
            if not piece:
                break
        if draw.draw(st.integers(0, 5)) == 0 and not ours.eof:
            ours, theirs = ours.copy(), theirs.copy()
    assert ours.flush() == theirs.flush()
    assert state(ours) == state(theirs)


def test_bounded_calls_after_unbounded_ones_lose_nothing():
    """Another engine than zlib may have read ahead: a tail says so."""
    data = text(500_000)
    for format in ("zlib", "gzip"):
        packed = pack(data, format)
        inflater = Inflater(WBITS[format])
        out = inflater.decompress(packed[:1000])
        piece = packed[1000:]
        while piece:
            got = inflater.decompress(piece, 1000)
            assert len(got) <= 1000
            out += got
            piece = inflater.unconsumed_tail
        out += inflater.flush()
        assert out == data
        assert inflater.eof


def test_cut_inflater_at_every_byte():
    data = text(2000)
    for format, wbits in WBITS.items():
        packed = pack(data, format)
        for cut in range(len(packed)):
            inflater = Inflater(wbits)
            first = inflater.decompress(packed[:cut])
            assert not inflater.eof
            assert first == data[: len(first)]
            assert first + inflater.decompress(packed[cut:] + b"xy") == data
            assert state(inflater) == (b"xy", b"", True)


def test_inflater_with_dictionary():
    zdict = b"some words that come again"
    data = b"some words that come again and again"
    for format in ("zlib", "raw"):
        packed = pack(data, format, zdict=zdict)
        assert Inflater(WBITS[format], zdict=zdict).decompress(packed) == data
        assert Inflater(WBITS[format], zdict=bytearray(zdict)).decompress(packed) == data
        for piece in (1, 3):
            inflater = Inflater(WBITS[format], zdict=zdict)
            pieces = [packed[i : i + piece] for i in range(0, len(packed), piece)]
            assert b"".join(map(inflater.decompress, pieces)) == data
        copied = Inflater(WBITS[format], zdict=zdict).copy()
        assert copied.decompress(packed) == data
    with pytest.raises(zlib.error, match="Error 2 while decompressing data"):
        Inflater().decompress(pack(data, "zlib", zdict=zdict))
    with pytest.raises(zlib.error, match="Error -3 while setting zdict"):
        Inflater(zdict=b"another").decompress(pack(data, "zlib", zdict=zdict))
    with pytest.raises(TypeError, match="zdict"):
        Inflater(zdict="text")


def test_inflater_options():
    for wbits in range(-40, 80):
        ours, theirs = outcome(Inflater, wbits), outcome(zlib.decompressobj, wbits)
        assert (ours is theirs) or not isinstance(theirs, type), wbits
    assert isinstance(outcome(Inflater, 10**30), type)
    with pytest.raises(ValueError, match="non-negative"):
        Inflater().decompress(b"", -1)
    with pytest.raises(ValueError, match="greater than zero"):
        Inflater().flush(0)
    with pytest.raises(TypeError):
        Inflater().decompress("text")
    with pytest.raises(AttributeError):
        Inflater().eof = True


def test_window_smaller_than_the_stream_is_refused():
    packed = zlib.compress(text(100_000))
    with pytest.raises(zlib.error, match="invalid window size"):
        Inflater(9).decompress(packed)


def test_copies():
    packed = pack(text(200_000), "zlib")
    inflater = Inflater()
    out = inflater.decompress(packed[:5000])
    for other in (inflater.copy(), copy.copy(inflater), copy.deepcopy(inflater)):
        assert out + other.decompress(packed[5000:]) == text(200_000)
        with pytest.raises(ValueError):
            other.copy()
    assert out + inflater.decompress(packed[5000:]) == text(200_000)
    with pytest.raises(TypeError):
        pickle.dumps(Inflater())


def test_an_error_stays():
    inflater = Inflater(-15)
    for _ in range(3):
        with pytest.raises(zlib.error, match="invalid block type"):
            inflater.decompress(b"\x07\x00")


def test_inflater_is_shared_by_threads():
    packed = pack(text(3_000_000), "zlib")
    inflater, got, wrong = Inflater(), [], []
    pieces = iter([packed[i : i + 5000] for i in range(0, len(packed), 5000)])
    lock = threading.Lock()

    def feed():
        try:
            while True:
                with lock:  # the order is the caller's
                    piece = next(pieces, None)
                    if piece is None:
                        return
                    got.append(inflater.decompress(piece))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=feed) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert b"".join(got) == text(3_000_000)
