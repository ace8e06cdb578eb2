# SPDX-License-Identifier: MIT
"""Every method fails at its k-th call with every errno: what is a refusal goes
on by the next method at the position reached, what is an end ends at once with
the right count; and every system call and allocation of a copy fails once."""

from __future__ import annotations

import errno
import io
import os
import sys

import pytest
from transfer_help import (
    CALL_OF,
    CHUNK,
    ENDS,
    FILE_METHODS,
    KERNEL,
    KERNEL_CASES,
    REFUSALS,
    Pipe,
    counted,
    fault,
    file_of,
    noise,
)

import pyio_chunked
from pyio_chunked import _core, copyfile, transfer

PIECE = 100_000  # what one faulty call moves, so that there are several
DATA = noise(4 * PIECE + 123)
DIRECT = ["reflink", *KERNEL] if KERNEL else []


@pytest.fixture
def source(tmp_path):
    return file_of(tmp_path / "source", DATA)


def in_pieces(call: str, k: int, **how: int) -> None:
    """Calls before the k-th move a PIECE each, the k-th does as told."""
    if k > 1:
        _core._fault_add(call, max_nbytes=PIECE, first=1, times=k - 1)
    _core._fault_add(call, first=k, **how)


def refuse_before(method: str) -> list[tuple[str, int]]:
    """The methods in front of this one are refused, so that it comes to its turn."""
    given_up = []
    for name in DIRECT[: DIRECT.index(method)] if method in DIRECT else DIRECT:
        _core._fault_add(CALL_OF[name], error=errno.EXDEV, times=1000)
        given_up.append((name, errno.EXDEV))
    if method not in DIRECT:  # on a file system with reflink too
        given_up = [(name, errno.EXDEV) for name in DIRECT]
    return given_up


# k = 1, 2, and the last call that moves bytes (PIECE each).
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("error", REFUSALS)
@pytest.mark.parametrize("method", KERNEL_CASES)
def test_refusal_goes_on_at_the_position_reached(source, tmp_path, method, error, k):
    target = tmp_path / "target"
    before = refuse_before(method)
    in_pieces(CALL_OF[method], k, error=error)
    result = transfer(source, target)
    assert target.read_bytes() == DATA
    assert result.count == len(DATA)
    assert result.fallbacks == (*before, (method, error))
    following = [*DIRECT, "chunked"]
    assert result.method == following[following.index(method) + 1]
    if k > 1:  # nothing was moved twice
        assert _core._fault_calls().get("ftruncate", 0) == 0


@pytest.mark.parametrize("error", REFUSALS)
def test_reflink_refused(source, tmp_path, error):
    if not KERNEL:
        pytest.skip("the portable build has no reflink")
    target = tmp_path / "target"
    with fault("clone", error=error):
        result = copyfile(source, target)
    assert result.fallbacks == (("reflink", error),)
    assert result.method == "copy_file_range"
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("error", REFUSALS)
def test_reflink_of_a_range_refused(source, tmp_path, error):
    if not KERNEL:
        pytest.skip("the portable build has no reflink")
    target = tmp_path / "target"
    with fault("clone_range", error=error):
        result = transfer(source, target, 4096 * 20, source_offset=4096)
    assert result == (4096 * 20, "copy_file_range", 0, (("reflink", error),))
    assert target.read_bytes() == DATA[4096 : 4096 * 21]


@pytest.mark.parametrize("error", ENDS)
@pytest.mark.parametrize("call", ["clone", "clone_range"])
def test_reflink_ends_it(source, tmp_path, call, error):
    if not KERNEL:
        pytest.skip("the portable build has no reflink")
    target = tmp_path / "target"
    given = {} if call == "clone" else {"count": 4096 * 20, "source_offset": 4096}
    with fault(call, error=error), pytest.raises(OSError) as caught:
        transfer(source, target, **given)
    assert (caught.value.errno, caught.value.transferred) == (error, 0)
    assert (caught.value.source_offset, caught.value.target_offset) == (given.get("source_offset", 0), 0)
    assert not target.exists()


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("error", ENDS)
@pytest.mark.parametrize("method", FILE_METHODS)
def test_error_ends_it_with_the_count(source, tmp_path, method, error, k):
    target = tmp_path / "target"
    refuse_before(method)
    call = "pwrite" if method == "mapped" else CALL_OF[method]
    options = {"threshold": 0} if method == "mapped" else {"chunk_size": PIECE}
    in_pieces(call, k, error=error)
    with pytest.raises(OSError) as caught:
        transfer(source, target, **options)
    moved = (k - 1) * PIECE
    assert caught.value.errno == error
    assert caught.value.transferred == moved
    assert caught.value.source_offset == caught.value.target_offset == moved
    assert (caught.value.filename, caught.value.filename2) == (str(source), str(target))
    # A target that got nothing is removed, one that got something stays.
    if k == 1:
        assert not target.exists()
    else:
        assert target.read_bytes() == DATA[:moved]


@pytest.mark.parametrize("k", [1, 2, 3])  # of three windows
@pytest.mark.parametrize("error", [errno.ENOMEM, errno.ENODEV, errno.EACCES, errno.EINVAL, errno.EAGAIN])
def test_mapping_refused(tmp_path, error, k):
    data = noise(5 << 20)
    source, target = file_of(tmp_path / "source", data), tmp_path / "target"
    refuse_before("mapped")
    _core._fault_add("mmap", error=error, first=k)
    result = transfer(source, target, threshold=0)
    assert result.method == "chunked"
    assert result.fallbacks[-1] == ("mapped", error)
    assert target.read_bytes() == data


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("method", KERNEL_CASES)
def test_zero_is_confirmed_by_a_read(source, tmp_path, method, k):
    """CIFS, and /proc before Linux 5.19: 0 though there are bytes."""
    target = tmp_path / "target"
    before = refuse_before(method)
    in_pieces(CALL_OF[method], k, max_nbytes=0)
    result = transfer(source, target)
    assert target.read_bytes() == DATA
    assert result.fallbacks == (*before, (method, 0))


@pytest.mark.parametrize("method", FILE_METHODS)
@pytest.mark.parametrize("piece", [1, 4095, PIECE])
def test_short_counts_are_not_the_end(tmp_path, method, piece):
    data = noise(min(len(DATA), 50 * piece))
    source, target = file_of(tmp_path / "source", data), tmp_path / "target"
    call = "pwrite" if method == "mapped" else CALL_OF[method]
    _core._fault_add(call, max_nbytes=piece, times=1_000_000)
    assert transfer(source, target, method=method) == (len(data), method, 0, ())
    assert target.read_bytes() == data


@pytest.mark.parametrize("method", FILE_METHODS)
def test_interrupted_calls_are_made_again(source, tmp_path, method):
    target = tmp_path / "target"
    call = "pwrite" if method == "mapped" else CALL_OF[method]
    _core._fault_add(call, max_nbytes=PIECE, first=1)
    _core._fault_add(call, error=errno.EINTR, first=2, times=3)
    assert transfer(source, target, method=method).count == len(DATA)
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("error", [e for e in REFUSALS if e != errno.EAGAIN])  # an empty or full pipe
def test_splice_refused(tmp_path, error, k):
    if not KERNEL:
        pytest.skip("the portable build has no splice")
    target = tmp_path / "target"
    pipe = Pipe(feed=DATA)
    if k > 1:
        _core._fault_add("splice", max_nbytes=1000)
    _core._fault_add("splice", error=error, first=k)
    result = transfer(pipe.r, target)
    pipe.done()
    assert result == (len(DATA), "chunked", 0, (("splice", error),))
    assert target.read_bytes() == DATA
    _core._fault_clear()
    pipe = Pipe()
    _core._fault_add("splice", error=error)
    _core._fault_add("sendfile", error=error, first=k)
    if k > 1:
        _core._fault_add("sendfile", max_nbytes=1000)
    result = transfer(target, pipe.w)
    assert pipe.done() == DATA
    assert result == (len(DATA), "chunked", 0, (("splice", error), ("sendfile", error)))


@pytest.mark.parametrize("error", [e for e in REFUSALS if e != errno.EAGAIN])
def test_splice_refused_at_the_last_call(tmp_path, error):
    """The one behind the last byte: the next method finds the end."""
    if not KERNEL:
        pytest.skip("the portable build has no splice")
    r, w = os.pipe()
    os.write(w, DATA[:5000])
    os.close(w)
    with fault("splice", error=error, first=2):
        result = transfer(r, tmp_path / "target")
    os.close(r)
    assert result == (5000, "splice", 0, (("splice", error),))
    assert (tmp_path / "target").read_bytes() == DATA[:5000]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.ENOMEM])
def test_splice_ends_it_with_the_count(tmp_path, error, k):
    if not KERNEL:
        pytest.skip("the portable build has no splice")
    r, w = os.pipe()
    os.write(w, DATA[:5000])
    os.close(w)
    if k > 1:
        _core._fault_add("splice", max_nbytes=2000, first=1)
    with fault("splice", error=error, first=k), pytest.raises(OSError) as caught:
        transfer(r, tmp_path / "target")
    assert (caught.value.errno, caught.value.transferred) == (error, 2000 * (k - 1))
    assert k == 1 or (tmp_path / "target").read_bytes() == DATA[:2000]
    assert os.read(r, 10000) == DATA[2000 * (k - 1) : 5000]  # nothing was lost
    os.close(r)


def test_splice_says_zero_too_early(tmp_path):
    if not KERNEL:
        pytest.skip("the portable build has no splice")
    pipe = Pipe(feed=DATA)
    _core._fault_add("splice", max_nbytes=0, first=2)
    assert transfer(pipe.r, tmp_path / "target").count == len(DATA)
    pipe.done()
    assert (tmp_path / "target").read_bytes() == DATA


def test_positions_after_a_fallback(source, tmp_path):
    """sendfile moves the target's own offset, copy_file_range does not."""
    if not KERNEL:
        pytest.skip("the portable build has no kernel copies")
    for given in (None, 4096):
        with open(source, "rb", buffering=0) as one, open(tmp_path / "target", "w+b", buffering=0) as two:
            two.seek(10)
            _core._fault_add("copy_file_range", max_nbytes=PIECE)
            _core._fault_add("copy_file_range", error=errno.EINVAL, first=2)
            _core._fault_add("sendfile", max_nbytes=PIECE)
            _core._fault_add("sendfile", error=errno.EINVAL, first=2)
            result = transfer(one, two, source_offset=given, target_offset=given)
            _core._fault_clear()
            assert result.method == "chunked"
            if given is None:
                assert (one.tell(), two.tell()) == (len(DATA), len(DATA) + 10)
                assert os.pread(two.fileno(), 1 << 20, 10) == DATA
            else:
                assert (one.tell(), two.tell()) == (0, 10)
                assert os.pread(two.fileno(), 1 << 20, given) == DATA[given:]


# ---------------------------------------------------------- a source that shrinks


@pytest.mark.parametrize("left", [0, 1, 5000, 3 << 20])
def test_source_shrinks_while_mapped(tmp_path, left):
    """The process lives, and nothing behind the new end is in the result."""
    size = 8 << 20
    source = file_of(tmp_path / "source", noise(4096) * (size // 4096))
    cut = []

    def progress(done, total):
        if not cut:
            cut.append(done)
            os.truncate(source, left)

    _core._fault_add("pwrite", max_nbytes=100_000, times=3)  # a report comes early
    result = transfer(source, tmp_path / "target", method="mapped", progress=progress)
    moved = max(left, cut[0]) if cut else size
    assert result.count == (tmp_path / "target").stat().st_size
    assert result.count <= max(moved, left)
    assert (tmp_path / "target").read_bytes() == (noise(4096) * (size // 4096))[: result.count]


def test_source_shrinks_under_a_window(tmp_path):
    """Between the mapping and the write: the page behind the end reads as zeros."""
    import threading

    size = 2 << 20
    data = noise(4096) * (size // 4096)
    for round_ in range(20):
        source, target = file_of(tmp_path / "source", data), tmp_path / f"target{round_}"
        thread = threading.Thread(target=os.truncate, args=(source, 5000 + round_))
        thread.start()
        result = transfer(source, target, method="mapped")
        thread.join()
        got = target.read_bytes()
        assert len(got) == result.count
        assert got == data[: len(got)]
        target.unlink()


@pytest.mark.parametrize("method", FILE_METHODS)
def test_source_grows(tmp_path, method):
    source = file_of(tmp_path / "source", DATA)
    grown = []

    def progress(done, total):
        if not grown:
            grown.append(True)
            with open(source, "ab") as file:
                file.write(DATA[:1000])

    call = "pwrite" if method == "mapped" else CALL_OF[method]
    _core._fault_add(call, max_nbytes=PIECE)
    result = transfer(source, tmp_path / "target", method=method, progress=progress)
    got = (tmp_path / "target").read_bytes()
    assert len(got) == result.count
    assert got == (DATA + DATA[:1000])[: len(got)]
    assert len(got) in (len(DATA), len(DATA) + 1000)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_a_window_is_written_in_pieces(tmp_path, k):
    """No more than 512 KiB of page cache at a time are asked of the kernel."""
    piece = 512 << 10
    data = noise(1 << 20) * 3
    source, target = file_of(tmp_path / "source", data), tmp_path / "target"
    with counted() as calls:
        transfer(source, target, method="mapped")
    assert (calls["mmap"], calls["pwrite"]) == (2, 6)
    target.unlink()
    with fault("pwrite", error=errno.ENOSPC, first=k, times=2), pytest.raises(OSError) as caught:
        transfer(source, target, method="mapped")
    assert caught.value.transferred == (k - 1) * piece
    assert k == 1 or target.read_bytes() == data[: (k - 1) * piece]


# ----------------------------------------------------- every call fails once


def calls_of(work) -> dict[str, int]:
    with counted() as calls:
        work()
    return {name: n for name, n in calls.items() if name != "close"}


@pytest.mark.parametrize("method", ["auto", *FILE_METHODS])
@pytest.mark.parametrize("kind", ["copyfile", "transfer", "copy"])
def test_every_call_fails_once(source, tmp_path, kind, method):
    function = getattr(pyio_chunked, kind)
    target = tmp_path / "target"
    names = calls_of(lambda: function(source, target, method=method))
    target.unlink()
    for name, n in names.items():
        for k in range(1, n + 1):
            fds = len(os.listdir("/proc/self/fd"))
            _core._fault_add(name, error=errno.EIO, first=k)
            try:
                function(source, target, method=method)
            except (OSError, MemoryError) as error:
                assert name in ("malloc", "calloc") or error.errno == errno.EIO, (name, k)
                if target.exists():  # no empty target is left
                    assert 0 < error.transferred == target.stat().st_size, (name, k)
                    assert target.read_bytes() == DATA[: error.transferred], (name, k)
            else:
                assert target.read_bytes() == DATA, (name, k)
            finally:
                _core._fault_clear()
            assert len(os.listdir("/proc/self/fd")) == fds, (name, k)
            target.unlink(missing_ok=True)
    # The pool lost nothing: the next transfer is a hit.
    assert function(source, target, method=method)


def test_failing_close_of_the_target(source, tmp_path):
    """NFS and quotas say so only here."""
    for function in (copyfile, transfer):
        with fault("close", error=errno.EDQUOT, first=1), pytest.raises(OSError) as caught:
            function(source, tmp_path / "target")
        assert caught.value.errno == errno.EDQUOT


def test_no_memory_for_the_buffer(source, tmp_path):
    pyio_chunked.pool.trim() if hasattr(pyio_chunked, "pool") else None
    with fault("malloc", error=errno.ENOMEM, times=1000):
        try:
            result = transfer(source, tmp_path / "target", method="chunked", chunk_size=CHUNK)
        except MemoryError as error:
            assert error.transferred == 0
            assert not (tmp_path / "target").exists()
        else:
            assert result.count == len(DATA)  # the pool had one
    out = io.BytesIO()
    assert transfer(source, out).count == len(DATA)


@pytest.mark.parametrize("left", [0, 1, 4096, 5000])
def test_a_fault_in_the_window_is_a_source_that_shrank(tmp_path, left):
    data = noise(100_000)
    source, target = file_of(tmp_path / "source", data), tmp_path / "target"

    def shrink(name, args):
        if active and name == "open" and args[0] == str(target):
            os.truncate(source, left)  # behind the fstat that gave the size

    active = True
    sys.addaudithook(shrink)
    try:
        result = transfer(source, target, method="mapped")
    finally:
        active = False
    assert target.read_bytes() == data[:left]
    assert result == (left, "mapped", 0, ())
    # Where nothing shrank it is an error of the target's, or the next method's turn.
    file_of(source, data)
    with fault("pwrite", error=errno.EFAULT), pytest.raises(OSError) as caught:
        transfer(source, target, method="mapped")
    assert caught.value.errno == errno.EFAULT
