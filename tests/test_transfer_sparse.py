# SPDX-License-Identifier: MIT
"""Holes stay holes, shared blocks are shared: on this file system, and on a
btrfs image where one can be mounted."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess

import pytest
from transfer_help import CALL_OF, KERNEL, counted, fault, file_of, noise

import pyio_chunked
from pyio_chunked import _core, copyfile, transfer

BLOCK = 65536  # a hole on every common file system
D = "data"
LAYOUTS = {
    "leading": [None, D],
    "inner": [D, None, D],
    "trailing": [D, None],
    "all": [None],
    "none": [D],
    "many": [D, None] * 20,
    "both ends": [None, D, None],
}


def sparse_file(path, layout, tail=b""):
    at = 0
    with open(path, "wb") as file:
        for i, piece in enumerate(layout):
            if piece:
                file.seek(at)
                file.write(noise(BLOCK, i))
            at += BLOCK
        file.truncate(at)
        if tail:
            file.seek(at)
            file.write(tail)
    return path


def blocks(path) -> int:
    return path.stat().st_blocks


def keeps_holes(folder) -> bool:
    probe_file = folder / "hole"
    with open(probe_file, "wb") as file:
        file.truncate(1 << 20)
    answer = blocks(probe_file) == 0
    probe_file.unlink()
    return answer


@pytest.fixture
def folder(tmp_path):
    assert keeps_holes(tmp_path), "the temporary folder's file system has no holes: set TMPDIR"
    return tmp_path


def holes_of(layout) -> int:
    return sum(BLOCK for piece in layout if piece is None)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("function", ["copyfile", "transfer"])
@pytest.mark.parametrize("sparse", ["auto", "always"])
def test_holes_are_kept(folder, layout, function, sparse):
    source, target = sparse_file(folder / "source", layout), folder / "target"
    result = getattr(pyio_chunked, function)(source, target, sparse=sparse)
    assert target.read_bytes() == source.read_bytes()
    assert blocks(target) <= blocks(source)
    assert result.count == len(layout) * BLOCK
    assert result.holes == holes_of(layout)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("function", ["copyfile", "transfer"])
def test_never_fills(folder, layout, function):
    source, target = sparse_file(folder / "source", layout), folder / "target"
    result = getattr(pyio_chunked, function)(source, target, sparse="never")
    assert target.read_bytes() == source.read_bytes()
    assert blocks(target) * 512 >= len(layout) * BLOCK
    assert (result.count, result.holes) == (len(layout) * BLOCK, 0)
    if None in layout:  # shared blocks would keep the holes
        assert "reflink" not in [name for name, _ in result.fallbacks]


def test_never_is_the_default_of_transfer(folder):
    source = sparse_file(folder / "source", [None, D])
    transfer(source, folder / "target")
    assert blocks(folder / "target") * 512 >= 2 * BLOCK


@pytest.mark.parametrize("tail", [b"x", b"\0", b"last bytes"])
def test_a_tail_off_the_block(folder, tail):
    source, target = sparse_file(folder / "source", [D, None], tail), folder / "target"
    for sparse in ("auto", "always", "never"):
        assert copyfile(source, target, sparse=sparse).count == 2 * BLOCK + len(tail)
        assert target.read_bytes() == source.read_bytes()


def test_one_byte_of_data(folder):
    source = folder / "source"
    with open(source, "wb") as file:
        file.seek(5_000_000)
        file.write(b"!")
        file.truncate(9_000_001)
    result = copyfile(source, folder / "target")
    assert (folder / "target").read_bytes() == source.read_bytes()
    assert blocks(folder / "target") == blocks(source)
    assert result.holes > 8_900_000


def test_always_makes_holes_of_zeros(folder):
    data = noise(8192) + bytes(BLOCK * 3) + noise(5000) + bytes(BLOCK) + b"end" + bytes(10_000)
    source, target = file_of(folder / "source", data), folder / "target"
    result = copyfile(source, target, sparse="always")
    assert target.read_bytes() == data
    assert result.count == len(data)
    assert 3 * BLOCK <= result.holes <= len(data)
    assert blocks(target) < blocks(source)
    assert copyfile(source, folder / "plain", sparse="auto").holes == 0
    assert blocks(folder / "plain") >= blocks(source)


def test_always_through_a_pipe(folder):
    """The target is a file: zeros of any source may be holes."""
    from transfer_help import Pipe

    data = noise(4096) + bytes(BLOCK * 4) + b"end"
    pipe = Pipe(feed=data)
    result = transfer(pipe.r, folder / "target", sparse="always")
    pipe.done()
    assert (folder / "target").read_bytes() == data
    assert result.count == len(data)
    assert result.holes >= 3 * BLOCK
    assert blocks(folder / "target") * 512 < BLOCK


@pytest.mark.parametrize("can_punch", [True, False])
@pytest.mark.parametrize("sparse", ["auto", "always"])
def test_holes_in_old_bytes(folder, sparse, can_punch):
    """A hole in the middle of a file that has bytes there: punched, or zeros."""
    source, target = sparse_file(folder / "source", [D, None, D, None]), folder / "target"
    target.write_bytes(b"\xff" * (6 * BLOCK))
    if not can_punch:
        _core._fault_add("fallocate", error=errno.EOPNOTSUPP, times=1000)
    result = transfer(source, target, target_offset=BLOCK, sparse=sparse)
    assert result.count == 4 * BLOCK
    old = b"\xff" * BLOCK
    assert target.read_bytes() == old + source.read_bytes() + old
    if can_punch and KERNEL:
        assert blocks(target) * 512 <= 5 * BLOCK
        assert result.holes == 2 * BLOCK
    elif not can_punch:
        assert result.holes == 0


@pytest.mark.parametrize("method", [*KERNEL, "mapped", "chunked"])
def test_every_method_keeps_holes(folder, method):
    layout = [D, None, D, D, None, None, D, None]
    source, target = sparse_file(folder / "source", layout), folder / "target"
    result = transfer(source, target, method=method, sparse="auto")
    assert target.read_bytes() == source.read_bytes()
    assert result == (len(layout) * BLOCK, method, holes_of(layout), ())
    assert blocks(target) == blocks(source)


def test_a_range_with_holes(folder):
    source, target = sparse_file(folder / "source", [D, None, D, None, D]), folder / "target"
    result = transfer(source, target, 3 * BLOCK, source_offset=BLOCK // 2, sparse="auto")
    assert target.read_bytes() == source.read_bytes()[BLOCK // 2 : BLOCK // 2 + 3 * BLOCK]
    assert result.count == 3 * BLOCK
    assert result.holes == BLOCK + BLOCK // 2
    result = transfer(source, target, BLOCK, source_offset=BLOCK, sparse="auto")  # the hole alone
    assert target.read_bytes() == bytes(BLOCK)
    assert (result.count, result.holes) == (BLOCK, BLOCK)


def test_positions_of_a_sparse_source(folder):
    """SEEK_DATA moves the descriptor's own offset; it is put back."""
    source = sparse_file(folder / "source", [D, None, D])
    with open(source, "rb", buffering=0) as one, open(folder / "target", "w+b", buffering=0) as two:
        transfer(one, two, 2 * BLOCK, sparse="auto")
        assert (one.tell(), two.tell()) == (2 * BLOCK, 2 * BLOCK)
        transfer(one, two, source_offset=0, target_offset=0, sparse="auto")
        assert (one.tell(), two.tell()) == (2 * BLOCK, 2 * BLOCK)
        assert os.fstat(two.fileno()).st_size == 3 * BLOCK


def test_where_holes_are_not_known(folder):
    """EINVAL to SEEK_DATA, or few blocks without holes (a compressing file
    system): a plain copy."""
    source = sparse_file(folder / "source", [D, None, D])
    for error in (errno.EINVAL, errno.EOPNOTSUPP):
        _core._fault_add("lseek", error=error, times=1000)
        result = copyfile(source, folder / "target")
        _core._fault_clear()
        assert (folder / "target").read_bytes() == source.read_bytes()
        assert result.count == 3 * BLOCK
        assert result.holes == 0


def test_stop_behind_a_hole(folder):
    """Nothing claims bytes that the target doesn't have."""
    source, target = sparse_file(folder / "source", [D, None, D]), folder / "target"
    calls = [CALL_OF[name] for name in KERNEL] + ["pwrite"]
    for call in calls:
        _core._fault_add(call, error=errno.ENOSPC, first=2, times=1000)
    if KERNEL:
        with pytest.raises(OSError) as caught:
            copyfile(source, target)
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.transferred == target.stat().st_size == 2 * BLOCK
        assert target.read_bytes() == source.read_bytes()[: 2 * BLOCK]


def test_two_gibibytes_with_a_kilobyte_of_data(folder):
    source, target = folder / "source", folder / "target"
    with open(source, "wb") as file:
        file.truncate(2 << 30)
        file.seek(1 << 30)
        file.write(b"d" * 1024)
    with counted() as calls:
        result = copyfile(source, target)
    assert target.stat().st_size == 2 << 30
    assert blocks(target) <= blocks(source)
    assert result.count - result.holes <= 65536
    assert sum(calls.values()) < 60
    with open(target, "rb") as file:
        file.seek(1 << 30)
        assert file.read(1025) == b"d" * 1024 + b"\0"


# ------------------------------------------------------------------- reflink


def test_reflink_always_where_it_cannot_be(tmp_path):
    source, target = file_of(tmp_path / "source", noise(10_000)), tmp_path / "target"
    if not KERNEL:
        with pytest.raises(OSError):
            copyfile(source, target, reflink="always")
        assert not target.exists()
        return
    for error in (errno.EOPNOTSUPP, errno.EXDEV):
        with fault("clone", error=error), pytest.raises(OSError) as caught:
            copyfile(source, target, reflink="always")
        assert caught.value.errno == error
        assert (caught.value.filename, caught.value.filename2) == (str(source), str(target))
        assert not target.exists()
        target.write_bytes(b"old")
        with fault("clone", error=error), pytest.raises(OSError):
            copyfile(source, target, reflink="always")
        assert target.read_bytes() == b"old"  # refused before anything was truncated
        target.unlink()


def test_reflink_never_makes_no_shared_blocks(tmp_path):
    source, target = file_of(tmp_path / "source", noise(100_000)), tmp_path / "target"
    with counted() as calls:
        result = copyfile(source, target, reflink="never")
    assert not {"clone", "clone_range", "copy_file_range"} & set(calls)
    assert result.method == ("sendfile" if KERNEL else "chunked")
    assert target.read_bytes() == source.read_bytes()


MKFS = {"btrfs": ["mkfs.btrfs", "-q"], "xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"]}


@pytest.fixture(scope="module", params=MKFS)
def sharing(request, tmp_path_factory):
    """A file system that shares blocks, on a loop device, mounted."""
    name = request.param
    if not KERNEL:
        pytest.skip("the portable build has no reflink")
    if os.geteuid() != 0 or shutil.which(MKFS[name][0]) is None:
        pytest.skip(f"a {name} image needs root and mkfs.{name}")
    place = tmp_path_factory.mktemp(name)
    image, folder = place / "image", place / "mounted"
    with open(image, "wb") as file:
        file.truncate(512 << 20)
    folder.mkdir()
    subprocess.run([*MKFS[name], image], check=True)
    mounted = subprocess.run(["mount", "-o", "loop", image, folder], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a {name} image can't be mounted: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
        image.unlink()


def shared(path) -> bool:
    text = subprocess.run(["filefrag", "-v", path], capture_output=True, text=True, check=True).stdout
    return "shared" in text


@pytest.mark.parametrize("reflink", ["auto", "always"])
def test_sharing_reflink(sharing, reflink):
    data = noise(1 << 20) * 20 + b"tail"
    source, target = file_of(sharing / "source", data), sharing / f"target-{reflink}"
    os.sync()
    result = copyfile(source, target, reflink=reflink)
    assert result == (len(data), "reflink", 0, ())
    assert target.read_bytes() == data
    assert shared(target)
    # Over an old and longer file too.
    target.write_bytes(b"x" * (len(data) + 100_000))
    assert copyfile(source, target, reflink=reflink).method == "reflink"
    assert target.read_bytes() == data


def test_sharing_transfer_shares_ranges(sharing):
    data = noise(1 << 20) * 4
    source, target = file_of(sharing / "source", data), sharing / "ranges"
    result = transfer(source, target, 1 << 20, source_offset=1 << 20, target_offset=0)
    assert result == (1 << 20, "reflink", 0, ())
    assert target.read_bytes() == data[1 << 20 : 2 << 20]
    # Off the blocks there is no sharing, and auto doesn't try.
    result = transfer(source, target, 10_000, source_offset=1, target_offset=7)
    assert (result.count, result.method) == (10_000, "copy_file_range")
    assert target.read_bytes()[7:10_007] == data[1:10_001]
    with pytest.raises(OSError) as caught:
        transfer(source, target, 1000, source_offset=1, target_offset=7, method="reflink")
    assert caught.value.errno == errno.EINVAL


def test_sharing_holes(sharing):
    layout = [D, None, D, None]
    source = sparse_file(sharing / "sparse", layout)
    os.sync()
    result = copyfile(source, sharing / "kept")
    assert result == (4 * BLOCK, "reflink", 2 * BLOCK, ())
    assert (sharing / "kept").read_bytes() == source.read_bytes()
    # never: neither a clone nor copy_file_range, which would share the holes.
    result = copyfile(source, sharing / "filled", sparse="never")
    os.sync()
    assert result.method == "sendfile"
    assert (sharing / "filled").read_bytes() == source.read_bytes()
    assert blocks(sharing / "filled") * 512 >= 4 * BLOCK


def test_sharing_never(sharing):
    source, target = file_of(sharing / "source", noise(1 << 20)), sharing / "never"
    os.sync()
    assert copyfile(source, target, reflink="never").method == "sendfile"
    os.sync()
    assert not shared(target)


def test_sharing_not_across_file_systems(sharing, tmp_path):
    source = file_of(sharing / "source", noise(100_000))
    result = copyfile(source, tmp_path / "target")
    assert result.fallbacks[0][0] == "reflink"
    assert (tmp_path / "target").read_bytes() == source.read_bytes()
    with pytest.raises(OSError) as caught:
        copyfile(source, tmp_path / "none", reflink="always")
    assert caught.value.errno in (errno.EXDEV, errno.EOPNOTSUPP)
    assert not (tmp_path / "none").exists()
