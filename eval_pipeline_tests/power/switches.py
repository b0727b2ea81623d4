"""Run by each interpreter that starts while MUTANTS names a folder: modules come from there, with all mutants in them.

Which of them is on the variable MUTANT says; without it none is, and what comes by one is noted in the file `reach`.
Where neither is passed on, in jails for one, code runs as it is.
"""

import builtins
import marshal
import os
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

_FOLDER = os.environ.get("MUTANTS", "")
_seen: set[tuple[int, str]] = set()
_get_code = SourceFileLoader.get_code
_environment: Any = os.environ._data  # type: ignore[attr-defined]


def is_on(number: int) -> bool:
    """Whether a mutant is on."""
    told = _environment.get(b"MUTANT")
    if told is not None:
        return bool(told == b"%d" % number)
    place = is_on.place or os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]  # type: ignore[attr-defined]
    if (number, place) not in _seen:
        _seen.add((number, place))
        handle = os.open(os.path.join(_FOLDER, "reach"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{number} {place}\n".encode())
        os.close(handle)
    return False


def _code(loader: SourceFileLoader, name: str) -> CodeType | None:
    """The code of a module: with mutants, if it is that of a file which has some."""
    path = os.path.join(_FOLDER, loader.path.replace("/", "|"))
    if "eval_pipeline" in loader.path and os.path.exists(path):
        with open(path, "rb") as file:
            return marshal.load(file)  # type: ignore[no-any-return]
    return _get_code(loader, name)


is_on.place = ""  # type: ignore[attr-defined]  # no variable: fixtures that put variables back would put it back, too
builtins._mutant = is_on  # type: ignore[attr-defined]
SourceFileLoader.get_code = _code  # type: ignore[method-assign]
