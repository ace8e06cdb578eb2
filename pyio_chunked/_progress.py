"""The bar that progress=True means: tqdm.auto's, as a callable(done, total)."""

from __future__ import annotations

from collections.abc import Callable


def bar(total: int | None) -> Callable[[int, int | None], None]:
    """A tqdm bar in bytes: in a terminal a line, in a notebook a widget."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install 'pyio_chunked[progress]'") from error
    meter = tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024)

    def report(done: int, total: int | None) -> None:
        if total is not None and meter.total != total:
            meter.total = total
        meter.update(done - meter.n)
        if total is not None and done >= total:
            meter.close()

    return report
