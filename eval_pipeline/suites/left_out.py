"""Cases of a suite's files that are not evaluated, and the file in which an importer keeps those that it left out."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from eval_pipeline.core.covering.left_out import UNREADABLE, WRONG, WRONG_GOLD
from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.reading.complaints import complaints
from eval_pipeline.core.reading.entries import FileEntry, problem_at, read_entries
from eval_pipeline.suites.headers import LEFT_OUT_FILE


@dataclass(frozen=True, slots=True)
class LeftOutCase:
    """A case that is not evaluated, as a row of `left_out_cases`.

    Attributes:
        line: where the case begins; None if the file could not be read at all.
        case_id: None if it could not be read.
        cause: `WRONG`, `UNREADABLE` or `WRONG_GOLD`.
        why: its first problem.
    """

    file: str
    line: int | None
    case_id: str | None
    cause: str
    why: str


class LeftOutAtImport(BaseModel):
    """A line of the file: a case whose gold did not hold, and why not."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    case_id: str
    why: str


def wrong_case(entry: FileEntry, problems: Iterable[Problem]) -> LeftOutCase:
    """Returns the case of an entry that could not be used, for the first of its problems.

    Of the path of a field only the last name is kept: paths are too long for a sentence, and `case_problems` has them.
    """
    name = entry.raw.get("id") if isinstance(entry.raw, Mapping) else None
    first, *others = problems
    more = f" (and {len(others)} more problem{'s' * (len(others) > 1)} of this case)" if others else ""
    field = next((part for part in reversed(first.field.split(".")) if not part.isdigit()), "")
    why = f"{replace(first, field=field)}{more}"
    return LeftOutCase(entry.file, entry.line, name if isinstance(name, str) else None, WRONG, why)


def unread_entry(problem: Problem) -> LeftOutCase:
    """Returns the case in whose place there is a problem: a line of a `.jsonl` file, or else a whole file."""
    cause = WRONG if problem.line is not None and problem.file.endswith(".jsonl") else UNREADABLE
    return LeftOutCase(problem.file, problem.line, None, cause, str(problem))


def write_left_out(folder: Path, found: Iterable[LeftOutAtImport]) -> None:
    """Writes the file of an imported suite; without any case, none is made."""
    lines = [canonical_json(one.model_dump()) + "\n" for one in found]
    if lines:
        (folder / LEFT_OUT_FILE).write_text("".join(lines), encoding="utf-8")


def read_left_out(folder: Path) -> Iterator[LeftOutCase]:
    """Yields the cases in the file, if the suite has one. Raises InputError with the line and field that are wrong."""
    path = folder / LEFT_OUT_FILE
    if not path.is_file():
        return
    name = path.relative_to(folder.parent).as_posix()
    for entry in read_entries(path, name):
        if isinstance(entry, Problem):
            raise InputError([entry])
        try:
            found = LeftOutAtImport.model_validate(entry.raw)
        except ValidationError as error:
            raise InputError([problem_at(entry, place, told) for place, told in complaints(error)]) from error
        yield LeftOutCase(name, entry.line, found.case_id, WRONG_GOLD, found.why)
