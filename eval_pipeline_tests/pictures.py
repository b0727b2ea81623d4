"""Charts of reports without their pictures, which take much of a report's time."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from eval_pipeline.reports.charts import canvas

_PNG = b"\x89PNG\r\n"
_real = canvas.picture


@contextmanager
def sketches(on: bool = True) -> Iterator[None]:
    """Reports have empty pictures while this lasts, or whole ones again if not `on`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canvas, "picture", (lambda chart: _PNG) if on else _real)
        yield
