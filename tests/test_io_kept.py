# SPDX-License-Identifier: MIT
"""What a failed call keeps and says: lines that had been read, bytes that a
flush wrote, the owner of a file that is replaced."""

from __future__ import annotations

import errno
import gzip
import os
import resource
import signal
import stat
import threading
import time

import pytest

import pyio_chunked
from pyio_chunked import _core


class Alarm(Exception):
    pass


@pytest.fixture
def interrupt():
    """Raises Alarm in the main thread, which waits in a call by then."""

    def handler(number, frame):
        raise Alarm

    def run():
        time.sleep(0.05)
        signal.pthread_kill(main, signal.SIGUSR1)

    main = threading.main_thread().ident
    before = signal.signal(signal.SIGUSR1, handler)
    thread = threading.Thread(target=run)
    yield thread.start
    thread.join()
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("chunk_size", [4, 64, 262144])
def test_readlines_loses_no_line(chunk_size, interrupt):
    r, w = os.pipe()
    with pyio_chunked.open(r, chunk_size=chunk_size) as file:
        os.write(w, b"one\ntwo\nthr")
        interrupt()
        with pytest.raises(Alarm) as caught:
            file.readlines()
        assert caught.value.transferred == 11
        os.write(w, b"ee\nfour")
        os.close(w)
        assert file.readline() == b"one\n"
        assert file.readlines() == [b"two\n", b"three\n", b"four"]


def test_readlines_of_a_file_that_fails(tmp_path):
    path = tmp_path / "lines"
    lines = [b"%d\n" % i for i in range(2000)]
    path.write_bytes(b"".join(lines))
    for opened in (path, os.open(path, os.O_RDONLY)):
        with pyio_chunked.open(opened, chunk_size=512) as file:
            assert file.readline() == lines[0]
            for call in ("read", "pread", "pread_nowait"):
                _core._fault_add(call, error=errno.EIO, first=3, times=9)
            with pytest.raises(OSError, match="Input/output") as caught:
                file.readlines()
            _core._fault_clear()
            assert caught.value.transferred > 0
            assert file.tell() == len(lines[0])
            assert file.readlines() == lines[1:]


def test_readlines_as_io(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\nthree\nfour")
    for hint in (None, -1, 0, 1, 3, 4, 5, 8, 9, 100, True):
        with open(path, "rb") as ours, pyio_chunked.open(path) as file:
            assert file.readlines(hint) == ours.readlines(hint)
            assert file.tell() == ours.tell()
    with pyio_chunked.open(path) as file:
        for wrong in ("1", 1.5):
            with pytest.raises(TypeError):
                file.readlines(wrong)

    class Upper(pyio_chunked.File):
        def readline(self, size=-1):
            return super().readline(size).upper()

    with Upper(path) as file:
        assert file.readlines() == [b"ONE\n", b"TWO\n", b"THREE\n", b"FOUR"]


def test_iter_of_a_closed_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a\n")
    file = pyio_chunked.open(path)
    assert iter(file) is file
    file.close()
    with pytest.raises(ValueError, match="closed file"):
        iter(file)


def test_flush_says_how_much_it_wrote(tmp_path):
    path = tmp_path / "limited"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with pytest.raises(OSError, match="limited") as at_close, pyio_chunked.open(path, "wb") as file:
            file.write(b"x" * 60_000)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
            with pytest.raises(OSError, match="limited") as caught:
                file.flush()
            assert caught.value.transferred == 50_000
            assert file.tell() == 60_000
        assert at_close.value.transferred == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.stat().st_size == 50_000


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4])
def test_compression_is_seen_through_a_small_chunk(tmp_path, chunk_size):
    path = tmp_path / "file"
    path.write_bytes(b"front" + gzip.compress(b"data" * 100))
    fd = os.open(path, os.O_RDONLY)
    os.lseek(fd, 5, os.SEEK_SET)
    with pyio_chunked.open(fd, compression="infer", chunk_size=chunk_size) as file:
        assert file.read() == b"data" * 100
    with pyio_chunked.open(path, compression="infer", chunk_size=chunk_size) as file:
        assert file.read() == path.read_bytes()


@pytest.mark.parametrize("data", [b"", b"\x1f", b"PK", b"plain", gzip.compress(b"data")])
def test_compression_is_seen_in_a_pipe_that_brings_byte_after_byte(data):
    r, w = os.pipe()

    def feed():
        for i in range(len(data)):
            os.write(w, data[i : i + 1])
            time.sleep(0.002)
        os.close(w)

    thread = threading.Thread(target=feed)
    thread.start()
    with pyio_chunked.open(r, compression="infer") as file:
        assert file.read() == (b"data" if len(data) > 5 else data)
    thread.join()


# ------------------------------------------------------- whose a new file is


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away: needs root")
@pytest.mark.parametrize("how", ["write_bytes", "copyfile"])
class TestOwner:
    @staticmethod
    def replace(how, path):
        if how == "write_bytes":
            pyio_chunked.write_bytes(path, b"new", atomic=True)
        else:
            source = path.with_name("source")
            source.write_bytes(b"new")
            pyio_chunked.copyfile(source, path, atomic=True)

    def test_is_kept(self, tmp_path, how):
        path = tmp_path / "file"
        path.write_bytes(b"old")
        os.chown(path, 4711, 4712)
        os.chmod(path, 0o6750)
        self.replace(how, path)
        st = path.stat()
        assert path.read_bytes() == b"new"
        assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (4711, 4712, 0o6750)

    def test_that_cannot_be_kept_leaves_no_set_id_bits(self, tmp_path, how):
        path = tmp_path / "file"
        path.write_bytes(b"old")
        os.chown(path, 4711, 4712)
        os.chmod(path, 0o6750)
        _core._fault_add("fchown", error=errno.EPERM)
        self.replace(how, path)
        st = path.stat()
        assert path.read_bytes() == b"new"
        assert (st.st_uid, stat.S_IMODE(st.st_mode)) == (0, 0o750)
