# SPDX-License-Identifier: MIT
"""pandas, pyarrow, polars, duckdb, zarr and openpyxl as consumers.

They are large, so ./dev test installs them for its first build only; nothing
in here depends on the build's engines.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import random
from contextlib import ExitStack

import numpy as np
import pytest
from consumers import DECODED, MAKERS, Counting

import pyio_chunked

BUILD = os.environ.get("PYIO_TEST_BUILD", "all")

if BUILD != "all":
    pytest.skip("large consumers run in the first build only", allow_module_level=True)

# Theirs, not ours: what they deprecate among each other.
pytestmark = pytest.mark.filterwarnings("default")

ROWS = 20_000


@pytest.fixture(autouse=True, scope="module")
def consumers_are_there():
    for name in ("pandas", "pyarrow", "polars", "duckdb", "zarr", "openpyxl"):
        pytest.importorskip(name, reason=f"{name} is not installed")


def module(name: str):
    return importlib.import_module(name)


def frame():
    source = random.Random(1)
    return module("pandas").DataFrame({
        "i": range(ROWS),
        "x": [source.random() for _ in range(ROWS)],
        "name": [f"é {i % 97}" for i in range(ROWS)],
    })  # fmt: skip


def csv_data() -> bytes:
    return frame().to_csv(index=False).encode()


def parquet_data() -> bytes:
    out = io.BytesIO()
    frame().to_parquet(out, row_group_size=5000)
    return out.getvalue()


def feather_data() -> bytes:
    out = io.BytesIO()
    frame().to_feather(out)
    return out.getvalue()


def json_lines() -> bytes:
    return b"".join(json.dumps({"i": i, "x": i / 7, "name": f"é {i}"}).encode() + b"\n" for i in range(ROWS))


def excel_data() -> bytes:
    book = module("openpyxl").Workbook()
    for i in range(500):
        book.active.append([i, i / 7, f"é {i}"])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def with_openpyxl(file):
    book = module("openpyxl").load_workbook(file, read_only=True)
    return [tuple(cell.value for cell in row) for row in book.active.rows]


def with_duckdb(file):
    return module("duckdb").read_csv(file).fetchall()


def polars_rows(name):
    return lambda file: getattr(module("polars"), name)(file).rows()


def pandas_csv(engine):
    return lambda file: module("pandas").read_csv(file, engine=engine)


CONSUMERS = {
    "pandas csv, C": (csv_data, pandas_csv("c")),
    "pandas csv, python": (csv_data, pandas_csv("python")),
    "pandas csv, pyarrow": (csv_data, pandas_csv("pyarrow")),
    "pandas csv in chunks": (
        csv_data,
        lambda file: module("pandas").concat(module("pandas").read_csv(file, chunksize=1000)),
    ),
    "pandas json": (json_lines, lambda file: module("pandas").read_json(file, lines=True)),
    "pandas parquet": (parquet_data, lambda file: module("pandas").read_parquet(file)),
    "pandas excel": (excel_data, lambda file: module("pandas").read_excel(file)),
    "pyarrow csv": (csv_data, lambda file: module("pyarrow.csv").read_csv(file)),
    "pyarrow json": (json_lines, lambda file: module("pyarrow.json").read_json(file)),
    "pyarrow parquet": (parquet_data, lambda file: module("pyarrow.parquet").read_table(file)),
    "pyarrow feather": (feather_data, lambda file: module("pyarrow.feather").read_table(file)),
    "polars csv": (csv_data, polars_rows("read_csv")),
    "polars parquet": (parquet_data, polars_rows("read_parquet")),
    "polars ndjson": (json_lines, polars_rows("read_ndjson")),
    "duckdb csv": (csv_data, with_duckdb),
    "openpyxl": (excel_data, with_openpyxl),
}

_data: dict[str, bytes] = {}


def data_for(consumer: str) -> bytes:
    if consumer not in _data:
        _data[consumer] = CONSUMERS[consumer][0]()
    return _data[consumer]


def same(left, right) -> bool:
    equals = getattr(left, "equals", None)
    return equals(right) if equals is not None else left == right


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_result_is_that_over_bytesio(consumer, maker, tmp_path):
    data, consume = data_for(consumer), CONSUMERS[consumer][1]
    expected = consume(io.BytesIO(data))
    with ExitStack() as stack:
        assert same(consume(MAKERS[maker](data, tmp_path, stack)), expected)


@pytest.mark.parametrize("maker", ["File", "GzipFile", "deflated member", "EntryRef"])
@pytest.mark.parametrize("consumer", ["pandas csv, C", "pandas csv, python", "polars csv", "pyarrow csv"])
def test_calls_are_bounded_by_the_size(consumer, maker, tmp_path):
    data, consume = data_for(consumer), CONSUMERS[consumer][1]
    with ExitStack() as stack:
        ours = Counting(MAKERS[maker](data, tmp_path, stack))
        consume(ours)
        assert ours.calls <= len(data) // 8192 + 20


def test_pyarrow_reads_through_our_buffers(tmp_path):
    """Its PythonFile calls read_buffer where there is one: pooled memory,
    which stays whole as long as a table stands on it."""
    table = module("pyarrow").table({"x": np.arange(300_000)})
    module("pyarrow.feather").write_feather(table, str(tmp_path / "t.arrow"), compression="uncompressed")
    with pyio_chunked.open(tmp_path / "t.arrow") as file:
        held = module("pyarrow.ipc").open_file(file).read_all()
        for _ in range(5):  # what would be reused, if it were given back early
            file.pread(1 << 20, 0)
    assert held.equals(table)


@pytest.mark.parametrize("maker", DECODED)
def test_numpy_gets_no_compressed_bytes_for_values(maker, tmp_path):
    with ExitStack() as stack, pytest.raises(io.UnsupportedOperation):
        np.fromfile(MAKERS[maker](bytes(8000), tmp_path, stack), np.int64)


def test_damaged_data_is_no_short_table(tmp_path):
    import gzip

    packed = gzip.compress(csv_data())
    (tmp_path / "cut.gz").write_bytes(packed[:-1000])
    for read in (pandas_csv("c"), pandas_csv("python"), module("pyarrow.csv").read_csv):
        with (
            pyio_chunked.GzipFile(tmp_path / "cut.gz") as file,
            pytest.raises((EOFError, ValueError, OSError)),
        ):
            read(file)


# ----------------------------------------------------------------- writing


def test_tables_written_through_a_file_are_those_of_bytesio(tmp_path):
    table = frame()
    for write in (table.to_parquet, lambda out: table.to_csv(out, index=False), table.to_feather):
        expected = io.BytesIO()
        write(expected)
        with pyio_chunked.open(tmp_path / "f", "wb") as out:
            write(out)
        assert (tmp_path / "f").read_bytes() == expected.getvalue()


def test_workbook_written_through_a_file(tmp_path):
    (tmp_path / "in.xlsx").write_bytes(excel_data())
    book = module("openpyxl").load_workbook(tmp_path / "in.xlsx")
    with pyio_chunked.open(tmp_path / "out", "w+b") as out:
        book.save(out)
    with pyio_chunked.open(tmp_path / "out") as file:
        assert with_openpyxl(file) == with_openpyxl(io.BytesIO(excel_data()))


# --------------------------------------------------------- by URL and store


@pytest.fixture
def tables(tmp_path):
    import zipfile

    path = tmp_path / "tables.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for i in range(3):
            out.writestr(f"2026/{i}.csv", f"i,x\n{i},{i / 2}\n{i + 10},1.5\n")
        out.writestr("all.parquet", parquet_data())
    return path


@pytest.fixture
def czip():
    from pyio_chunked import fsspec as adapter

    adapter.register()


@pytest.mark.usefixtures("czip")
def test_pandas_by_url(tables):
    pandas = module("pandas")
    assert pandas.read_csv(f"czip://2026/1.csv::{tables}")["i"].tolist() == [1, 11]
    assert pandas.read_parquet(f"czip://all.parquet::{tables}").equals(frame())


@pytest.mark.usefixtures("czip")
def test_duckdb_by_registered_file_system(tables):
    from pyio_chunked.fsspec import CZipFileSystem

    connection = module("duckdb").connect()
    connection.register_filesystem(CZipFileSystem(str(tables)))
    rows = connection.sql("select i from read_csv('czip://2026/*.csv') order by i").fetchall()
    assert rows == [(0,), (1,), (2,), (10,), (11,), (12,)]
    connection.close()


@pytest.mark.usefixtures("czip")
def test_pyarrow_dataset_by_file_system(tables):
    from pyio_chunked.fsspec import CZipFileSystem

    dataset = module("pyarrow.dataset")
    found = dataset.dataset("2026", format="csv", filesystem=CZipFileSystem(str(tables)))
    assert sorted(found.to_table()["i"].to_pylist()) == [0, 1, 2, 10, 11, 12]


def test_zarr_reads_its_store_out_of_an_archive(tmp_path):
    zarr = module("zarr")
    values = np.arange(10_000).reshape(100, 100)
    with zarr.storage.ZipStore(tmp_path / "store.zip", mode="w") as store:
        zarr.create_array(store, name="values", data=values, chunks=(10, 100))
    from pyio_chunked.fsspec import CZipFileSystem

    store = zarr.storage.FsspecStore(
        module("fsspec.implementations.asyn_wrapper").AsyncFileSystemWrapper(
            CZipFileSystem(str(tmp_path / "store.zip")), asynchronous=True
        ),
        read_only=True,
        path="",
    )
    group = zarr.open_group(store, mode="r")
    assert (group["values"][:] == values).all()
    with pytest.raises(ValueError, match="read"):
        group["values"][0, 0] = 1
