"""Stops pyarrow from importing pandas at its first conversion, which would cost 0.35 CPU s and 40 MiB."""

import sys
from importlib.machinery import ModuleSpec

import pyarrow as pa


class _NotNow:
    """An import hook that pretends that pandas is not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pyarrow is to do without pandas", name=name)
        return None


def convert_without_pandas() -> None:
    """Makes pyarrow do its first conversion while pandas cannot be found; it looks for pandas only once.

    Afterwards pandas can be imported as usual, and pyarrow's conversions from and to it work.
    """
    if "pandas" in sys.modules:
        return
    hook = _NotNow()
    sys.meta_path.insert(0, hook)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hook)
