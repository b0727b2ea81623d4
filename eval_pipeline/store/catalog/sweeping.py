"""Removes parts that the store no longer has, but not while a program has a catalog open that reads them.

DuckDB locks a catalog that it has open (by fcntl). A catalog that is replaced therefore stays reachable in `retired/`,
with a list of the parts that were dropped with it, until nobody has it open. Its readers may also need the parts that
were dropped later.

A process loses its fcntl locks on a file as soon as it closes one of several connections to it. Our readers therefore
hold a lock by flock as well, and what the publisher's own process has open is looked up.
"""

import fcntl
import json
import os
import re
import time
import weakref
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.store.catalog.manifests import manifest_files
from eval_pipeline.store.durable import fsync_path, make_folders
from eval_pipeline.store.published.form import catalog_folder

if TYPE_CHECKING:
    import duckdb


_OPENING_S = 60.0
"""How long a program may take between opening a catalog and locking it."""
_UNKNOWN_S = 86_400.0
"""How long a replaced catalog counts as open where its file cannot be kept, so that its locks cannot be seen."""
_OPEN_FILES = Path("/dev/fd")
_NAME = re.compile("[0-9a-f]{32}")


def hold_open(connection: "duckdb.DuckDBPyConnection", catalog: Path) -> None:
    """Locks the catalog for a connection that reads it, until the connection is gone."""
    handle = os.open(catalog, os.O_RDONLY | os.O_CLOEXEC)
    weakref.finalize(connection, os.close, handle)
    with suppress(OSError):  # a file system without flock: what DuckDB locks is all there is
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)


def retire(folder: Path, catalog: Path, dropped: Collection[str]) -> None:
    """Keeps a catalog that is about to be replaced.

    Args:
        folder: the retired catalogs.
        catalog: the catalog; it may be missing.
        dropped: parts that only the catalog and older ones have, as `<table>/<name>`.
    """
    make_folders(folder)
    number = max(_numbers(folder), default=0) + 1
    with suppress(OSError):  # no catalog, or a file system without hard links
        os.link(catalog, _kept(folder, number))
    _listed(folder, number).write_text(json.dumps(sorted(dropped)))
    fsync_path(_listed(folder, number))
    fsync_path(folder)


def sweep(parts: Path, retired: Path, named: Collection[str], *, erase: bool = False) -> None:
    """Removes the parts that nobody needs; only for the holder of the publishers' lock.

    Args:
        parts: the folder of all parts.
        retired: the retired catalogs.
        named: what the manifests name, as `<table>/<name>`.
        erase: remove parts that are not named even if they are being read.
    """
    needed = set(named)
    open_since = False
    for number in sorted(_numbers(retired)):
        open_since = not erase and (open_since or _is_open(retired, number))
        if open_since:
            needed |= _dropped(retired, number)
        else:
            for path in (_kept(retired, number), _listed(retired, number)):
                path.unlink(missing_ok=True)
    for place in part_files(parts):
        if place not in needed:
            with suppress(FileNotFoundError):
                (parts / place).with_suffix(".parquet").unlink()
    for left in parts.glob("*/.*.tmp"):  # of a killed publisher
        left.unlink()


def part_files(parts: Path) -> list[str]:
    """Returns the parts on the disk, as `<table>/<name>`; other files that lie there are somebody else's."""
    return [f"{path.parent.name}/{path.stem}" for path in parts.glob("*/*.parquet") if is_part(path)]


def is_part(path: Path) -> bool:
    """Whether a file is a part by its name."""
    return path.suffix == ".parquet" and _NAME.fullmatch(path.stem) is not None


def _is_open(folder: Path, number: int) -> bool:
    kept = _kept(folder, number)
    try:
        age = time.time() - _listed(folder, number).stat().st_ctime
    except FileNotFoundError:  # its publisher was killed before it had dropped anything
        return False
    try:
        status = kept.stat()
    except FileNotFoundError:
        return age < _UNKNOWN_S
    # Whoever opens and closes a file loses all fcntl locks of its process on it, so one of our own is not opened.
    return age < _OPENING_S or _is_open_here(status) or _is_locked(kept)


def _is_open_here(status: os.stat_result) -> bool:
    for name in os.listdir(_OPEN_FILES):
        with suppress(OSError):  # closed meanwhile, like the one of the listing
            if os.path.samestat(os.fstat(int(name)), status):
                return True
    return False


def _is_locked(path: Path) -> bool:
    try:
        with path.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _numbers(folder: Path) -> Iterator[int]:
    yield from {int(path.stem) for path in folder.glob("*.*") if path.stem.isdecimal()}


def _dropped(folder: Path, number: int) -> set[str]:
    try:
        return set(json.loads(_listed(folder, number).read_text()))
    except (OSError, ValueError):  # as above
        return set()


def _kept(folder: Path, number: int) -> Path:
    return folder / f"{number}.duckdb"


def _listed(folder: Path, number: int) -> Path:
    return folder / f"{number}.json"


def was_catalog(store: Path) -> bool:
    """Whether a catalog was there, parts of which may be left; a folder of that name may also be somebody else's."""
    folder = catalog_folder(store)
    return (folder / "retired").is_dir() or any(manifest_files(folder / "manifests"))


def before_replacing(store: Path) -> None:
    """Keeps the catalog reachable for those who have it open, if the store still is one."""
    folder = catalog_folder(store)
    if any(manifest_files(folder / "manifests")):
        retire(folder / "retired", store, part_files(folder / "parts"))


def after_replacing(store: Path, *, erase: bool) -> None:
    """Removes manifests, parts that nobody reads (with `erase`, all), and folders that become empty."""
    folder = catalog_folder(store)
    for path in manifest_files(folder / "manifests"):
        path.unlink()
    sweep(folder / "parts", folder / "retired", (), erase=erase)
    with suppress(OSError):  # a part is still being read: the next publishing tries again
        for place in [*folder.glob("parts/*"), *folder.glob("*"), folder]:
            place.rmdir()
