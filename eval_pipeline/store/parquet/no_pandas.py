"""pyarrow without pandas: it imports pandas at its first conversion where it finds it, for 0.35 CPU s and 40 MiB."""

import sys
from importlib.machinery import ModuleSpec

import pyarrow as pa


class _NotNow:
    """An import hook that does not find pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pyarrow is to do without pandas", name=name)
        return None


def convert_without_pandas() -> None:
    """Has pyarrow make its first conversion while pandas cannot be found: it looks once.

    Afterwards pandas can be imported as ever, and pyarrow's conversions from and to it work.
    """
    if "pandas" in sys.modules:
        return
    hook = _NotNow()
    sys.meta_path.insert(0, hook)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hook)
