# SPDX-License-Identifier: MIT
"""A small copy is its system calls: how many, and which."""

from __future__ import annotations

import pytest
from transfer_help import KERNEL, counted, fault, file_of, noise, sysctl_calls

from pyio_chunked import _core, copyfile, transfer


@pytest.mark.parametrize("size", [0, 1, 4096])
def test_a_small_copy_is_at_most_eight_system_calls(tmp_path, size):
    source = file_of(tmp_path / "source", noise(size))
    copyfile(source, tmp_path / "first")  # the pool has a buffer then
    with counted() as calls:
        copyfile(source, tmp_path / "target")
    assert sysctl_calls(calls) <= 8, calls
    assert not {"malloc", "calloc", "realloc"} & set(calls) or not KERNEL


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097])
@pytest.mark.parametrize("function", [copyfile, transfer])
def test_a_block_is_one_read_and_one_write(tmp_path, function, size):
    """Beyond it the kernel is asked first."""
    source, target = file_of(tmp_path / "source", noise(size)), tmp_path / "target"
    with counted() as calls:
        result = function(source, target)
    small = size <= 4096
    moving = {name: calls.get(name, 0) for name in ("clone", "copy_file_range", "pread", "pwrite")}
    if small:
        assert result == (size, "chunked", 0, ())
        assert moving == {"clone": 0, "copy_file_range": 0, "pread": 1, "pwrite": 1}
        assert sysctl_calls(calls) == 7 or function is transfer
    else:
        assert bool(moving["clone"]) == bool(KERNEL)
    assert target.read_bytes() == noise(size)
    with fault("pread", max_nbytes=1, times=10_000):  # a short read is no end
        assert function(source, target).count == size
    assert target.read_bytes() == noise(size)


def test_a_short_read_is_the_end_only_where_fstat_said_so(tmp_path):
    source = file_of(tmp_path / "source", noise(1000))
    with counted() as calls:
        _core._fault_add("pread", max_nbytes=999)
        assert copyfile(source, tmp_path / "target").count == 1000
    assert calls["pread"] == 2
    assert (tmp_path / "target").read_bytes() == noise(1000)
