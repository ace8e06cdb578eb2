"""Bulk I/O for Python on a C core: bounded reads and writes, transfers decided
in one place, pooled inflate for zip and gzip, typed data streams."""

from pyio_chunked._core import File as File
from pyio_chunked._core import GzipFile as GzipFile
from pyio_chunked._core import Inflater as Inflater
from pyio_chunked._core import InflateReader as InflateReader
from pyio_chunked._core import __version__ as __version__
from pyio_chunked._core import inflate as inflate
from pyio_chunked._core import open as open  # noqa: A004  # named as the builtin that it stands for
from pyio_chunked._core import pool as pool
from pyio_chunked._core import read_bytes as read_bytes
from pyio_chunked._core import read_into as read_into
from pyio_chunked._core import write_bytes as write_bytes
from pyio_chunked._data import DataReader as DataReader
from pyio_chunked._data import DataWriter as DataWriter
from pyio_chunked._data import ShortReadError as ShortReadError
from pyio_chunked._pictures import PoolStats as PoolStats
from pyio_chunked._transfer import Thresholds as Thresholds
from pyio_chunked._transfer import Transfer as Transfer
from pyio_chunked._transfer import calibrate as calibrate
from pyio_chunked._transfer import copy as copy
from pyio_chunked._transfer import copyfile as copyfile
from pyio_chunked._transfer import copyfileobj as copyfileobj
from pyio_chunked._transfer import copytree as copytree
from pyio_chunked._transfer import probe as probe
from pyio_chunked._transfer import set_thresholds as set_thresholds
from pyio_chunked._transfer import thresholds as thresholds
from pyio_chunked._transfer import transfer as transfer

# What a star import brings: `open` and `copy` too, as from the standard library's modules.
__all__ = [
    "SAFE_LIMITS",
    "DataReader",
    "DataWriter",
    "EntryRef",
    "File",
    "GzipFile",
    "InflateReader",
    "Inflater",
    "LimitError",
    "Limits",
    "Path",
    "PoolStats",
    "ShortReadError",
    "Thresholds",
    "Transfer",
    "ZipFile",
    "build_info",
    "calibrate",
    "copy",
    "copyfile",
    "copyfileobj",
    "copytree",
    "gzip_open",
    "inflate",
    "is_zipfile",
    "open",
    "partition",
    "pool",
    "probe",
    "read_bytes",
    "read_into",
    "scan",
    "set_thresholds",
    "thresholds",
    "transfer",
    "write_bytes",
]

# Names whose modules import what costs at start-up (zipfile, gzip, shutil):
# they come when first asked for (PEP 562).
_LAZY: dict[str, str] = {
    "EntryRef": "_zip_refs",
    "ZipFile": "_zip",
    "partition": "_zip_refs",
    "scan": "_zip_refs",
    "Limits": "_limits",
    "SAFE_LIMITS": "_limits",
    "Path": "_zip_path",
    "is_zipfile": "_zip_path",
    "BadStream": "_errors",
    "CutShort": "_errors",
    "GzipLimitError": "_errors",
    "LimitError": "_errors",
    "build_info": "_build_info",
    "gzip_open": "_inflate",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    try:
        module = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(import_module(f"{__name__}.{module}"), name)
    # Classes and functions; an instance only shows its class's module.
    if hasattr(value, "__qualname__") and value.__module__ == f"{__name__}.{module}":
        value.__module__ = __name__
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
