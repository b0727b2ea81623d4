"""Views and columns that people keep: one file in the project, `views.yaml`, which is theirs to edit and to commit."""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.reading.foreign import SafeLoader, check_yaml, read_text, why_unread
from eval_pipeline.store.durable import make_folders, replace_durably, temporary_path

_HEAD = "# Views of `eval-pipeline view` that somebody kept, and the columns of its first page.\n"
_ADDRESS = re.compile(r"/(suites/[^\s\\]+)?(\?[^\s\\]*)?")
_MOST_VIEWS, _MOST_NAME, _MOST_ADDRESS = 200, 80, 4_000
_MOST_BYTES = 2 << 20
_WRITING = threading.Lock()


@dataclass(frozen=True, slots=True)
class KeptView:
    """A page of the workbench with its filter, under a name."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class KeptViews:
    """What is in the file.

    Attributes:
        views: in the order in which they were kept.
        columns: columns of the first page; empty if nobody chose any.
    """

    views: tuple[KeptView, ...] = ()
    columns: tuple[str, ...] = ()


def kept_in(home: Home) -> KeptViews:
    """Returns what the project keeps; nothing without a file.

    Raises:
        UsageError: the file cannot be read, or something in it is not as it should be; says where.
    """
    path = _file(home)
    try:
        written = read_text(path, _MOST_BYTES)
        check_yaml(written)
        found = yaml.load(written, Loader=SafeLoader)  # noqa: S506, a safe one
        found = {} if found is None else found
    except FileNotFoundError:
        return KeptViews()
    except OSError as error:
        raise UsageError(f"{path}: {why_unread(error)}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict) or not found.keys() <= {"views", "columns"}:
        raise UsageError(f"{path}: expected `views` and `columns`, and nothing else")
    views, columns = (_list(path, found, name) for name in ("views", "columns"))
    if wrong := [name for name in columns if not isinstance(name, str)]:
        raise UsageError(f"{path}: `columns`: expected names of columns, found {wrong[0]!r:.60}")
    return KeptViews(tuple(_view(path, number, view) for number, view in enumerate(views, 1)), tuple(columns))


def keep_view(home: Home, name: str, address: str) -> None:
    """Keeps a page under a name; another one with this name is replaced.

    Raises:
        UsageError: name or address cannot be kept, or the file cannot be read or written.
    """
    view = KeptView(" ".join(name.split()), address)
    if why := _wrong(view):
        raise UsageError(f"the view cannot be kept: {why}")
    with _WRITING:
        found = kept_in(home)
        others = [one for one in found.views if one.name != view.name]
        if len(others) >= _MOST_VIEWS:
            raise UsageError(f"{_file(home)} has {_MOST_VIEWS} views already; remove some")
        _write(home, replace(found, views=(*others, view)))


def forget_view(home: Home, name: str) -> None:
    """Removes the view of that name, if there is one. Raises a UsageError if the file cannot be read or written."""
    with _WRITING:
        found = kept_in(home)
        _write(home, replace(found, views=tuple(one for one in found.views if one.name != name)))


def keep_columns(home: Home, columns: Sequence[str]) -> None:
    """Keeps the columns of the first page. Raises a UsageError if the file cannot be read or written."""
    with _WRITING:
        _write(home, replace(kept_in(home), columns=tuple(columns)))


def _file(home: Home) -> Path:
    return home.data / "views.yaml"


def _list(path: Path, found: dict[str, Any], name: str) -> list[Any]:
    values = found.get(name) or []
    if not isinstance(values, list):
        raise UsageError(f"{path}: `{name}`: expected a list")
    return values


def _view(path: Path, number: int, said: Any) -> KeptView:
    if not isinstance(said, dict) or said.keys() != {"name", "address"} or {*map(type, said.values())} != {str}:
        raise UsageError(f"{path}: view {number}: expected the texts `name` and `address`, and nothing else")
    view = KeptView(said["name"], said["address"])
    if why := _wrong(view):
        raise UsageError(f"{path}: view {number}: {why}")
    return view


def _wrong(view: KeptView) -> str:
    """Returns why a view cannot be kept; empty if it can."""
    if not 0 < len(view.name) <= _MOST_NAME or not view.name.isprintable():
        return f"its name needs 1 to {_MOST_NAME} characters, all of them printable"
    if not view.address.isascii() or len(view.address) > _MOST_ADDRESS or not _ADDRESS.fullmatch(view.address):
        return "its address is none of a page of suites (`/suites/…`, or `/?…`)"
    return ""


def _write(home: Home, kept: KeptViews) -> None:
    views = [{"name": view.name, "address": view.address} for view in kept.views]
    found = {name: value for name, value in (("views", views), ("columns", list(kept.columns))) if value}
    path = _file(home)
    aside = temporary_path(path)
    try:
        make_folders(path.parent)
        aside.write_text(_HEAD + yaml.safe_dump(found, allow_unicode=True, sort_keys=False), encoding="utf-8")
        replace_durably(aside, path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
