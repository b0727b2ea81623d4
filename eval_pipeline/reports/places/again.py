"""Copies files of an earlier night's report where nothing but the date differs."""

import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import pyarrow as pa

from eval_pipeline.core.hashing.described import installed
from eval_pipeline.reports.places.folder import made_before
from eval_pipeline.reports.places.links import view_url

_WRITERS = ("duckdb", "jinja2", "lxml", "numpy", "openpyxl", "pillow", "pyarrow", "resvg-py")
_DATED = frozenset({".html", ".json"})


def told_but_for(day: date, facts: Any, tables: Mapping[str, pa.Table]) -> str:
    """Returns a hash of all that a report tells, and of the packages that write it, but for its date.

    Empty where the date stands in a text, too, since what is copied has another one wherever the date stands.

    Args:
        day: the date; other dates count, and whether they are later.
        facts: all that the report tells and that is in no table, as plain values and dates.
        tables: the rows that it tells, by names of tables.
    """
    told = [repr([view_url(), installed(_WRITERS), _but_for(day, facts)]).encode()]
    for name, rows in tables.items():
        dated = [field.name for field in rows.schema if pa.types.is_temporal(field.type)]
        dates = {column: _but_for(day, rows[column].unique().to_pylist()) for column in dated}
        if any(len(found) > 1 for found in dates.values()):
            dates = {column: _but_for(day, rows[column].to_pylist()) for column in dated}
        told.append(repr([name, str(rows.schema), dates]).encode())
        told += (batch.serialize().to_pybytes() for batch in rows.drop_columns(dated).to_batches())
    if any(day.isoformat().encode() in one for one in told):
        return ""
    digest = hashlib.sha256()
    for one in told:
        digest.update(one)
    return digest.hexdigest()


def _but_for(day: date, value: Any) -> Any:
    """Returns a value as plain data in which the date has no name."""
    if isinstance(value, Mapping):
        return [[key, _but_for(day, one)] for key, one in value.items()]
    if isinstance(value, list | tuple):
        return [_but_for(day, one) for one in value]
    if isinstance(value, date):
        return "the day" if value == day else [str(value), str(value) > day.isoformat()]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def copied(folder: Path, names: Sequence[str], told: str, day: date) -> bool:
    """Whether files of the report that is being written into a folder could be copied from the one before.

    Args:
        folder: the folder, which `make_folder` builds.
        names: the files, or folders of files.
        told: what `told_but_for` returns; nothing is copied if it is empty.
        day: the date of the report.
    """
    parts = {name: made_before(folder, name, told) for name in names if told}
    with suppress(OSError, ValueError):  # somebody is just removing that night, or has changed it
        for name, part in parts.items():
            if part is None:
                return False
            if not part.files:
                (folder / name).mkdir(exist_ok=True)
            was = date.fromisoformat(part.folder.name[: len("2026-01-01")]).isoformat()
            for file in part.files:
                (folder / file).parent.mkdir(exist_ok=True)
                _copy(part.content(file), folder / file, was, day.isoformat())
        return bool(parts)
    return False


def _copy(found: bytes, target: Path, was: str, now: str) -> None:
    if target.suffix == ".xlsx":
        _copy_book(found, target, was, now)
        return
    told = _dated(found, was, now)
    if told != found and target.suffix not in _DATED:
        raise ValueError(f"{target.name} shows the date, which may be drawn as well")
    target.write_bytes(told)


def _dated(found: bytes, was: str, now: str) -> bytes:
    """Returns a text with another date. Raises ValueError if a part of it stands alone, as where a text is cut."""
    begun, ended = _parts_of(was)
    several = found.count(was[4:].encode()) != found.count(was.encode())  # mostly of other years
    if was[:4] != now[:4] or begun.search(found) or (several and ended.search(found)):
        raise ValueError(f"a part of {was} stands alone")
    return found.replace(was.encode(), now.encode())


@cache
def _parts_of(day: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Returns patterns of the year and what follows of the day, but not all, and of the rest of a day cut earlier."""
    rest = ""
    for character in reversed(day[5:9]):
        rest = f"(?:{character}{rest})?"
    begun, ended = f"{day[:5]}{rest}(?![0-9-])", f"(?<![0-9-])(?:{day[1:4]}|{day[2:4]}|{day[3]})?{day[4:]}"
    return re.compile(begun.encode()), re.compile(ended.encode())


def _copy_book(book: bytes, target: Path, was: str, now: str) -> None:
    """Copies a workbook; parts without the date are copied as they are compressed."""
    with ZipFile(io.BytesIO(book)) as before, ZipFile(target, "w") as after:
        entries = before.infolist()
        ends = [*(entry.header_offset for entry in entries[1:]), before.start_dir]
        for entry, end in zip(entries, ends, strict=True):
            found = before.read(entry)
            if (told := _dated(found, was, now)) != found:
                fresh = ZipInfo(entry.filename, entry.date_time)
                fresh.compress_type = entry.compress_type
                after.writestr(fresh, told)
            else:
                _append(after, entry, book[entry.header_offset : end])


def _append(archive: Any, entry: ZipInfo, written: bytes) -> None:
    """Adds an entry as another archive has it, with its header."""
    archive.fp.seek(archive.start_dir)
    entry.header_offset = archive.fp.tell()
    archive.fp.write(written)
    archive.start_dir = archive.fp.tell()
    archive.filelist.append(entry)
    archive.NameToInfo[entry.filename] = entry
    archive._didModify = True
