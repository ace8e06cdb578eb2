# SPDX-License-Identifier: MIT
"""thresholds, set_thresholds, the environment, calibrate."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import pyio_chunked
from pyio_chunked import Thresholds, calibrate, set_thresholds, thresholds


@pytest.fixture(autouse=True)
def restored():
    before = thresholds()
    yield
    set_thresholds(**before._asdict())


def test_get_and_set():
    assert isinstance(thresholds(), Thresholds)
    assert set_thresholds(mapped=5) == thresholds()
    assert thresholds().mapped == 5
    assert set_thresholds(parallel=7, huge_pages=sys.maxsize) == (5, 7, sys.maxsize)
    assert set_thresholds() == (5, 7, sys.maxsize)
    assert set_thresholds(mapped=0).mapped == 0


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"mapped": -1}, ValueError),
        ({"mapped": 1, "parallel": -1}, ValueError),
        ({"mapped": 2**63}, OverflowError),
        ({"mapped": "5"}, TypeError),
        ({"mapped": 1.5}, TypeError),
        ({"chunk": 5}, TypeError),
    ],
)
def test_refused_values_change_nothing(values, error):
    before = thresholds()
    with pytest.raises(error):
        set_thresholds(**values)
    assert thresholds() == before


def child(**environment: str) -> subprocess.CompletedProcess[str]:
    code = "import pyio_chunked; print(*pyio_chunked.thresholds())"
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True
    )


def test_environment():
    done = child(PYIO_CHUNKED_MAPPED="123", PYIO_CHUNKED_PARALLEL=str(1 << 80), PYIO_CHUNKED_HUGE_PAGES="")
    assert done.stdout.split()[:2] == ["123", str(sys.maxsize)]
    for text in ("-1", "many", "1.5"):
        done = child(PYIO_CHUNKED_MAPPED=text)
        assert done.returncode == 1
        assert "ImportError: PYIO_CHUNKED_MAPPED must be a number of bytes" in done.stderr


def test_calibrate_sets_what_it_returns(tmp_path):
    seen = []
    found = calibrate(tmp_path, budget=0.05, progress=lambda done, total: seen.append((done, total)))
    assert found == thresholds()
    assert all(1 << 18 <= value <= sys.maxsize for value in found)
    assert seen[-1] == (50, 50)
    assert seen == sorted(seen)
    assert list(tmp_path.iterdir()) == []


def test_calibrate_that_fails_changes_nothing(tmp_path):
    before = thresholds()

    def stop(done, total):
        raise KeyError

    with pytest.raises(KeyError):
        calibrate(tmp_path, budget=0.05, progress=stop)
    with pytest.raises(FileNotFoundError):
        calibrate(tmp_path / "none", budget=0.05)
    with pytest.raises(ValueError):
        calibrate(tmp_path, budget=0)
    assert thresholds() == before
    assert list(tmp_path.iterdir()) == []
    assert pyio_chunked.calibrate.__module__ == "pyio_chunked"
