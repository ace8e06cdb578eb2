# SPDX-License-Identifier: MIT
"""One ZipFile used by many threads and after fork; closed while it is read."""

from __future__ import annotations

import io
import sys
import threading
import zipfile

import pytest
from thread_help import in_child, run_threads, wait_for
from zip_help import Duck, pack, text

from pyio_chunked import ZipFile

MEMBERS = {f"m{i}": text(n, i) for i, n in enumerate([0, 1, 500, 3000, 40_000, 200_000, 700_000] * 6)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return pack(tmp_path_factory.mktemp("threads") / "a.zip", MEMBERS)


def use(zf, number, rounds=2):
    names = list(MEMBERS)
    for _ in range(rounds):
        for name in names[number % 7 :] + names[: number % 7]:
            assert zf.read(name) == MEMBERS[name]
            with zf.open(name) as member:
                assert member.read(100) + member.read() == MEMBERS[name]
    assert dict(zf.read_many(workers=2)) == MEMBERS


@pytest.mark.parametrize("kind", ["path", "file", "object", "duck"])
def test_eight_threads_share_one(path, kind):
    data = path.read_bytes()
    with open(path, "rb") as file:
        source = {"path": path, "file": file, "object": io.BytesIO(data), "duck": Duck(data, 5000)}[kind]
        with ZipFile(source) as zf:
            run_threads(8, lambda number: use(zf, number))


def test_threads_share_one_stream(path):
    with ZipFile(path) as zf, zf.open("m6") as member:
        pieces = []

        def work(number):
            while piece := member.read(1000):
                pieces.append(piece)

        run_threads(4, work)
        assert sorted(b"".join(pieces)) == sorted(MEMBERS["m6"])


def test_infos_from_many_threads(path):
    with ZipFile(path) as zf:
        run_threads(8, lambda number: [zf.getinfo(name) for name in MEMBERS] + zf.infolist())
        assert [info.filename for info in zf.infolist()] == list(MEMBERS)
        assert all(zf.getinfo(info.filename) is info for info in zf.infolist())


def test_closed_while_others_read(path):
    """Data or ValueError, never another file's bytes."""
    for _ in range(20):
        zf = ZipFile(path)
        started = threading.Event()

        def work(number, zf=zf, started=started):
            while True:
                name = f"m{(number * 5) % 42}"
                started.set()
                try:
                    assert zf.read(name) == MEMBERS[name]
                except ValueError:
                    return

        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        started.wait()
        zf.close()
        with open("/dev/zero", "rb"):  # takes a number that was given back
            for thread in threads:
                thread.join()


def test_member_closed_while_another_thread_reads(path):
    with ZipFile(path) as zf:
        for _ in range(20):
            member = zf.open("m6")

            def work(number, member=member):
                at = 0
                try:
                    while piece := member.read(3000):
                        assert piece == MEMBERS["m6"][at : at + len(piece)]
                        at += len(piece)
                except ValueError:
                    pass

            thread = threading.Thread(target=work, args=(0,))
            thread.start()
            member.close()
            thread.join()


pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.mark.parametrize("kind", ["path", "file"])
def test_forked_workers_share_one(path, kind):
    """What fails in half of the reads with zipfile: a shared descriptor offset."""
    with open(path, "rb") as file, ZipFile(path if kind == "path" else file) as zf:
        zf.read("m3")
        wait_for(*[in_child(lambda i=i: use(zf, i)) for i in range(3)], in_child(lambda: use(zf, 9, 1)))
        use(zf, 5, 1)


def test_open_members_go_on_in_parent_and_child(path):
    with ZipFile(path) as zf:
        members = {name: zf.open(name) for name in ("m4", "m5", "m6", "m41")}
        heads = {name: member.read(50) for name, member in members.items()}

        def finish():
            for name, member in members.items():
                assert heads[name] + member.read() == MEMBERS[name]

        pid = in_child(finish)
        finish()
        wait_for(pid)
        for member in members.values():
            member.close()


def test_fork_while_other_threads_read(path):
    data = path.read_bytes()
    with ZipFile(path) as zf, ZipFile(io.BytesIO(data)) as other:
        ended = threading.Event()

        def work():
            number = 0
            while not ended.is_set():
                number += 1
                name = f"m{number % 42}"
                assert zf.read(name) == MEMBERS[name]
                assert other.read(name) == MEMBERS[name]
                assert zf.testzip(workers=2) is None

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for i in range(6):
                wait_for(in_child(lambda i=i: use(zf, i, 1)))
        finally:
            ended.set()
            for thread in threads:
                thread.join()


def test_an_iterator_that_was_begun_goes_on_in_the_child(path):
    with ZipFile(path) as zf:
        iterator = zf.read_many(workers=2)
        first = dict([next(iterator), next(iterator)])

        def finish():
            assert first | dict(iterator) == MEMBERS

        pid = in_child(finish)
        finish()
        wait_for(pid)


def test_multiprocessing_by_refs(path):
    import multiprocessing

    with ZipFile(path) as zf:
        refs = zf.refs()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        sizes = pool.map(read_size, refs)
    assert sizes == [len(data) for data in MEMBERS.values()]


def read_size(ref):
    return len(ref.read())


def test_sub_interpreters(path):
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import pyio_chunked\n"
        f"with pyio_chunked.ZipFile({str(path)!r}) as zf:\n"
        "    assert zf.testzip() is None\n"
        "    assert len(zf.read('m5')) == 200_000\n"
        "    with zf.open('m6') as member:\n"
        "        assert len(member.read()) == 700_000\n"
    )
    interpreters = pytest.importorskip("_testcapi", reason="no _testcapi")
    for _ in range(2):
        assert interpreters.run_in_subinterp(code) == 0


def test_zipfile_still_reads_beside_us(path):
    with zipfile.ZipFile(path) as theirs, ZipFile(path) as ours:
        run_threads(2, lambda number: [theirs.read(n) == ours.read(n) for n in MEMBERS])
