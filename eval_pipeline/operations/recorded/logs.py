"""Reads other tools' logs as recorded answers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.arms_length import at_arms_length
from eval_pipeline.core.reading.foreign import lines_of
from eval_pipeline.operations.recorded.entries import Entry
from eval_pipeline.operations.recorded.forms import ALL_LOGS

LogReader = Callable[[Path], Iterator[Entry]]


def read_log(form: str, source: Path) -> list[Entry]:
    """Returns the answers in a log, which is read in a child process, as it may crash its parser.

    Raises:
        UsageError: there is no such file.
        InputError: the log does not have that format.
        MissingExtraError: a required package is not installed.
    """
    if not source.is_file() and not (ALL_LOGS.get(form).folders and source.is_dir()):
        raise UsageError(f"no file {source}")
    with TemporaryDirectory() as folder:
        made = Path(folder) / "entries.jsonl"
        at_arms_length(_read_there, [form, str(source), str(made)], [source])
        return [_entry(json.loads(line)) for line in lines_of(made)]


def _read_there(form: str, source: str, made: str) -> None:
    reader: LogReader = ALL_LOGS.load(form, ALL_LOGS.get(form).place)
    with Path(made).open("w", encoding="utf-8") as file:
        file.writelines(json_text(asdict(entry)) + "\n" for entry in reader(Path(source)))


def _entry(told: dict[str, Json]) -> Entry:
    return Entry(**{**told, "conversation": tuple(told["conversation"])})
