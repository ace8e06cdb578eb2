# SPDX-License-Identifier: MIT
"""The pool, the engines that are forced, and memory that is refused."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from inflate_help import WBITS, pack, text

import pyio_chunked
from pyio_chunked import Inflater, inflate, pool

# ---------------------------------------------------------------- the pool


@pytest.fixture
def own_pool():
    before = pool.stats().limit
    pool.trim()
    yield pool
    pool.set_limit(before)


def test_a_thousand_idle_inflaters_hold_nothing(own_pool):
    packed = pack(text(100), "zlib")
    before = pool.stats().in_use
    waiting = [Inflater() for _ in range(1000)]
    assert pool.stats().in_use == before
    started = [Inflater() for _ in range(3)]
    for inflater in started:
        inflater.decompress(packed[:10])
    assert pool.stats().in_use > before
    for inflater in started:
        inflater.decompress(packed[10:])
    for inflater in waiting:
        inflater.decompress(packed)
    assert all(inflater.eof for inflater in waiting + started)
    assert pool.stats().in_use == before
    failed = Inflater()
    with pytest.raises(zlib.error):
        failed.decompress(b"no zlib stream")
    dropped = Inflater()
    dropped.decompress(packed[:10])
    del dropped
    assert pool.stats().in_use == before


def test_states_are_used_again(own_pool):
    packed = pack(text(100), "zlib")
    inflate(packed)
    before = pool.stats()
    for _ in range(10):
        inflate(packed)
    after = pool.stats()
    assert after.misses == before.misses
    assert after.hits >= before.hits + 10
    assert after.held <= after.limit


def test_pool_keeps_its_limit(own_pool):
    packed = pack(text(100), "zlib")
    inflate(packed)
    assert pool.stats().held > 0
    freed = pool.trim()
    assert freed > 0
    assert pool.stats().held == 0
    pool.set_limit(0)
    discarded = pool.stats().discarded
    inflate(packed)
    assert pool.stats().held == 0
    assert pool.stats().discarded > discarded
    pool.set_limit(1 << 20)
    assert pool.stats().limit == 1 << 20
    inflate(packed)
    assert 0 < pool.stats().held <= 1 << 20
    assert pool.trim(1 << 20) == 0
    with pytest.raises(ValueError):
        pool.set_limit(-1)
    with pytest.raises(TypeError):
        type(pool)()
    assert pickle.loads(pickle.dumps(pool)) is pool
    assert "pool" in repr(pool)
    assert pool.stats()._fields[0] == "limit"


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_limit_of_the_environment():
    code = "import pyio_chunked; print(pyio_chunked.pool.stats().limit)"
    assert run(code, PYIO_CHUNKED_POOL_LIMIT="12345").stdout == "12345\n"
    assert run(code, PYIO_CHUNKED_POOL_LIMIT="").stdout == "8388608\n"
    for wrong in ("-1", "8M", "x"):
        assert "PYIO_CHUNKED_POOL_LIMIT" in run(code, PYIO_CHUNKED_POOL_LIMIT=wrong).stderr


# ---------------------------------------------------------------- engines


def engines() -> list[str]:
    libraries = pyio_chunked.build_info()["libraries"]
    return [name for name in ("zlib", "isal", "libdeflate") if libraries[name]]


@pytest.mark.parametrize("engine", ["zlib", "isal", "libdeflate"])
def test_forced_engines(engine):
    code = "import pyio_chunked, json; print(json.dumps(pyio_chunked.build_info()['engines']))"
    done = run(code, PYIO_CHUNKED_ENGINE=engine)
    if engine not in engines():
        assert "PYIO_CHUNKED_ENGINE" in done.stderr
        return
    found = json.loads(done.stdout)
    assert found["raw"] == "zlib"
    assert found["whole"] == found["crc32"] == engine
    assert found["stream"] == ("zlib" if engine == "libdeflate" else engine)


def test_unknown_engine_is_refused():
    assert "PYIO_CHUNKED_ENGINE is zstd" in run("import pyio_chunked", PYIO_CHUNKED_ENGINE="zstd").stderr


# What depends on the engine; the rest is framing and Python.
BY_ENGINE = (
    "every_length or every_bit or odd_streams or distance or members or inflater or cut or bgzf or max_size"
)


@pytest.mark.once
@pytest.mark.parametrize("engine", ["zlib", "isal", "libdeflate"])
def test_tests_hold_by_every_engine(engine):
    """The tests of data once more, by an engine that isn't the choice."""
    if engine not in engines() or len(engines()) == 1:
        return  # not built in, or all that there is
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", BY_ENGINE,
         here / "test_inflate.py", here / "test_gzip.py"],
        capture_output=True, text=True, env={**os.environ, "PYIO_CHUNKED_ENGINE": engine, "PYIO_TEST_EXAMPLES": "10"},
    )  # fmt: skip
    assert done.returncode == 0, f"{engine}:\n{done.stdout[-3000:]}"


def test_no_native_call_for_nothing():
    counts = pyio_chunked._core._inflate_counts
    packed = pack(text(200), "zlib")
    inflater = Inflater()
    inflater.decompress(packed[:20])
    before = counts()
    assert inflater.decompress(b"") == b""
    assert inflater.flush() == b""
    assert counts() == before
    inflater.decompress(packed[20:])
    before = counts()
    assert inflater.decompress(b"more") == b""
    assert counts() == before


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize("format", WBITS)
@pytest.mark.parametrize("call", ["malloc", "calloc", "realloc", "allow_result"])
def test_memory_is_refused_at_each_call(format, call, own_pool):
    core = pyio_chunked._core
    data = text(400_000)
    packed = pack(data, format)
    failed = 0
    for k in range(1, 12):
        pool.trim()
        try:
            core._fault_add(call, error=12, first=k)
        except ValueError:
            return  # no such call in the table
        try:
            assert inflate(packed, format) == data
        except MemoryError:
            failed += 1
        core._fault_clear()
        pool.trim()
        inflater = Inflater(WBITS[format])
        out = []
        core._fault_add(call, error=12, first=k)
        try:
            out.append(inflater.decompress(packed))
        except MemoryError:
            failed += 1
            core._fault_clear()
            out.append(inflater.decompress(inflater.unconsumed_tail or b""))
            if not inflater.eof:
                out.append(inflater.decompress(inflater.unconsumed_tail or packed))
        core._fault_clear()
        assert b"".join(out) == data
    assert failed or call in ("realloc", "calloc", "malloc")
