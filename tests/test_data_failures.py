# SPDX-License-Identifier: MIT
"""Typed data streams when things go wrong: targets and sources that fail or
misbehave, re-entry, and every system call and allocation made to fail."""

from __future__ import annotations

import array
import contextlib
import errno
import io
import os
import select
import struct

import pytest

from pyio_chunked import DataReader, DataWriter, _core, build_info
from pyio_chunked.java import DataInput, DataOutput

# ------------------------------------------------------------ failed flushes


class Stubborn:
    """Takes `budget` bytes, then raises; the budget can be raised."""

    def __init__(self, budget, piece=10**9):
        self.got, self.budget, self.piece = bytearray(), budget, piece

    def write(self, data):
        room = self.budget - len(self.got)
        if room <= 0:
            raise OSError(28, "no space")
        n = min(len(data), room, self.piece)
        self.got += data[:n]
        return n


@pytest.mark.parametrize("budget", [0, 1, 3, 4, 50, 63, 64, 65, 100, 399])
@pytest.mark.parametrize("piece", [1, 7, 10**9])
def test_a_failed_flush_keeps_what_was_not_written(budget, piece):
    target = Stubborn(budget, piece)
    w = DataWriter(target, buffer_size=64)
    written = []
    for n in range(100):
        try:
            w.write_int32(n)
            written.append(n)
        except OSError as error:
            assert error.errno == 28
            assert len(target.got) == budget
            break
    with pytest.raises(OSError):
        w.flush()
    assert len(target.got) == budget
    target.budget = 10**9
    w.flush()
    assert bytes(target.got) == struct.pack(f">{len(written)}i", *written)
    w.write_int32(-1)
    w.close()
    assert bytes(target.got) == struct.pack(f">{len(written) + 1}i", *written, -1)


@pytest.mark.parametrize("size", [0, 64, 256])
def test_write_faults_lose_and_double_nothing(size, tmp_path):
    """The k-th write fails, or comes short, before and after: what was
    accepted arrives once, in order."""
    for error in (28, 5, 4, 11):
        for k in range(1, 7):
            for short in (None, 1, 3):
                path = tmp_path / "file"
                want = b""
                w = DataWriter(path, buffer_size=size)
                if short is not None:
                    _core._fault_add("write", max_nbytes=short, first=k, times=2)
                    _core._fault_add("write", error=error, first=k + 2)
                else:
                    _core._fault_add("write", error=error, first=k)
                failures = 0
                for n in range(120):
                    for value, write in (
                        (struct.pack(">i", n), lambda w=w, n=n: w.write_int32(n)),
                        (b"\0\x05hello", lambda w=w: w.write_str("hello", "uint16")),
                        (struct.pack(">hd", 1, 2.5), lambda w=w: w.write_struct("hd", 1, 2.5)),
                    ):
                        before = w.tell()
                        try:
                            write()
                            want += value
                        except OSError as caught:
                            failures += 1
                            assert caught.errno == error and caught.transferred >= 0
                            # Either nothing of the value was taken, or all is pending.
                            assert w.tell() - before in (0, len(value))
                            if w.tell() != before:
                                want += value
                try:
                    w.flush()
                except OSError:
                    failures += 1
                    w.flush()
                assert failures == (0 if error == 4 else 1)
                w.close()
                _core._fault_clear()
                assert path.read_bytes() == want


def test_a_large_value_says_how_far_it_came(tmp_path):
    w = DataWriter(tmp_path / "file", buffer_size=4096)
    w.write_int32(1)
    _core._fault_add("write", max_nbytes=1000, first=2)
    _core._fault_add("write", error=28, first=3)
    with pytest.raises(OSError) as caught:
        w.write_bytes(b"x" * 10_000)
    _core._fault_clear()
    assert caught.value.transferred == 1000
    assert caught.value.filename == str(tmp_path / "file")
    w.close()
    assert (tmp_path / "file").read_bytes() == b"\0\0\0\1" + b"x" * 1000


def test_dev_full_names_the_file():
    w = DataWriter("/dev/full")
    w.write_int32(1)
    with pytest.raises(OSError) as caught:
        w.flush()
    assert caught.value.errno == 28 and caught.value.filename == "/dev/full" and caught.value.transferred == 0
    with pytest.raises(OSError):
        w.close()
    assert w.closed
    w.close()


# --------------------------------------------------- objects that misbehave


@pytest.mark.parametrize("answer", [-1, 5, 10**30, "4", 2.5, [], b""])
def test_a_target_that_lies_about_its_count(answer):
    class Liar:
        def write(self, data):
            return answer

    w = DataWriter(Liar())
    w.write_int32(1)
    with pytest.raises(OSError):
        w.flush()
    with pytest.raises(OSError):
        w.close()


@pytest.mark.parametrize("answer", [-1, 10**9, 10**30, "4", 2.5, []])
def test_a_source_that_lies_about_its_count(answer):
    class Liar:
        def readinto(self, buffer):
            return answer

    r = DataReader(Liar())
    for read in (
        r.read_int32,
        lambda: r.read_bytes(10**6),
        lambda: r.read_array("int8", 10**6),
        r.at_eof,
        r.read,
    ):
        with pytest.raises(OSError):
            read()
    r.close()


def test_would_block_is_said(tmp_path):
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    with DataReader(read) as r:
        with pytest.raises(BlockingIOError):
            r.read_int32()
        os.write(write, b"\0\0\0")
        with pytest.raises(BlockingIOError):
            r.read_int32()
        assert r.tell() == 0
        os.write(write, b"\5")
        assert r.read_int32() == 5
    w = DataWriter(write, buffer_size=64)
    with pytest.raises(BlockingIOError) as caught:
        w.write_bytes(b"x" * 1_000_000)
    taken = caught.value.characters_written
    assert 0 < taken < 1_000_000 and caught.value.transferred == taken
    assert (
        sum(len(piece) for piece in iter(lambda: os.read(read, 1 << 16) if select_ready(read) else b"", b""))
        == taken
    )
    w.close()
    os.close(read)
    os.close(write)


def select_ready(fd):
    return select.select([fd], [], [], 0)[0]


@pytest.mark.parametrize("kept", ["view", "slice"])
def test_memory_that_was_lent_is_never_lost_to_who_keeps_it(kept):
    class Keeper:
        def __init__(self):
            self.views, self.keep = [], True

        def take(self, view):
            if self.keep:
                self.views.append(memoryview(view) if kept == "view" else view[:2])

        def write(self, view):
            self.take(view)
            return len(view)

        def readinto(self, view):
            self.take(view)
            view[:2] = b"ab"
            return 2

    keeper = Keeper()
    w = DataWriter(keeper)
    w.write_int32(1)
    with pytest.raises(BufferError):
        w.flush()
    for value in (b"x" * 100_000, "s" * 100_000):
        with pytest.raises(BufferError):
            (w.write_bytes if isinstance(value, bytes) else w.write_str)(value)
    keeper.keep = False
    w.write_int32(2)
    w.close()
    keeper.keep = True
    r = DataReader(keeper)
    for read in (r.read_int16, lambda: r.read_bytes(1 << 20), lambda: r.read_array("int64", 1000)):
        with pytest.raises(BufferError):
            read()
    keeper.keep = False
    assert r.read_bytes(2) == b"ab"
    r.close()
    assert all(len(bytes(view)) for view in keeper.views)


# ------------------------------------------------------------------ re-entry


def test_reentry_is_an_error():
    class Nosy:
        def __init__(self):
            self.errors = []

        def again(self):
            for call in self.calls:
                try:
                    call()
                except RuntimeError as error:
                    self.errors.append(str(error))

        def write(self, data):
            self.again()
            return len(data)

        def readinto(self, buffer):
            self.again()
            return 0

        def flush(self):
            self.again()

    nosy = Nosy()
    w = DataWriter(nosy)
    nosy.calls = [lambda: w.write_int32(1), w.flush, w.close, w.tell, w.detach, lambda: w.write_str("x")]
    w.write_int32(5)
    w.flush()
    assert len(nosy.errors) == 12 and all("reentrant call" in e for e in nosy.errors)
    nosy.errors.clear()
    nosy.calls = []
    w.close()
    r = DataReader(nosy)
    nosy.calls = [r.read_int32, r.read, r.tell, r.close, r.at_eof, lambda: r.read_struct("i")]
    assert r.read() == b""
    assert len(nosy.errors) == 6
    r.close()


def test_conversions_may_use_the_stream():
    target = io.BytesIO()

    class Index:
        def __index__(self):
            w.write_int8(9)
            w.write_struct("bbb", 1, 2, 3)
            w.write_struct("b", 4)
            w.write_struct(">b", 4)
            w.write_struct("bb", 4, 4)
            w.write_struct("2b", 4, 4)
            return 7

    with DataWriter(target, buffer_size=64) as w:
        for _ in range(20):
            w.write_int8(Index())
            w.write_struct("hb", Index(), 1)
    inner = bytes([9, 1, 2, 3, 4, 4, 4, 4, 4, 4])
    assert target.getvalue() == (inner + b"\7" + inner + b"\0\7\1") * 20


# -------------------------------------------------------- faults, every one


def write_all(path):
    """Every way to write, in one file; what it has to hold."""
    numbers = array.array("d", range(30_000))
    with DataWriter(path, buffer_size=8192) as w:
        w.write_int32(5)
        w.write_str("é" * 5000)
        w.write_str("s" * 20_000, "uvarint")
        w.write_mutf8("é" * 5000)
        w.write_array(numbers)
        w.write_struct("9000xb", 1)
        w.write_struct("3p", b"ab")
        w.align(4096)
    with DataWriter(path.with_suffix(".unbuffered"), buffer_size=0) as w:
        w.write_str("s" * 20_000)
        w.write_mutf8("é" * 5000)
        w.write_array(numbers)
        w.align(1 << 20)
    with DataOutput(path.with_suffix(".java")) as out:
        out.writeChars("chars")
        out.writeUTF("é")


def read_all(path):
    found = []
    with DataReader(path, buffer_size=8192) as r:
        found += [r.read_int32(), r.read_str(), r.read_str("uvarint"), r.read_mutf8()]
        found += [r.read_array("float64", 30_000), r.read_struct("9000xb"), r.read_struct("3p")]
        r.align(4096)
        assert r.at_eof()
        r.seek(0)
        out = bytearray(8 * 1000)
        r.skip(4)
        found += [
            r.read(100_000),
            r.peek(10_000),
            r.read_array("float64", 1000, out=out),
            bytes(out),
            r.read(),
        ]
    with open(path, "rb", buffering=0) as f, DataReader(f, buffer_size=64) as r:
        found += [
            r.read_bytes(50_000),
            r.tell(),
            next(r.iter_struct("200x4s")),
            r.fileno() > 0,
            r.seek(-5, 2),
            r.read(),
        ]
        assert r.detach() is f
    with open(path, "rb") as f, DataReader(f, buffer_size=64) as r:
        found += [r.read_bytes(50_000), r.read_array("int16", 10_000), r.read()]
    with DataInput(path.with_suffix(".java")) as source:
        found += [source.readChar(), source.skipBytes(8), source.readUTF(), source.readLine()]
    return found


@pytest.mark.parametrize("call", ["openat", "close", "write", "lseek", "malloc", "calloc", "fstat"])
def test_every_fault_while_writing_is_an_error_and_leaks_nothing(call, tmp_path):
    path = tmp_path / "file"
    _core._fault_count()
    write_all(path)
    most = _core._fault_calls().get(call, 0)
    _core._fault_clear()
    want = path.read_bytes()
    descriptors = len(os.listdir("/proc/self/fd"))
    for k in range(1, most + 1):
        _core._fault_add(call, error=errno.EIO, first=k)
        with pytest.raises(MemoryError if call.endswith("alloc") else OSError):
            write_all(path)
        _core._fault_clear()
    assert len(os.listdir("/proc/self/fd")) == descriptors
    write_all(path)
    assert path.read_bytes() == want
    assert most > 0 or call == "fstat"


@pytest.mark.parametrize(
    "call",
    [
        "openat",
        "close",
        "read",
        "pread",
        "pread_nowait",
        "lseek",
        "fstat",
        "malloc",
        "calloc",
        "allow_result",
    ],
)
def test_every_fault_while_reading_is_an_error_and_leaks_nothing(call, tmp_path):
    path = tmp_path / "file"
    write_all(path)
    _core._fault_count()
    want = read_all(path)
    most = _core._fault_calls().get(call, 0)
    assert most > 0
    _core._fault_clear()
    descriptors = len(os.listdir("/proc/self/fd"))
    failure = MemoryError if call in ("malloc", "calloc", "allow_result") else OSError
    survived = 0
    for k in range(1, most + 1):
        _core._fault_add(call, error=errno.EIO, first=k)
        try:
            assert read_all(path) == want
        except failure:
            pass
        else:
            survived += 1  # a size or a page cache that could not be asked is only a hint
        _core._fault_clear()
    assert survived == 0 or call in ("fstat", "pread_nowait")
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert read_all(path) == want


@pytest.mark.parametrize("call", ["read", "pread"])
@pytest.mark.parametrize("most", [1, 3, 1000])
def test_short_reads_and_interrupted_ones_are_gone_on_with(call, most, tmp_path):
    path = tmp_path / "file"
    write_all(path)
    want = read_all(path)
    _core._fault_add(call, max_nbytes=most, first=1, times=300)
    _core._fault_add(call, error=errno.EINTR, first=301, times=2)
    assert read_all(path) == want


@pytest.mark.parametrize("call", ["malloc", "allow_result", "read", "pread"])
def test_a_fault_inside_a_value_leaves_it_to_be_read(call, tmp_path):
    """Whatever fails, however far it came: the value is read afterwards."""
    text, numbers = "s" * 300_000, array.array("h", range(-30_000, 30_000))
    path = tmp_path / "file"
    with DataWriter(path) as w:
        w.write_str(text)
        w.write_array(numbers)
        w.write_cstr(text)

    def sources():
        yield path
        with open(path, "rb", buffering=0) as f:
            yield f
        with open(path, "rb") as f:
            yield f
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, path.read_bytes())
            os._exit(0)
        os.close(write)
        yield read
        os.close(read)
        os.wait()

    hit = 0
    for k in range(1, 14):
        for source in sources():
            with DataReader(source, buffer_size=4096) as r:
                _core._fault_add(call, error=errno.EIO, first=k)
                for want, read in (
                    (text, r.read_str),
                    (numbers, lambda r=r: r.read_array("int16", len(numbers))),
                    (text, r.read_cstr),
                ):
                    before = r.tell()
                    try:
                        assert read() == want
                    except (MemoryError, OSError):
                        hit += 1
                        assert r.tell() == before
                        assert read() == want
                _core._fault_clear()
                assert r.at_eof()
    assert hit > 0


# ----------------------------------------------- refills from the page cache


def counted(read):
    """What read gives, and how often the file was asked in each way."""
    _core._fault_count()
    result = read()
    calls = _core._fault_calls()
    _core._fault_clear()
    return result, calls.get("pread_nowait", 0), calls.get("pread", 0) + calls.get("read", 0)


def answers_nowait(fd):
    """Does this build, and the file system under fd, know the call?"""
    if build_info()["portable"]:
        return False
    try:
        return os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT) == 1
    except OSError:
        return False


def source_of(kind, path, stack):
    if kind == "path":
        return path
    file = stack.enter_context(open(path, "rb", buffering=0))
    return file if kind == "raw" else file.fileno()


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(struct.pack(">100000i", *range(100_000)))
    return path


@pytest.mark.parametrize("kind", ["path", "fd", "raw"])
def test_a_refill_asks_the_page_cache_first(kind, numbers):
    """Under the GIL, once a call at most; what may wait, or goes on, gives it up."""
    with contextlib.ExitStack() as stack:
        known = answers_nowait(stack.enter_context(open(numbers, "rb")).fileno())
        r = stack.enter_context(DataReader(source_of(kind, numbers, stack)))
        assert counted(r.read_int32) == (0, 1, 0 if known else 1)
        assert counted(r.read_int32) == (1, 0, 0)
        r.seek(200_000)
        assert counted(r.read_int32) == ((50_000, 1, 0) if known else (50_000, 0, 1))
        # Large reads, and values of several refills.
        r.seek(0)
        found, nowait, plain = counted(lambda: r.read_array("int32", 90_000))
        assert list(found) == list(range(90_000)) and nowait <= 1 and plain > 0
        r.seek(0)
        found, nowait, plain = counted(lambda: r.peek(200_000))
        assert len(found) == 200_000 and nowait == (1 if known else 0) and plain > 0
        r.skip(400_000)
        assert counted(r.at_eof) == (True, 1 if known else 0, 1)


@pytest.mark.parametrize("kind", ["path", "fd", "raw"])
@pytest.mark.parametrize(
    "error", [errno.EAGAIN, errno.EINTR, errno.EIO, errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM]
)
def test_a_page_cache_without_an_answer_is_gone_around(error, kind, numbers):
    with contextlib.ExitStack() as stack:
        r = stack.enter_context(DataReader(source_of(kind, numbers, stack), buffer_size=4096))
        _core._fault_add("pread_nowait", error=error, first=1, times=1000)
        assert [r.read_int32() for _ in range(100_000)] == list(range(100_000))
        calls = _core._fault_calls()
        refused = error in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM)
        assert calls["pread_nowait"] == 1 if refused else calls["pread_nowait"] > 97
        assert calls.get("pread", 0) + calls.get("read", 0) > 97
        _core._fault_clear()
        assert r.at_eof()


@pytest.mark.parametrize("kind", ["path", "fd", "raw"])
@pytest.mark.parametrize("most", [1, 3, 1000])
def test_a_page_cache_with_half_an_answer(most, kind, numbers):
    with contextlib.ExitStack() as stack:
        r = stack.enter_context(DataReader(source_of(kind, numbers, stack), buffer_size=4096))
        _core._fault_add("pread_nowait", max_nbytes=most, first=1, times=10_000)
        assert list(r.iter_struct("i")) == [(n,) for n in range(100_000)]


def test_pipes_and_objects_have_no_page_cache(numbers):
    read, write = os.pipe()
    os.write(write, b"\0\0\0\5")
    with DataReader(read) as r:
        assert counted(r.read_int32) == (5, 0, 1)
    os.close(read)
    os.close(write)
    with open(numbers, "rb") as f, DataReader(f) as r:
        assert counted(r.read_int32) == (0, 0, 0)


def test_a_regular_file_that_cannot_seek(numbers):
    """As /proc has some: read where it stands, from the first read on."""
    with DataReader(numbers, buffer_size=4096) as r:
        _core._fault_add("pread_nowait", error=errno.ESPIPE, first=1)
        _core._fault_add("pread", error=errno.ESPIPE, first=1)
        assert r.read_int32() == 0
        _core._fault_clear()
        assert not r.seekable()
        assert [r.read_int32() for _ in range(99_999)] == list(range(1, 100_000))
        assert r.at_eof() and r.tell() == 400_000
