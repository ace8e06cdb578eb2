# SPDX-License-Identifier: MIT
"""Every example of README and docs/ runs, both notebooks run, the pages build.

A page's Python blocks run in order in one process, in a folder that holds the
files which the pages speak of; its sh blocks run line by line. A block behind
<!-- full: MODULE --> needs that module, and runs in ./dev test --full only.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pyio_chunked

ROOT = Path(__file__).resolve().parent.parent
BUILD = os.environ.get("PYIO_TEST_BUILD", "all")
FIRST_BUILD_ONLY = "large consumers run in the first build only"

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
# The blocks of the first show how code of this tree looks, those of the
# second run in test_data_recipes.py, which writes what they read.
ELSEWHERE = {"CONTRIBUTING.md", "data.md"}
LARGE = {"pandas", "polars", "pyarrow", "duckdb", "zarr", "dask", "matplotlib"}

BLOCK = re.compile(
    r"^(?:<!-- full: (?P<full>\w+) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S
)


def blocks(page: Path, language: str) -> list[tuple[str | None, str]]:
    """(module it needs, code) of each block."""
    return [
        (found["full"], found["code"])
        for found in BLOCK.finditer(page.read_text())
        if found["language"] == language
    ]


def modules_of(code: str) -> set[str]:
    # Adapters import what they adapt.
    adapted = re.sub(r"pyio_chunked\.(\w+)", r"\1", code)
    return set(re.findall(r"^\s*(?:import|from) (\w+)", code + adapted, re.M))


def need(modules: set[str]) -> None:
    if modules & LARGE and BUILD != "all":
        pytest.skip(FIRST_BUILD_ONLY)
    for name in sorted(modules & LARGE):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


# --------------------------------------------------------------- the files


def csv_of(month: int) -> str:
    return "day,value\n" + "".join(f"{day},{day * month}\n" for day in range(1, 29))


def write_archive(folder: Path, *, parquet: bool) -> None:
    with zipfile.ZipFile(folder / "archive.zip", "w", zipfile.ZIP_DEFLATED) as out:
        for month in range(1, 13):
            out.writestr(f"2026/{month:02}.csv", csv_of(month))
        out.writestr("settings.json", json.dumps({"a": 1}))
        out.writestr("raw.bin", random.Random(1).randbytes(50_000), compress_type=zipfile.ZIP_STORED)
        out.writestr("a.txt", "text\n" * 100)
        if parquet:
            import pandas

            table = io.BytesIO()
            pandas.DataFrame({"x": range(100)}).to_parquet(table)
            out.writestr("table.parquet", table.getvalue())


def write_world(folder: Path, modules: set[str]) -> None:
    write_archive(folder, parquet="pyarrow" in modules)
    shutil.copy(folder / "archive.zip", folder / "upload.zip")
    (folder / "big.bin").write_bytes(np.random.default_rng(1).normal(size=300_000).tobytes())
    (folder / "access.log.gz").write_bytes(gzip.compress(b"GET / 200\n" * 5000))
    (folder / "table.csv.gz").write_bytes(gzip.compress(csv_of(1).encode()))
    (folder / "photos").mkdir()
    (folder / "photos" / "one.jpg").write_bytes(b"\xff\xd8" * 1000)
    with tarfile.open(folder / "folder.tar.gz", "w:gz") as tar:
        tar.add(folder / "photos", "photos")
    np.savez_compressed(folder / "data.npz", x=np.arange(1000))
    np.savez(folder / "stored.npz", x=np.arange(1000))
    (folder / "logs").mkdir()
    for i in range(6):
        with zipfile.ZipFile(folder / "logs" / f"{i}.zip", "w", zipfile.ZIP_DEFLATED) as out:
            for j in range(5):
                out.writestr(f"{j}.bin", random.Random(j).randbytes(20_000))
            out.writestr("notes.txt", "one\ntwo\n")
    if "zarr" in modules:
        import zarr

        with zarr.storage.ZipStore(folder / "store.zip", mode="w") as store:
            zarr.create_array(store, name="values", data=np.arange(100).reshape(10, 10))


RUNNER = """
import sys
namespace = {"__name__": "__main__"}
for number, code in enumerate(__import__("json").load(sys.stdin), 1):
    exec(compile(code, f"block {number}", "exec"), namespace)
"""


def install_entry_points(folder: Path) -> None:
    """As an installed package has them: by these fsspec finds "czip"."""
    info = folder / "pyio_chunked-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pyio_chunked\nVersion: 0\n")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def run_blocks(codes: list[str], folder: Path) -> None:
    install_entry_points(folder / "installed")
    path = f"{folder / 'installed'}{os.pathsep}{os.environ['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        input=json.dumps(codes), capture_output=True, text=True, cwd=folder, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def ids(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
@pytest.mark.filterwarnings("default")  # of pandas and zarr, which write the files
def test_python_of_a_page(page, tmp_path):
    codes = [code for full, code in blocks(page, "python") if full is None]
    if page.name in ELSEWHERE:
        codes = []
    modules = set().union(*map(modules_of, codes), set())
    need(modules)
    write_world(tmp_path, modules)
    run_blocks(codes, tmp_path)


FULL = [
    pytest.param(page, full, code, id=f"{page.name}-{full}")
    for page in PAGES
    for full, code in blocks(page, "python")
    if full
]


@pytest.mark.heavy
@pytest.mark.parametrize(("page", "module", "code"), FULL)
def test_python_that_needs_much(page, module, code, tmp_path):
    if BUILD != "all":
        pytest.skip(FIRST_BUILD_ONLY)
    pytest.importorskip(module, reason=f"{module} is not installed")
    write_world(tmp_path, set())
    run_blocks([code], tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_shell_of_a_page(page, tmp_path):
    lines = [line for _, code in blocks(page, "sh") for line in code.splitlines() if line.strip()]
    verbs = set(re.findall(r"^ *(?:([\w-]+) *\|)* *([\w-]+)\)", (ROOT / "dev").read_text(), re.M))
    known = {verb for pair in verbs for verb in pair}
    write_world(tmp_path, set())
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "pyio-chunked"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m pyio_chunked "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    for line in lines:
        line = line.split("  #")[0].strip()
        # These build and install: ./dev's own tests and the bare-root test do that.
        if line.startswith("./dev "):
            assert line.split()[1] in known, line
        elif line.startswith(("pyio-chunked ", "eval ")):
            done = subprocess.run(
                ["sh", "-e", "-c", line], cwd=tmp_path, env={**os.environ, "PATH": path},
                capture_output=True, text=True, timeout=120,
            )  # fmt: skip
            assert done.returncode == 0, (line, done.stdout, done.stderr)
        else:
            assert line.startswith(("git ", "pip ", "python ", "python3 ", "apt-get ", "#")), line


def test_pages_speak_only_of_names_that_are_there():
    missing = []
    for page in PAGES:
        text = page.read_text()
        for name in re.findall(r"\bpc\.([a-zA-Z_]\w*)", text):
            if not hasattr(pyio_chunked, name):
                missing.append(f"{page.name}: pc.{name}")
    assert missing == []


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=ids(NOTEBOOKS))
@pytest.mark.filterwarnings("default")  # of the kernel's machinery
def test_notebook(notebook, tmp_path):
    if BUILD != "all":
        pytest.skip(FIRST_BUILD_ONLY)
    for name in ("nbclient", "ipykernel", "pandas", "matplotlib"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    import nbclient
    import nbformat

    sheet = nbformat.read(notebook, as_version=4)
    nbclient.NotebookClient(
        sheet, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [out for cell in sheet.cells if cell.cell_type == "code" for out in cell.outputs]
    assert any("text/html" in out.get("data", {}) for out in outputs)
    assert [out for out in outputs if out.output_type == "error"] == []
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=ids(NOTEBOOKS))
def test_notebooks_show_their_outputs_on_the_web(notebook):
    """Run once from top to bottom, without a trace of where, and small."""
    text = notebook.read_text()
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {kind for cell in cells for out in cell["outputs"] for kind in out.get("data", {})}
    assert {"text/html", "text/plain"} <= kinds <= {"text/html", "text/plain", "image/png"}
    assert not re.search(r"/(tmp|home|root|work)/|Traceback", text)
    assert len(text) < 150_000


def test_notebooks_are_the_two():
    assert [path.stem for path in NOTEBOOKS] == ["copy-and-calibrate", "zipped-data-set"]


def test_pages_build_without_a_warning(tmp_path):
    if BUILD != "all":
        pytest.skip(FIRST_BUILD_ONLY)
    for name in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html",
         "-d", str(tmp_path / "doctrees"), str(ROOT / "docs"), str(tmp_path / "html")],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "index.html").exists()
