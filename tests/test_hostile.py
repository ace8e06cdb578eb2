# SPDX-License-Identifier: MIT
"""Every archive of hostile.py, in every profile: the verdict, the rule's name, what is written, time and memory."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import pytest
from hostile import CORPUS, Hostile, members
from hostile_build import M

from pyio_chunked import LimitError, Limits, ZipFile

PROFILES = ("compat", "safe", "strict")
each = pytest.mark.parametrize("h", CORPUS, ids=lambda h: h.name.replace("/", ":"))


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        # As zipfile since 3.13.1: entries of one offset are warned of.
        warnings.filterwarnings("ignore", "Overlapped entries", UserWarning)
        yield


def some(count: int) -> list[int]:
    """Members to look at: of tens of thousands the first and the last."""
    return list(range(count)) if count < 3000 else [*range(200), *range(count - 200, count)]


def errors(h: Hostile) -> tuple[type[BaseException], ...]:
    """What a refusal may raise: BadZipFile, or the class that zipfile has for the case."""
    names = {
        "BadZipFile": zipfile.BadZipFile,
        "UnicodeDecodeError": UnicodeDecodeError,
        "NotImplementedError": NotImplementedError,
        "RuntimeError": RuntimeError,
        "OSError": OSError,
    }
    if h.error == "LZMAError":
        import lzma

        return (lzma.LZMAError, zipfile.BadZipFile)
    return (names[h.error], zipfile.BadZipFile)


@pytest.mark.parametrize("profile", PROFILES)
@each
def test_verdict(h: Hostile, profile: str, tmp_path: Path):
    blob = h.blob()
    expected = getattr(h, profile)
    path = tmp_path / "a.zip"
    path.write_bytes(blob)
    for source in (path, io.BytesIO(blob)):
        if expected == "open":
            with pytest.raises(errors(h)) as caught:
                ZipFile(source, profile=profile)
            assert str(caught.value)
            continue
        with ZipFile(source, profile=profile) as zf:
            infos = zf.infolist()
            refused = members(expected, len(infos))
            for i in some(len(infos)):
                info = infos[i]
                if i in refused:
                    with pytest.raises(errors(h)) as caught:
                        zf.read(info)
                    assert str(caught.value)
                    for workers in (1, 2):
                        with pytest.raises(errors(h)):
                            list(zf.read_many([info], workers=workers))
                    with pytest.raises(errors(h)), zf.open(info) as stream:
                        while stream.read(8192):
                            pass
                else:
                    data = zf.read(info)
                    assert len(data) == info.file_size
                    with zf.open(info) as stream:
                        assert stream.read() == data


@each
def test_zipfile_agrees_where_it_reads_right(h: Hostile):
    """compat: what both read is the same; what the newest zipfile refuses, we refuse."""
    blob = h.blob()
    try:
        theirs = zipfile.ZipFile(io.BytesIO(blob))
    except Exception:
        if h.compat != "open":
            assert "zip64" in h.name  # extensible data, which zipfile doesn't read
        return
    if h.compat == "open":
        pytest.fail("zipfile opens it")
    with theirs, ZipFile(io.BytesIO(blob)) as ours:
        if sys.version_info < (3, 12) and "Unicode path" in h.name:
            return  # that zipfile doesn't know 0x7075
        assert ours.namelist() == theirs.namelist()
        refused = members(h.compat, len(ours))
        for i in some(len(ours)):
            info, reference = ours.infolist()[i], theirs.infolist()[i]
            try:
                data = theirs.read(reference)
            except Exception as error:
                # 3.13.0 refuses entries of one offset, which 3.13.1 warns of
                assert i in refused or "Overlapped" in str(error)
                continue
            if i not in refused:
                assert ours.read(info) == data


@each
def test_check_names_the_rules(h: Hostile):
    if h.compat == "open":
        return
    with ZipFile(io.BytesIO(h.blob())) as zf:
        lines = zf.check()
    for rule in h.rules:
        assert any(rule in line for line in lines), (rule, lines)
    if h.rules:
        with (
            pytest.raises(zipfile.BadZipFile) as caught,
            ZipFile(io.BytesIO(h.blob()), profile="strict") as zf,
        ):
            for info in zf.infolist():
                zf.read(info)
        assert any(line.split(":")[0] in str(caught.value) for line in lines)
    if h.strict == "ok":
        assert lines == []


@pytest.mark.parametrize("profile", ["compat", "strict"])
@each
def test_extraction_stays_inside(h: Hostile, profile: str, tmp_path: Path):
    """Right files below the target and nothing else, whatever it is."""
    (tmp_path / "a.zip").write_bytes(h.blob())
    target = tmp_path / "deep" / "er" / "in"
    verdict = h.safe if profile == "compat" else h.strict
    if "65,535" in h.name or h.name == "many entries":
        return  # nothing but time: tens of thousands of empty files
    try:
        zf = ZipFile(tmp_path / "a.zip", profile=profile)
    except Exception:
        assert verdict == "open"
        return
    with zf:
        good = {}
        for i, info in enumerate(zf.infolist()):
            if i not in members(verdict, len(zf)) and i not in members(getattr(h, profile), len(zf)):
                good[info.filename] = zf.read(info)
        try:
            zf.extractall(target)
        except (*errors(h), OSError, ValueError):
            pass
        else:
            assert verdict == "ok" or not members(verdict, len(zf))
    assert set(os.listdir(tmp_path)) <= {"a.zip", "deep"}
    assert set(os.listdir(tmp_path / "deep" / "er")) == {"in"} if target.exists() else True
    names = []
    for path in target.rglob("*"):
        assert not path.is_symlink()
        if path.is_file():
            assert path.read_bytes() in good.values()
        if path.is_file() or not any(path.iterdir()):
            names.append(str(path.relative_to(target)))
    if h.names and verdict == "ok":
        assert sorted(names) == sorted(h.names)
    assert not os.path.exists("/tmp/pyio-evil")


@pytest.mark.parametrize("h", [h for h in CORPUS if h.limit], ids=lambda h: h.name)
def test_bombs_meet_their_limits(h: Hostile, tmp_path: Path):
    limits = Limits(**h.limits)
    (tmp_path / "a.zip").write_bytes(h.blob())
    with ZipFile(tmp_path / "a.zip") as zf, pytest.raises(LimitError) as caught:
        zf.extractall(tmp_path / "in", limits=limits)
    assert caught.value.limit == h.limit and h.limit in str(caught.value)
    assert not list((tmp_path / "in").iterdir())
    with pytest.raises(LimitError), ZipFile(tmp_path / "a.zip", limits=limits) as zf:
        list(zf.read_many())


COST = """
import io, sys, time, warnings
sys.path.insert(0, sys.argv[1])
import hostile
from pyio_chunked import ZipFile
warnings.simplefilter("ignore")

def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) >> 10

def look(blob, profile):
    try:
        with ZipFile(io.BytesIO(blob), profile=profile) as zf:
            zf.check()
            for info in zf.infolist():
                try:
                    with zf.open(info) as stream:
                        while stream.read(1 << 16):
                            pass
                except Exception:
                    pass
    except Exception:
        pass

look(hostile.CORPUS[0].make(), "strict")
for h in hostile.CORPUS:
    blob = h.make()
    open("/proc/self/clear_refs", "w").write("5")
    before, start = peak(), time.process_time()
    for profile in ("compat", "safe", "strict"):
        look(blob, profile)
    print(h.name, len(blob), peak() - before, time.process_time() - start, sep="\\t")
"""


def test_time_and_memory_are_bounded():
    """Each archive opened, checked and streamed in three profiles: at most 24 MiB beside the archive and its
    directory, and a few seconds of CPU (a child, so that a peak is its own)."""
    done = subprocess.run(
        [sys.executable, "-c", COST, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == len(CORPUS)
    room = (
        1 << 20 if os.environ.get("PYIO_TEST_BUILD") == "sanitize" else 24
    )  # a sanitizer's memory isn't ours
    wrong = [row for row in rows if int(row[2]) > room + 4 * (int(row[1]) >> 20) or float(row[3]) > 20]
    assert wrong == []


def test_hundred_thousand_overlapping_members_take_no_quadratic_time():
    from hostile_build import archive

    count = 20_000
    blob = archive(
        [M("a", b"x" * 50)] + [M(f"{i}", b"x" * 50, written=False, offset=0) for i in range(count)]
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import io, sys, zipfile\nfrom pyio_chunked import ZipFile\n"
            "zf = ZipFile(io.BytesIO(sys.stdin.buffer.read()), profile='safe')\nbad = 0\n"
            "for info in zf.infolist():\n"
            "    try: zf.read(info)\n"
            "    except zipfile.BadZipFile: bad += 1\n"
            "print(bad)",
        ],
        input=blob,
        capture_output=True,
        check=True,
        timeout=300,
    )
    assert int(done.stdout) == count + 1


def test_html_of_hostile_names():
    """A notebook shows names; they stay text."""
    from hostile_build import archive

    with ZipFile(io.BytesIO(archive([M("<script>alert(1)</script>", b"1"), M('"onload="x', b"2")]))) as zf:
        html = zf._repr_html_() if hasattr(zf, "_repr_html_") else ""
        assert "<script>" not in html and 'd="x' not in html
        assert zf.testzip() is None


def test_the_page_of_verdicts_is_this_corpus():
    page = (Path(__file__).parent.parent / "docs" / "hostile.md").read_text()
    from hostile_peers import ours

    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    assert [row[1:4] for row in rows] == [[ours(h, p) for p in PROFILES] for h in CORPUS]
