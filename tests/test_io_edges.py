# SPDX-License-Identifier: MIT
"""The edges: sizes that are lies, pipes, sockets, terminals, full disks, huge
offsets, odd buffers, modes, closed files.

Length: one table of cases, read from top to bottom beside the issue's.
"""

from __future__ import annotations

import array
import errno
import fcntl
import gc
import io
import os
import pickle
import resource
import socket
import subprocess
import sys
import textwrap
import threading
import tty
import warnings
import weakref
from pathlib import Path
from typing import Any

import pytest
from terminal_help import open_terminal

import pyio_chunked
from pyio_chunked import _core

DATA = bytes(range(256)) * 400  # 102,400 bytes


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(DATA)
    return path


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ------------------------------------------------- 1. memory follows arrival

HUGE_REQUESTS = """
    import os, resource, socket, sys
    import pyio_chunked

    path = sys.argv[1]
    data = bytes(range(256)) * 400
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))  # far below 2**40
    pyio_chunked.read_bytes(path)


    def peak() -> int:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


    def reset() -> None:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")


    def pipe() -> object:
        ours, theirs = os.pipe()
        os.write(theirs, data[:60_000])
        os.close(theirs)
        return pyio_chunked.open(ours)


    def connection() -> object:
        ours, theirs = socket.socketpair()
        theirs.sendall(data[:60_000])
        theirs.close()
        return pyio_chunked.open(ours.detach())


    def path_file() -> object:
        return pyio_chunked.open(path)


    calls = [
        (path_file, lambda f: f.read(2**62), data),
        (path_file, lambda f: f.read(2**40), data),
        (path_file, lambda f: f.pread(2**40, 0), data),
        (path_file, lambda f: f.readline(2**40), data[:11]),
        (path_file, lambda f: f.read1(2**40), None),
        (path_file, lambda f: b"".join(f.chunks(2**40)), data),
        (path_file, lambda f: bytes(f.read_buffer(2**40)), data),
        (path_file, lambda f: pyio_chunked.read_bytes(path, size=2**40), data),
        (lambda: pyio_chunked.open(path, "r+b"), lambda f: f.read(2**40), data),
        (pipe, lambda f: f.read(2**62), data[:60_000]),
        (pipe, lambda f: f.readline(2**40), data[:11]),
        (pipe, lambda f: f.read1(2**40), None),
        (connection, lambda f: f.read(2**40), data[:60_000]),
        (lambda: pyio_chunked.open("/proc/self/maps"), lambda f: f.read(2**40), None),
    ]
    for make, call, expected in calls:
        with make() as file:
            reset()
            before = peak()
            result = call(file)
            after = peak()
            assert result and (expected is None or result == expected), (call, len(result))
            assert after - before <= 2 * len(result) + (1 << 20), (after - before, len(result))
"""


@pytest.mark.own_memory
def test_huge_requests_cost_what_arrives(path):
    run(HUGE_REQUESTS, str(path))


def test_large_file_costs_itself(tmp_path):
    """At most 1 MiB beside the data."""
    path = tmp_path / "large"
    with open(path, "wb") as file:
        file.truncate(200 << 20)
    run(
        """
        import sys, pyio_chunked

        def status(name):
            with open("/proc/self/status") as file:
                return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

        small = pyio_chunked.read_bytes(sys.executable, size=100)
        for threads in (None, 1, 2):
            pyio_chunked.read_bytes(sys.argv[1], size=20 << 20, threads=threads)  # threads exist
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
            before = status("VmHWM")
            data = pyio_chunked.read_bytes(sys.argv[1], threads=threads)
            assert len(data) == 200 << 20
            assert status("VmHWM") - before <= (200 << 20) + (1 << 20)
            del data
        """,
        str(path),
    )


@pytest.mark.own_memory
def test_a_size_that_is_a_lie_is_not_allocated(path):
    """fstat says what was; the file is cut before it is read."""
    run(
        """
        import os, resource, sys, pyio_chunked
        path = sys.argv[1]
        os.truncate(path, 4 << 30)
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        with pyio_chunked.open(path) as file:
            os.truncate(path, 1000)
            assert len(file.read()) == 1000
        """,
        str(path),
    )


def test_an_idle_file_holds_no_chunk(path):
    with pyio_chunked.open(path) as file:
        _core._fault_count()
        before = dict(_core._fault_calls())
        files = [pyio_chunked.open(path) for _ in range(50)]
        assert "malloc" not in _core._fault_calls()
        files[0].read(1)
        file.read(1)
        after = _core._fault_calls().get("malloc", 0)
        assert after <= 2, (before, after)
        for each in files:
            each.close()


def test_the_chunk_goes_back_when_it_is_empty(path):
    with pyio_chunked.open(path, chunk_size=1 << 20) as file:
        for turn in range(6):  # larger than any pooled one: each is its own
            if turn == 1:  # what the pool had to make is there now
                _core._fault_count()
            file.seek(0)
            assert file.readline(5) == DATA[:5]
            assert len(file.read()) == len(DATA) - 5
        assert _core._fault_calls()["malloc"] == 5


# ------------------------------------------------------------ 2. size 0, 4096


@pytest.mark.parametrize(
    "name", ["/proc/version", "/proc/cpuinfo", "/sys/kernel/mm/transparent_hugepage/enabled"]
)
def test_files_whose_size_says_nothing(name):
    if not os.path.exists(name):
        pytest.skip("no such file here")
    with open(name, "rb") as file:
        expected = file.read()
    assert expected
    assert pyio_chunked.read_bytes(name) == expected
    assert pyio_chunked.read_bytes(name, size=2**40) == expected
    assert pyio_chunked.read_bytes(name, offset=3) == expected[3:]
    with pyio_chunked.open(name) as ours:
        assert ours.read() == expected
        ours.seek(0)
        assert b"".join(ours) == expected
        assert ours.pread(10, 5) == expected[5:15]


def test_own_maps():
    assert b"_core" in pyio_chunked.read_bytes("/proc/self/maps")


# ------------------------------------------------------- 3. growing, shrinking


def test_a_file_that_grows(path):
    with pyio_chunked.open(path) as file, open(path, "ab") as more:
        assert file.read() == DATA
        more.write(b"more")
        more.flush()
        assert file.read() == b"more"
        more.write(b"line\n")
        more.flush()
        assert file.readline() == b"line\n"


def test_a_file_that_grows_while_it_is_read(path):
    """What was there when it was looked at, and an end."""
    with open(path, "ab", buffering=0) as more:
        for size in (len(DATA), 17 << 20):
            os.truncate(path, size)
            stop = threading.Event()

            def grow(stop: Any = stop, size: int = size) -> None:
                while not stop.is_set() and path.stat().st_size < size + (64 << 20):
                    more.write(DATA[:65_536])

            thread = threading.Thread(target=grow)
            thread.start()
            for _ in range(5):
                before = path.stat().st_size
                assert len(pyio_chunked.read_bytes(path)) >= before
            stop.set()
            thread.join()


def test_growth_is_followed_once(path):
    """A writer that is always ahead can't keep a reader for ever."""
    with open(path, "ab", buffering=0) as more, pyio_chunked.open(path) as file:
        assert file.read(1) == DATA[:1]
        more.write(b"more")
        _core._fault_count()
        assert file.read() == DATA[1:] + b"more"
        assert _core._fault_calls().get("fstat", 0) <= 2


@pytest.mark.parametrize("length", [len(DATA), 24 << 20])
def test_a_file_that_shrinks(length, path):
    os.truncate(path, length)
    with (
        pyio_chunked.open(path, chunk_size=16) as file,
        pyio_chunked.open(path, chunk_size=1 << 30) as other,
    ):
        assert file.read(10) == DATA[:10]
        os.truncate(path, 5_000)
        assert len(other.read()) == 5_000
        assert file.pread(100, 4_990) == DATA[4_990:5_000]
        file.seek(4_000)
        assert file.read() == DATA[4_000:5_000]
        buffer = bytearray(b"#") * 2_000
        assert pyio_chunked.read_into(path, buffer, offset=4_500) == 500
        assert buffer[500:] == b"#" * 1_500


# ------------------------------------------------------------------- 4. pipes


def test_read1_of_a_pipe_does_not_wait_twice():
    ours, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 1 << 20)
    with pyio_chunked.open(ours) as file:
        os.write(theirs, bytes(262144))  # just one chunk; a second read would block
        got = 0
        while got < 262144:
            piece = file.read1()
            assert piece
            got += len(piece)
        os.write(theirs, b"abc")
        assert file.read1(2) == b"ab"
        assert file.read1(2) == b"c"
        os.close(theirs)


def test_one_end_of_a_terminal_ends_it():
    main, other = open_terminal()
    tty.setraw(main)
    attributes = tty.tcgetattr(other) if hasattr(tty, "tcgetattr") else None
    import termios

    attributes = termios.tcgetattr(other)
    attributes[3] |= termios.ICANON
    termios.tcsetattr(other, termios.TCSANOW, attributes)
    with pyio_chunked.open(other) as file:
        assert file.isatty() and not file.seekable()
        os.write(main, b"line\n\x04")
        assert file.read() == b"line\n"
        os.write(main, b"more\n")
        assert file.readline() == b"more\n"
    os.close(main)


# ------------------------------------------------------------ 5. non-blocking


def nonblocking_pipe() -> tuple[int, int]:
    return os.pipe2(os.O_NONBLOCK)


def test_nonblocking_reads_as_io():
    ours, theirs = nonblocking_pipe()
    with pyio_chunked.open(ours) as file:
        assert file.read() is None
        assert file.read(10) is None
        assert file.read1(10) is None
        assert file.read1() is None
        assert file.readinto(bytearray(10)) is None
        assert file.readinto1(bytearray(10)) is None
        assert file.read_buffer(10) is None
        assert file.peek() == b""
        assert file.readline() == b""
        with pytest.raises(BlockingIOError):
            list(file.chunks())
        os.write(theirs, b"part")
        assert file.read(10) == b"part"
        os.write(theirs, b"rest")
        assert file.read() == b"rest"
        os.write(theirs, b"line\nbegun")
        assert file.readline() == b"line\n"
        assert file.readline() == b"begun"
        os.close(theirs)
        assert file.read() == b""


def test_read_bytes_of_what_would_block():
    ours, theirs = nonblocking_pipe()
    os.write(theirs, b"part")
    with pytest.raises(BlockingIOError) as caught:
        pyio_chunked.read_bytes(ours)
    assert caught.value.partial == b"part"
    os.close(ours)
    os.close(theirs)


def test_positions_of_what_cannot_seek(tmp_path):
    ours, theirs = os.pipe()
    with pyio_chunked.open(ours) as file:
        os.write(theirs, b"data")
        for call in (
            lambda: file.pread(4, 0),
            lambda: file.preadinto(bytearray(4), 0),
            lambda: pyio_chunked.read_bytes(ours, offset=1, size=2),
        ):
            with pytest.raises(OSError) as caught:
                call()
            assert caught.value.errno == errno.ESPIPE
        with pytest.raises(io.UnsupportedOperation):
            file.seek(0)
        with pytest.raises(OSError):
            file.tell()
        os.close(theirs)
        assert file.read() == b"data"


def test_nonblocking_write_that_fits_half():
    ours, theirs = nonblocking_pipe()
    capacity = fcntl.fcntl(theirs, fcntl.F_GETPIPE_SZ)
    file = pyio_chunked.open(theirs, "wb", chunk_size=1000)
    data = bytes(range(256)) * ((capacity + 10_000) // 256)
    with pytest.raises(BlockingIOError) as caught:
        file.write(data)
    accepted = caught.value.characters_written
    assert caught.value.errno == errno.EAGAIN
    assert accepted == capacity + 1000  # the pipe's, and a chunk's
    with pytest.raises(BlockingIOError) as caught:
        file.write(b"x")
    assert caught.value.characters_written == 0
    with pytest.raises(BlockingIOError):
        file.flush()
    received = os.read(ours, capacity)
    file.close()
    received += os.read(ours, capacity)
    assert received == data[:accepted]
    os.close(ours)


def test_nonblocking_write_that_the_chunk_takes():
    ours, theirs = nonblocking_pipe()
    capacity = fcntl.fcntl(theirs, fcntl.F_GETPIPE_SZ)
    os.write(theirs, bytes(capacity))
    with pyio_chunked.open(theirs, "wb", chunk_size=1000) as file:
        assert file.write(b"a" * 900) == 900
        with pytest.raises(BlockingIOError) as caught:
            file.write(b"b" * 200)
        assert caught.value.characters_written == 100
        os.read(ours, capacity)
        file.flush()
        assert os.read(ours, capacity) == b"a" * 900 + b"b" * 100
    os.close(ours)


# --------------------------------------------------------------- 7. full disks


def test_dev_full():
    with pytest.raises(OSError) as caught:
        pyio_chunked.write_bytes("/dev/full", b"data")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")
    assert caught.value.transferred == 0
    assert os.path.exists("/dev/full")
    file = pyio_chunked.open("/dev/full", "wb")
    file.write(b"data")
    with pytest.raises(OSError) as caught:
        file.close()
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")
    assert file.closed


def test_file_size_limit(tmp_path):
    path = tmp_path / "file"
    run(
        """
        import errno, resource, signal, sys, pyio_chunked
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            pyio_chunked.write_bytes(sys.argv[1], bytes(150_000))
        except OSError as error:
            assert error.errno == errno.EFBIG and error.filename == sys.argv[1]
            assert error.transferred == 100_000
        else:
            sys.exit("no error")
        with pyio_chunked.open(sys.argv[1], "wb", chunk_size=1000) as file:
            try:
                file.write(bytes(150_000))
            except OSError as error:
                assert error.transferred == 100_000 and file.tell() == 100_000
            else:
                sys.exit("no error")
        """,
        str(path),
    )
    assert path.stat().st_size == 100_000


def test_endless_devices_need_a_size():
    for name in ("/dev/zero", "/dev/urandom", "/dev/full"):
        with pytest.raises(ValueError, match="never ends"):
            pyio_chunked.read_bytes(name)
        with pyio_chunked.open(name) as file, pytest.raises(ValueError, match="never ends"):
            file.read()
        assert len(pyio_chunked.read_bytes(name, size=100)) == 100
    assert pyio_chunked.read_bytes("/dev/null") == b""


# ------------------------------------------------------- 8. large, and bounds


def test_more_than_two_gibibytes(tmp_path):
    path = tmp_path / "large"
    size = (2 << 30) + 5_000
    with open(path, "wb") as file:
        file.truncate(size)
        file.seek(size - 4)
        file.write(b"tail")
    import mmap

    with mmap.mmap(-1, size) as memory:
        assert pyio_chunked.read_into(path, memory) == size
        assert memory[-4:] == b"tail"
        memory[0:4] = b"head"
        path.unlink()
        with pyio_chunked.open(path, "wb") as ours:
            assert ours.write(memory) == size
            assert ours.tell() == size
    with pyio_chunked.open(path) as ours:
        assert ours.pread(4, 0) == b"head"
        assert ours.seek(-4, 2) == size - 4
        assert ours.read() == b"tail"
    path.unlink()


def test_offsets_past_four_gibibytes(tmp_path):
    path = tmp_path / "sparse"
    with pyio_chunked.open(path, "w+b") as file:
        file.seek(1 << 40)
        file.write(b"far")
        assert file.tell() == (1 << 40) + 3
        assert file.pwrite(b"near", 5 << 32) == 4
        assert file.pread(4, 5 << 32) == b"near"
        assert file.pread(-1, 1 << 40) == b"far"
    assert pyio_chunked.read_bytes(path, offset=1 << 40) == b"far"
    assert pyio_chunked.read_bytes(path, offset=5 << 32, size=5) == b"near\0"
    with pyio_chunked.open(path) as file:
        assert file.seek(1 << 40) == 1 << 40
        assert file.read1() == b"far"


def test_bad_numbers_are_refused_before_any_call(path):
    with pyio_chunked.open(path, "r+b") as file:
        _core._fault_count()
        for call in (
            lambda: file.pread(2**62, 2**62 + 2**62 - 1),
            lambda: file.pread(1, 2**63),
            lambda: file.preadinto(bytearray(10), 2**63 - 5),
            lambda: file.pwrite(b"x" * 10, 2**63 - 5),
            lambda: pyio_chunked.read_bytes(path, offset=2**62, size=2**62),
            lambda: pyio_chunked.read_bytes(path, offset=2**64),
            lambda: pyio_chunked.read_bytes(path, size=2**64),
            lambda: pyio_chunked.read_into(path, bytearray(10), offset=2**63 - 5),
        ):
            with pytest.raises(OverflowError):
                call()
        for call in (
            lambda: file.pread(-2, 0),
            lambda: file.pread(1, -1),
            lambda: file.preadinto(bytearray(1), -1),
            lambda: file.pwrite(b"x", -1),
            lambda: file.read(-2),
            lambda: file.chunks(0),
            lambda: file.chunks(-1),
            lambda: file.read_buffer(-5),
            lambda: pyio_chunked.read_bytes(path, offset=-1),
            lambda: pyio_chunked.read_bytes(path, size=-2),
            lambda: pyio_chunked.read_bytes(path, threads=0),
            lambda: pyio_chunked.open(path, chunk_size=0),
            lambda: pyio_chunked.open(path, chunk_size=2**40),
        ):
            with pytest.raises(ValueError):
                call()
        assert _core._fault_calls() == {}
        with pytest.raises(OSError, match="Invalid argument"):
            file.seek(-1)


# ------------------------------------------------------------------ 9. buffers


def test_buffers_of_every_kind(path, tmp_path):
    numpy = pytest.importorskip("numpy")
    with pyio_chunked.open(path) as file:
        numbers = array.array("I", [0] * 10)
        assert file.readinto(numbers) == 40
        assert numbers.tobytes() == DATA[:40]
        matrix = numpy.zeros((4, 5), "<u2")
        assert file.readinto(matrix) == 40
        assert matrix.tobytes() == DATA[40:80]
        assert file.readinto(memoryview(bytearray(10))[3:]) == 7
        assert file.readinto(bytearray()) == 0
        assert file.preadinto(bytearray(), 5) == 0
        assert file.tell() == 87
        for bad in (b"bytes", "text", numpy.zeros((4, 4))[:, 1], memoryview(bytearray(8))[::2]):
            with pytest.raises((TypeError, BufferError, ValueError)) as ours:
                file.readinto(bad)
            with pytest.raises((TypeError, BufferError, ValueError)) as theirs, open(path, "rb") as peer:
                peer.readinto(bad)
            assert type(ours.value) is type(theirs.value)
    new = tmp_path / "new"
    with pyio_chunked.open(new, "wb", chunk_size=16) as file:
        assert file.write(array.array("H", [1, 2])) == 4
        assert file.write(pickle.PickleBuffer(b"pickle")) == 6
        assert file.write(numpy.arange(20, dtype="u1")) == 20
        assert file.write(memoryview(b"abc")) == 3
        assert file.write(b"") == 0
        for bad in ("text", 5, None, memoryview(b"12345678")[::2]):
            with pytest.raises((TypeError, BufferError)) as ours:
                file.write(bad)
            with pytest.raises((TypeError, BufferError)) as theirs, open(os.devnull, "wb") as peer:
                peer.write(bad)
            assert type(ours.value) is type(theirs.value)
    assert new.read_bytes() == b"\1\0\2\0pickle" + bytes(range(20)) + b"abc"
    with pytest.raises(TypeError):
        pyio_chunked.write_bytes(new, "text")
    with pytest.raises(TypeError):
        pyio_chunked.write_bytes(new, ["text"])


# ------------------------------------------------------------- 11. closed files


def test_after_close(path):
    file = pyio_chunked.open(path, "r+b")
    file.read(1)
    file.close()
    file.close()
    assert file.closed and file.name == str(path) and "File" in repr(file)
    calls: list[Any] = [
        lambda: file.read(),
        lambda: file.read(0),
        lambda: file.read1(),
        lambda: file.readinto(bytearray(1)),
        lambda: file.readinto1(bytearray(1)),
        lambda: file.read_buffer(5),
        lambda: file.peek(),
        lambda: file.readline(),
        lambda: file.readlines(),
        lambda: next(file),
        lambda: file.chunks(),
        lambda: file.write(b"x"),
        lambda: file.writelines([]),
        lambda: file.pread(1, 0),
        lambda: file.preadinto(bytearray(1), 0),
        lambda: file.pwrite(b"x", 0),
        lambda: file.seek(0),
        lambda: file.tell(),
        lambda: file.truncate(),
        lambda: file.flush(),
        lambda: file.sync(),
        lambda: file.fileno(),
        lambda: file.isatty(),
        lambda: file.readable(),
        lambda: file.writable(),
        lambda: file.seekable(),
        lambda: file.detach(),
        lambda: file.__enter__(),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"^I/O operation on closed file\.$"):
            call()


# -------------------------------------------------------- 13. modes, append, holes


def test_append(path):
    with pyio_chunked.open(path, "ab") as ours, open(path, "ab") as theirs:
        assert ours.tell() == theirs.tell() == len(DATA)
        ours.write(b"abc")
        assert ours.tell() == len(DATA) + 3
        ours.flush()
        with pytest.raises(io.UnsupportedOperation):
            ours.pwrite(b"x", 0)
    assert path.read_bytes() == DATA + b"abc"


def test_holes(tmp_path):
    path = tmp_path / "file"
    with pyio_chunked.open(path, "wb") as file:
        file.seek(1 << 20)
        file.write(b"end")
        assert file.truncate(2 << 20) == 2 << 20
        assert file.tell() == (1 << 20) + 3
    assert path.stat().st_size == 2 << 20
    assert path.read_bytes().strip(b"\0") == b"end"


@pytest.mark.parametrize(
    "mode", ["", "b", "rw", "rb+b", "rbt", "rr", "U", "rU", "z", "r+w", "+", "rb ", "é", "t", "rwa"]
)
def test_bad_modes(mode, path):
    with pytest.raises(ValueError):
        open(path, mode)
    with pytest.raises(ValueError):
        pyio_chunked.open(path, mode)


def test_failures_of_opening_are_the_builtin_ones(tmp_path):
    def outcome(function: Any, *arguments: Any) -> Any:
        try:
            function(*arguments).close()
        except Exception as error:
            named = None if isinstance(arguments[0], int) else getattr(error, "filename", None)
            return type(error), getattr(error, "errno", None), named
        return None

    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "secret").write_bytes(b"")
    cases = [
        (tmp_path / "missing", "rb"),
        (tmp_path / "missing" / "file", "wb"),
        (tmp_path, "rb"),
        (tmp_path, "wb"),
        (tmp_path / "file", "xb"),
        (tmp_path / "file" / "below", "rb"),
        (str(tmp_path / "nul\0"), "rb"),
        (os.fsencode(tmp_path / "missing"), "rb"),
        (987_654, "rb"),
        (-5, "rb"),
        (1.5, "rb"),
        (None, "rb"),
        (["x"], "rb"),
        (tmp_path / ("x" * 300), "rb"),
    ]
    for case in cases:
        assert outcome(pyio_chunked.open, *case) == outcome(open, *case), case
    for call in (pyio_chunked.read_bytes, lambda p: pyio_chunked.read_into(p, bytearray(5))):
        with pytest.raises(FileNotFoundError) as caught:
            call(tmp_path / "missing")
        assert caught.value.filename == str(tmp_path / "missing")
        with pytest.raises(IsADirectoryError):
            call(tmp_path)
    with pytest.raises(IsADirectoryError):
        pyio_chunked.write_bytes(tmp_path, b"x", atomic=True)
    with pytest.raises(ValueError, match="path"):
        pyio_chunked.write_bytes(1, b"x", atomic=True)


def test_binary_modes_refuse_text_options(path):
    for option in ({"encoding": "utf-8"}, {"errors": "strict"}, {"newline": ""}):
        with pytest.raises(ValueError) as ours:
            pyio_chunked.open(path, "rb", **option)
        with pytest.raises(ValueError) as theirs:
            open(path, "rb", **option)
        assert str(ours.value) == str(theirs.value)


def test_an_update_of_what_cannot_seek_is_refused():
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(io.UnsupportedOperation):
        pyio_chunked.open(ours.detach(), "r+b")  # which closes it, as builtins.open


def test_a_given_descriptor_is_owned_when_opening_worked(path):
    number = os.open(path, os.O_RDONLY)
    with pyio_chunked.open(number) as file:
        assert file.fileno() == number == file.name
    with pytest.raises(OSError):
        os.fstat(number)
    number = os.open(path.parent, os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        pyio_chunked.open(number)
    os.close(number)  # was not taken


def test_read_bytes_leaves_a_descriptor_as_it_is(path):
    with open(path, "rb", buffering=0) as file:
        file.seek(7)
        assert pyio_chunked.read_bytes(file.fileno()) == DATA
        assert pyio_chunked.read_bytes(file.fileno(), offset=5, size=5) == DATA[5:10]
        assert file.tell() == 7


# ------------------------------------------------- 51. audit, close-on-exec, calls


def test_audit_events_are_those_of_the_builtin(path):
    out = run(
        """
        import sys, pyio_chunked
        path, seen = sys.argv[1], []
        sys.addaudithook(lambda event, arguments: seen.append(arguments) if event == "open" else None)
        for mode in ("rb", "r+b", "wb", "ab"):
            pyio_chunked.open(path, mode).close()
            open(path, mode).close()
            assert seen[-1] == seen[-2], (mode, seen)
        seen.clear()
        pyio_chunked.read_bytes(path)
        pyio_chunked.read_into(path, bytearray(1))
        pyio_chunked.write_bytes(path, b"x")
        pyio_chunked.write_bytes(path, b"x", atomic=True)
        print([(name == path, mode) for name, mode, flags in seen])
        """,
        str(path),
    )
    assert out.strip() == "[(True, 'r'), (True, 'r'), (True, 'w'), (True, 'w')]"


def test_an_audit_hook_can_refuse(path):
    run(
        """
        import os, sys, pyio_chunked
        path = sys.argv[1]
        before = len(os.listdir("/proc/self/fd"))

        def refuse(event, arguments):
            if event == "open":
                raise PermissionError("no")

        sys.addaudithook(refuse)
        for call in (pyio_chunked.open, pyio_chunked.read_bytes,
                     lambda p: pyio_chunked.write_bytes(p + "new", b"x")):
            try:
                call(path)
            except PermissionError:
                pass
            else:
                sys.exit("not refused")
        assert len(os.listdir("/proc/self/fd")) == before
        assert not os.path.exists(path + "new")
        """,
        str(path),
    )


def test_descriptors_are_close_on_exec(path):
    for mode in ("rb", "r+b", "wb", "ab"):
        with pyio_chunked.open(path, mode) as file:
            assert not os.get_inheritable(file.fileno())


@pytest.mark.parametrize("size", [1, 4096, 16_383, 16_384, 65_536, 1_000_000])
def test_read_bytes_takes_four_calls(size, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(size))
    _core._fault_count()
    assert len(pyio_chunked.read_bytes(path)) == size
    calls = dict(_core._fault_calls())
    calls.pop("allow_result", None)
    # The page cache is asked first; where it has no answer, a fifth follows.
    refused = calls.pop("pread_nowait", 0) if "pread" in calls else 0
    assert refused <= 1
    assert sum(calls.values()) == 4, calls
    assert calls["openat"] == calls["fstat"] == calls["close"] == 1


def test_small_file_by_open_takes_four_calls(path):
    path.write_bytes(b"x" * 4096)
    _core._fault_count()
    with pyio_chunked.open(path) as file:
        file.read()
    calls = {name: count for name, count in _core._fault_calls().items() if name != "allow_result"}
    if "pread" in calls:
        calls.pop("pread_nowait", None)
    assert sum(calls.values()) == 4, calls


def test_reads_at_the_bounds_of_the_methods(tmp_path):
    """49: which call moves the bytes, at each bound."""
    path = tmp_path / "file"
    path.write_bytes(bytes(17 << 20))
    with pyio_chunked.open(path) as file:

        def reads(size: int) -> int:
            file.seek(0, 2)  # out of what is read ahead
            file.seek(0)
            _core._fault_count()
            assert len(file.read(size)) == size
            calls = _core._fault_calls()
            _core._fault_clear()
            return sum(calls.get(name, 0) for name in ("read", "pread", "pread_nowait"))

        assert reads(16_383) in (1, 2)  # by the chunk: one fill
        assert reads(262_144) in (1, 2)
        assert reads(8 << 20) == 1
        assert reads((8 << 20) + 1) == 2  # one slice and a rest
        assert reads((16 << 20) - 1) in (2, 3)  # a slow slice is halved
        assert reads(16 << 20) == 8  # by pieces of the parallel read


def test_writes_at_the_bounds_of_the_methods(tmp_path):
    """49: below a chunk bytes are gathered, from a chunk on they go through."""
    path = tmp_path / "file"
    for chunk in (4_096, 65_536, 262_144):
        with pyio_chunked.open(path, "wb", chunk_size=chunk) as file:

            def on_disk(size: int, path: Any = path, file: Any = file) -> int:
                file.seek(0)
                file.truncate()
                assert file.write(bytes(size)) == size
                return path.stat().st_size

            assert [on_disk(chunk - 1), on_disk(chunk), on_disk(chunk + 1)] == [0, chunk, chunk + 1]
            file.seek(0)
            file.truncate()
            _core._fault_count()
            for _ in range(8):
                file.write(b"x" * (chunk // 8))
            assert _core._fault_calls().get("write", 0) <= (1 if chunk < 131_072 else 2)
            file.flush()
            assert path.read_bytes() == b"x" * chunk
            _core._fault_clear()


def test_kept_bytes_and_memory_that_changes(tmp_path):
    """Bytes are kept until they are flushed; what may change is not."""
    path = tmp_path / "file"
    with pyio_chunked.open(path, "wb") as file:
        changing = bytearray(b"a" * 100_000)
        file.write(changing)
        changing[:] = b"b" * 100_000
        file.write(b"c" * 100_000)
        file.write(changing)
        changing[:] = b"d" * 100_000
        file.write(b"e")
    content = path.read_bytes()
    assert content == b"a" * 100_000 + b"c" * 100_000 + b"b" * 100_000 + b"e"


# ------------------------------------------------------------ objects of Python


def test_attributes_weak_references_subclasses(path):
    class Own(pyio_chunked.File):
        def readline(self, size: int | None = -1, /) -> bytes:
            return b"own" if self.read(50_000) else b""

    with Own(path) as file:
        file.note = "kept"
        assert file.note == "kept" and weakref.ref(file)() is file
        assert list(file) == [b"own"] * 3
        assert isinstance(file, io.BufferedIOBase)
        file.name = "other"
        assert file.name == "other"
    with pyio_chunked.open(path) as file:
        file.size = 5
        assert pickle.loads(pickle.dumps(file)).close() is None
    assert issubclass(pyio_chunked.File, io.BufferedIOBase)
    assert pyio_chunked.File.__module__ == pyio_chunked.open.__module__ == "pyio_chunked"


def test_subclass_flush_is_called_by_close(path):
    seen = []

    class Own(pyio_chunked.File):
        def flush(self) -> None:
            seen.append(1)
            super().flush()

    with Own(path, "wb") as file:
        file.write(b"x")
    assert seen == [1]
    assert path.read_bytes() == b"x"


def test_dropped_open_warns_and_writes(path):
    file = pyio_chunked.open(path, "wb")
    file.write(b"pending")
    with pytest.warns(ResourceWarning, match="unclosed file"):
        del file
        gc.collect()
    assert path.read_bytes() == b"pending"


def test_cycles_are_collected(path):
    file = pyio_chunked.open(path)
    file.me = file
    reference = weakref.ref(file)
    with pytest.warns(ResourceWarning):
        del file
        gc.collect()
    assert reference() is None


def test_failed_opening_warns_of_nothing(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for bad in (path / "below", path.parent, 987_654):
            with pytest.raises(OSError):
                pyio_chunked.open(bad)
        gc.collect()


def test_memory_error_of_a_chunk(path):
    """A read that could have used a chunk and gets none is told so."""
    with pyio_chunked.open(path, chunk_size=1 << 20) as file:
        _core._fault_add("malloc", error=errno.ENOMEM, times=10)
        with pytest.raises(MemoryError):
            file.readline()
        _core._fault_clear()
        assert file.read() == DATA


def test_read_buffer_returns_its_memory(path):
    with pyio_chunked.open(path) as file:
        view = file.read_buffer(1000)
        assert view.nbytes == 1000 and view.readonly
        part = view[10:20]
        del view
        gc.collect()
        assert part == DATA[10:20]
        assert file.read_buffer(200_000) == DATA[1000:]
        assert file.read_buffer(5) == b""
        file.seek(0)
        assert file.read_buffer() == DATA


@pytest.mark.own_memory
def test_rlimit_is_told_as_memory_error(tmp_path):
    path = tmp_path / "large"
    with open(path, "wb") as file:
        file.truncate(3 << 30)
    run(
        """
        import resource, sys, pyio_chunked
        with pyio_chunked.open(sys.argv[1]) as file:
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
            try:
                file.read()
            except MemoryError as error:
                assert file.tell() == 0
            else:
                sys.exit("no error")
            assert file.read(10) == bytes(10)
        """,
        str(path),
    )
    assert resource.RLIMIT_AS is not None


def test_dev_shm_has_no_nowait(tmp_path):
    """tmpfs refuses RWF_NOWAIT: remembered, once per file."""
    folder = Path("/dev/shm")
    if not os.path.ismount(folder) or not os.access(folder, os.W_OK):
        pytest.skip("no /dev/shm")  # or, in a bare root, a folder like any other
    path = folder / f"pyio-{os.getpid()}"
    try:
        path.write_bytes(DATA)
        with pyio_chunked.open(path) as file:
            _core._fault_count()
            for _ in range(10):
                file.seek(0)
                assert file.read(20_000) == DATA[:20_000]
            assert _core._fault_calls()["pread_nowait"] == 1
        _core._fault_clear()
        _core._fault_count()
        assert pyio_chunked.read_bytes(path) == DATA
        calls = {name: n for name, n in _core._fault_calls().items() if name != "allow_result"}
        assert sum(calls.values()) == 4, calls
    finally:
        path.unlink()
