# SPDX-License-Identifier: MIT
"""Bars, and the HTML pictures that notebooks show."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from html.parser import HTMLParser

import pytest

import pyio_chunked
from pyio_chunked import _cli_output, _progress


class Table(HTMLParser):
    """Rows of cells; anything but a table's own tags fails."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.caption = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert tag in ("table", "caption", "thead", "tbody", "tr", "th", "td"), f"<{tag}> from a name"
        self.tag = tag
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.tag == "caption":
            self.caption += data
        else:
            self.rows[-1][-1] += data


# ---------------------------------------------------------------------- bars


def test_bar_follows_and_ends(capfd):
    report = _progress.bar(None)
    report(10, None)
    report(50, 100)
    report(100, 100)
    shown = capfd.readouterr().err
    assert "100%" in shown and shown.endswith("\n")


def test_bar_takes_more_than_was_promised():
    report = _progress.bar(10)
    report(5, 10)
    report(20, 30)
    report(30, 30)


def test_missing_tqdm_names_the_extra():
    code = (
        "import sys; sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None\n"
        "from pyio_chunked import _progress\n"
        "try: _progress.bar(None)\nexcept ImportError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pyio_chunked[progress]" in out


def test_late_bar_stays_away_from_short_work(capfd, monkeypatch):
    report = _cli_output.late_bar()
    report(1, 2)
    report(2, 2)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(_cli_output, "QUIET_SECONDS", 0.0)
    report = _cli_output.late_bar()
    report(1, 2)
    report(2, 2)
    assert "100%" in capfd.readouterr().err


def test_late_bar_does_without_tqdm(monkeypatch):
    monkeypatch.setattr(_cli_output, "QUIET_SECONDS", 0.0)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    report = _cli_output.late_bar()
    report(1, 2)
    report(2, 2)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for i in range(20):
            out.writestr(f"{i}", os.urandom(10_000))
    return path


def jobs(folder, archive):
    source = folder / "source"
    source.write_bytes(os.urandom(300_000))
    (folder / "tree").mkdir()
    (folder / "tree" / "file").write_bytes(b"x" * 1000)

    def with_archive(call):
        def job(progress):
            with pyio_chunked.ZipFile(archive) as opened:
                call(opened, progress)

        return job

    return {
        "transfer": (lambda p: pyio_chunked.transfer(source, folder / "t", progress=p), 300_000),
        "copyfile": (lambda p: pyio_chunked.copyfile(source, folder / "c", progress=p), 300_000),
        "copytree": (lambda p: pyio_chunked.copytree(folder / "tree", folder / "new", progress=p), 1000),
        "extractall": (with_archive(lambda z, p: z.extractall(folder / "x", progress=p)), 200_000),
        "testzip": (with_archive(lambda z, p: z.testzip(progress=p)), 200_000),
        "read_many": (with_archive(lambda z, p: list(z.read_many(progress=p))), 200_000),
        "calibrate": (lambda p: pyio_chunked.calibrate(folder, budget=0.1, progress=p), None),
    }


NAMES = ("transfer", "copyfile", "copytree", "extractall", "testzip", "read_many", "calibrate")


@pytest.fixture
def unchanged_thresholds():
    before = pyio_chunked.thresholds()
    yield
    pyio_chunked.set_thresholds(**before._asdict())


@pytest.mark.usefixtures("unchanged_thresholds")
@pytest.mark.parametrize("name", NAMES)
def test_progress_true_draws_a_bar_everywhere(name, tmp_path, archive, capfd):
    job, _ = jobs(tmp_path, archive)[name]
    job(True)
    assert "B" in capfd.readouterr().err


@pytest.mark.usefixtures("unchanged_thresholds")
@pytest.mark.parametrize("name", NAMES)
def test_progress_callable_hears_the_end(name, tmp_path, archive):
    job, total = jobs(tmp_path, archive)[name]
    heard = []
    job(lambda done, whole: heard.append((done, whole)))
    assert heard, "at least once, at the end"
    assert heard == sorted(heard, key=lambda pair: pair[0])
    done, whole = heard[-1]
    assert whole in (None, done)
    if total is not None:
        assert done == total


@pytest.mark.usefixtures("unchanged_thresholds")
@pytest.mark.parametrize("name", NAMES)
def test_progress_that_raises_stops_the_work(name, tmp_path, archive):
    class Stop(Exception):
        pass

    def stop(done, total):
        raise Stop

    job, _ = jobs(tmp_path, archive)[name]
    with pytest.raises(Stop):
        job(stop)


# ------------------------------------------------------------------ pictures


def test_archive_as_a_table(archive):
    with pyio_chunked.ZipFile(archive) as opened:
        table = Table(opened._repr_html_())
    assert "20 members" in table.caption
    assert table.rows[0][:4] == ["name", "size", "compressed", "ratio"]
    assert [row[0] for row in table.rows[1:]] == [str(i) for i in range(20)]
    assert table.rows[1][1] == "9.8 KiB"


def test_archive_shows_fifty_members_at_most_and_says_so(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        for i in range(60):
            out.writestr(f"{i}", b"")
    with pyio_chunked.ZipFile(tmp_path / "a.zip") as opened:
        table = Table(opened._repr_html_())
    assert len(table.rows) == 1 + 50 + 1
    assert table.rows[-1][0] == "… 10 more"


def test_hostile_names_stay_text(tmp_path):
    names = ["<script>alert(1)</script>", "a&b<c>'\"", "\x1b[31m\x00red"[:5], "‮gpj.exe", "x" * 60_000]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        for name in names:
            out.writestr(name, b"")
    with pyio_chunked.ZipFile(tmp_path / "a.zip") as opened:
        text = opened._repr_html_()
    shown = [row[0] for row in Table(text).rows[1:]]
    assert shown[:2] == names[:2]
    assert shown[2] == "\\x1b[31m"
    assert shown[3] == "\\u202egpj.exe"
    assert len(shown[4]) < 300
    assert text.isprintable()


def test_transfer_and_pool_as_tables(tmp_path):
    (tmp_path / "source").write_bytes(b"x" * 5000)
    result = pyio_chunked.copyfile(tmp_path / "source", tmp_path / "target")
    table = Table(result._repr_html_())
    assert ["moved", "5,000 bytes (4.9 KiB)"] in table.rows
    assert ["by", result.method] in table.rows
    table = Table(pyio_chunked.pool.stats()._repr_html_())
    assert [row[0] for row in table.rows[1:]] == list(pyio_chunked.PoolStats._fields)
