# SPDX-License-Identifier: MIT
"""Typed data streams among threads, processes and signals; sockets; what is
audited and inherited."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from pyio_chunked import DataReader, DataWriter, ShortReadError

# ----------------------------------------------------------- threads, fork


@pytest.mark.parametrize("size", [0, 64, 65536])
def test_four_threads_tear_no_value(size, tmp_path):
    path = tmp_path / "file"
    counts, interval = 5000, sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with DataWriter(path, buffer_size=size) as w:

            def run(which):
                for _ in range(counts if size else 500):
                    w.write_int64(which * 0x0101010101010101)
                    w.write_str(str(which) * 9, "uint8")
                    w.write_struct("bq", which, which)

            threads = [threading.Thread(target=run, args=(k,)) for k in range(1, 5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    data = path.read_bytes()
    r, found = DataReader(data), {}
    while not r.at_eof():
        if r.peek(1) == b"\x09":
            text = r.read_str("uint8")
            assert len(set(text)) == 1 and len(text) == 9
            found[text[0]] = found.get(text[0], 0) + 1
        elif len(set(r.peek(8))) == 1:
            r.read_int64()
        else:
            a, b = r.read_struct("bq")
            assert a == b
    assert set(found.values()) == {counts if size else 500} and len(found) == 4


def test_four_threads_read_values_whole(tmp_path):
    path = tmp_path / "file"
    with DataWriter(path) as w:
        for n in range(40_000):
            w.write_struct("ii", n, ~n)
    with DataReader(path, buffer_size=64) as r:
        seen = []

        def run():
            mine = []
            try:
                while True:
                    a, b = r.read_struct("ii")
                    assert a == ~b
                    mine.append(a)
            except ShortReadError:
                seen.append(mine)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(x for mine in seen for x in mine) == list(range(40_000))


def test_a_blocked_write_holds_no_other_thread_up():
    read, write = os.pipe()
    w = DataWriter(write, buffer_size=0)
    writer = threading.Thread(target=lambda: w.write_bytes(b"x" * 300_000))
    writer.start()
    time.sleep(0.05)
    other = threading.Thread(target=lambda: w.write_int32(7))  # waits detached
    other.start()
    got = b""
    while len(got) < 300_004:
        got += os.read(read, 65536)
    writer.join()
    other.join()
    assert got == b"x" * 300_000 + b"\0\0\0\7"
    w.close()
    os.close(read)
    os.close(write)


def test_fork(tmp_path):
    script = """if True:
        import os, sys, threading, time, warnings
        warnings.simplefilter("ignore")
        from pyio_chunked import DataReader, DataWriter
        path = sys.argv[1]
        with DataWriter(path) as w:
            for n in range(100_000):
                w.write_int32(n)
        # A positional reader goes on in both, each by its own position.
        r = DataReader(path)
        assert [r.read_int32() for _ in range(1000)] == list(range(1000))
        child = os.fork()
        rest = [r.read_int32() for _ in range(99_000)]
        assert rest == list(range(1000, 100_000))
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        # A stream that a call of another thread holds raises in the child.
        read, write = os.pipe()
        blocked = DataReader(read)
        thread = threading.Thread(target=lambda: blocked.read_int32())
        thread.start()
        time.sleep(0.1)
        child = os.fork()
        if child == 0:
            try:
                blocked.read_int32()
            except RuntimeError as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        os.write(write, b"\\0\\0\\0\\1")
        thread.join()
        r.close()
        blocked.close()
    """
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "file")], check=True, timeout=60)


# ------------------------------------------------------------------- signals


@contextmanager
def alarm_after(seconds, action):
    before = signal.signal(signal.SIGALRM, action)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Stop(Exception):
    pass


def stop(*_):
    raise Stop


def test_a_handler_that_raises_loses_no_byte_of_a_read():
    for read_value in (
        lambda r: r.read_int64(),
        lambda r: r.read_bytes(100_000),
        lambda r: r.read_str(),
        lambda r: r.read_array("int16", 100_000),
        lambda r: r.read_array("int16", 100_000, out=bytearray(200_000)),
        lambda r: r.read(100_000),
        lambda r: r.read_cstr(),
        lambda r: r.read_struct("4q"),
    ):
        for size in (0, 65536):
            read, write = os.pipe()
            os.write(write, b"\0\1\2\3\4\5\6")
            with DataReader(read, buffer_size=size) as r:
                if r"cstr" in read_value.__code__.co_names or "read_cstr" in read_value.__code__.co_names:
                    r.skip(1)
                at = r.tell()
                with alarm_after(0.05, stop), pytest.raises(Stop):
                    read_value(r)
                assert r.tell() == at
                os.close(write)
                assert r.read() == b"\0\1\2\3\4\5\6"[at:]
            os.close(read)


def test_a_handler_that_raises_loses_no_byte_of_a_write():
    read, write = os.pipe()
    w = DataWriter(write, buffer_size=1 << 20)
    for n in range(60_000):
        w.write_int32(n)
    started = time.monotonic()
    with alarm_after(0.05, stop), pytest.raises(Stop) as caught:
        w.flush()
    assert time.monotonic() - started < 5
    assert caught.value.transferred == 65536
    data = bytearray()

    def drain():
        while piece := os.read(read, 65536):
            data.extend(piece)

    reader = threading.Thread(target=drain)
    reader.start()
    w.close()
    os.close(write)
    reader.join()
    os.close(read)
    assert data == struct.pack(">60000i", *range(60_000))


def test_a_handler_that_returns_changes_nothing():
    read, write = os.pipe()
    seen = []
    with alarm_after(0.05, lambda *_: (seen.append(1), os.write(write, b"\0\0\0\5"))), DataReader(read) as r:
        assert r.read_int32() == 5
    assert seen == [1]
    os.close(read)
    os.close(write)


# ------------------------------------------------------------------- sockets


def test_sockets_wait_as_their_timeout_says():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0.05)
        with DataReader(ours) as r:
            theirs.sendall(b"\0\0")
            with pytest.raises(TimeoutError):
                r.read_int32()
            theirs.sendall(b"\0\7")
            assert r.read_int32() == 7
            ours.settimeout(5)
            threading.Timer(0.05, theirs.sendall, [b"\0\0\0\x09"]).start()
            assert r.read_int32() == 9
            ours.settimeout(0)
            with pytest.raises(BlockingIOError):
                r.read_int32()
        ours.settimeout(0.05)
        w = DataWriter(ours, buffer_size=64)
        with pytest.raises(TimeoutError) as caught:
            w.write_bytes(b"x" * 10_000_000)
        assert 0 < caught.value.transferred < 10_000_000
        w.close()


def test_a_raw_file_closed_behind_our_back_is_no_other_file(tmp_path):
    f = open(tmp_path / "file", "wb", buffering=0)
    w = DataWriter(f)
    w.write_int32(1)
    f.close()
    with open(tmp_path / "other", "wb"):
        with pytest.raises(ValueError, match="closed"):
            w.flush()
        with pytest.raises(ValueError, match="closed"):
            w.close()
    assert (tmp_path / "other").read_bytes() == b""


# ------------------------------------------------------------ audit, inherit


def test_paths_raise_the_audit_event_and_are_not_inherited(tmp_path):
    path = tmp_path / "file"
    script = """if True:
        import os, sys
        events = []
        sys.addaudithook(lambda name, args: events.append(args) if name == "open" else None)
        from pyio_chunked import DataReader, DataWriter
        from pyio_chunked.java import DataInput, DataOutput
        path = sys.argv[1]
        for make, mode in ((DataWriter, "wb"), (DataReader, "rb"), (DataOutput, "wb"), (DataInput, "rb")):
            del events[:]
            with make(path) as stream:
                assert [e[:2] for e in events] == [(path, mode)], events
                if mode == "rb" and hasattr(stream, "fileno"):
                    assert not os.get_inheritable(stream.fileno())
            os.path.exists(path)
        w = DataWriter(path)
        assert not os.get_inheritable(w.fileno())
        w.close()
    """
    subprocess.run([sys.executable, "-W", "error", "-c", script, str(path)], check=True)
