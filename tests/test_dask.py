# SPDX-License-Identifier: MIT
"""Members of many archives through dask: the bag, and a real cluster of two
worker processes. In the first build only: dask is large, and nothing in here
depends on the build's engines."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import zipfile
from pathlib import Path

import pytest

import pyio_chunked

BUILD = os.environ.get("PYIO_TEST_BUILD", "all")

if BUILD != "all":
    pytest.skip("large consumers run in the first build only", allow_module_level=True)

# Theirs, not ours: what they deprecate among each other.
pytestmark = pytest.mark.filterwarnings("default")

ARCHIVES, MEMBERS = 40, 12


@pytest.fixture(scope="module", autouse=True)
def dask():
    return pytest.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    for a in range(ARCHIVES):
        source = random.Random(a)
        with zipfile.ZipFile(folder / f"{a:02}.zip", "w", zipfile.ZIP_DEFLATED) as out:
            for m in range(MEMBERS):
                out.writestr(f"{a:02}/{m:02}.bin", source.randbytes(2000) * source.randrange(1, 20))
            out.writestr(f"{a:02}/notes.txt", f"archive {a}")
    return folder


def digest(item):
    name, data = item
    return name, hashlib.sha256(data).hexdigest()


def serial(folder: Path, suffix: str) -> list[tuple[str, str]]:
    out = []
    for path in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            out += [digest((n, archive.read(n))) for n in archive.namelist() if n.endswith(suffix)]
    return sorted(out)


def bag_of(*arguments, **options):
    from pyio_chunked.dask import read_members

    return read_members(*arguments, **options)


def test_bag_is_the_serial_result(archives):
    bag = bag_of(str(archives / "*.zip"), "*.bin", target_bytes=1 << 20)
    assert bag.npartitions > 4
    assert sorted(bag.map(digest).compute(scheduler="sync")) == serial(archives, ".bin")


def test_paths_of_every_kind(archives):
    expected = serial(archives, "notes.txt")
    for paths in (archives, str(archives), [str(p) for p in archives.iterdir()], f"{archives}/*.zip"):
        bag = bag_of(paths, "*notes.txt")
        assert sorted(bag.map(digest).compute(scheduler="sync")) == expected


def test_nothing_found_is_an_empty_bag(archives):
    assert bag_of(archives, "*.nothing").compute(scheduler="sync") == []


def test_archives_by_url(archives):
    import fsspec

    memory = fsspec.filesystem("memory")
    for path in archives.iterdir():
        memory.pipe_file(f"/archives/{path.name}", path.read_bytes())
    try:
        bag = bag_of([f"memory://archives/{p.name}" for p in sorted(archives.iterdir())], "*.bin")
        assert sorted(bag.map(digest).compute(scheduler="sync")) == serial(archives, ".bin")
    finally:
        memory.rm("/archives", recursive=True)


def test_larger_members_are_refused_before_any_work(archives):
    with pytest.raises(pyio_chunked.LimitError, match=r"EntryRef\.open") as caught:
        bag_of(archives, "*.bin", max_member=3000)
    assert (caught.value.limit, caught.value.allowed) == ("max_member", 3000)
    assert caught.value.value > 3000


# ----------------------------------------------------------------- a cluster


@pytest.fixture(scope="module")
def client(dask, tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    with (
        dask.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit="400MiB",
            dashboard_address=":0",
            local_directory=str(folder),
            silence_logs=50,
            host="127.0.0.1",
        ) as cluster,
        dask.Client(cluster) as client,
    ):
        yield client


def test_two_workers_give_the_serial_result(client, archives):
    refs = pyio_chunked.scan(archives, "*.bin")
    assert len(refs) == ARCHIVES * MEMBERS
    parts = pyio_chunked.partition(refs, 1 << 20)

    def read(part):
        return os.getpid(), [digest((ref.name, ref.read())) for ref in part]

    results = client.gather(client.map(read, parts, pure=False))
    assert sorted(row for _, rows in results for row in rows) == serial(archives, ".bin")
    assert len({pid for pid, _ in results}) == 2, "both workers had work"
    assert sorted(bag_of(archives, "*.bin").map(digest).compute()) == serial(archives, ".bin")


def test_a_killed_worker_costs_no_result(client, archives, tmp_path):
    refs = pyio_chunked.scan(archives, "*.bin")
    parts = pyio_chunked.partition(refs, 1 << 19)
    killed = tmp_path / "killed"

    def read(part, first):
        # The first one that gets here dies in the middle of its work.
        if first:
            try:
                os.close(os.open(killed, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                part[0].read()
                os.kill(os.getpid(), signal.SIGKILL)
        return [digest((ref.name, ref.read())) for ref in part]

    jobs = [client.submit(read, part, i == 3, pure=False) for i, part in enumerate(parts)]
    results = client.gather(jobs)
    assert killed.exists()
    assert sorted(row for rows in results for row in rows) == serial(archives, ".bin")
    client.wait_for_workers(2, timeout=60)


def test_a_member_larger_than_a_workers_memory_is_streamed(client, tmp_path):
    path, size = tmp_path / "large.zip", 600 << 20
    piece = random.Random(5).randbytes(1 << 16) + bytes(15 << 16)
    expected = hashlib.sha256()
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("large", "w") as out,
    ):
        for _ in range(size // len(piece)):
            out.write(piece)
            expected.update(piece)
    with pytest.raises(pyio_chunked.LimitError):
        bag_of(path, max_member=400 << 20)
    (ref,) = pyio_chunked.scan(path)

    def stream(ref):
        import resource

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with ref.open() as member:
            found = hashlib.file_digest(member, "sha256").hexdigest()
        return found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    found, grown = client.submit(stream, ref).result()
    assert found == expected.hexdigest()
    assert grown < 50 << 10, "KiB; the member has 600 MiB"


def test_an_archive_changed_after_scan_is_an_error(client, tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("m", b"first")
    bag = bag_of(path)
    assert bag.compute() == [("m", b"first")]
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("m", b"other content")
    with pytest.raises(OSError, match="changed"):
        bag.compute()
