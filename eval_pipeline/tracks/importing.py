"""What imports of foreign data sets tell: where in the user's files cases come from, notes, and what was left out."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json

_ORIGINS_FILE = "import_origins.txt"


class PlacedCase(dict[str, Json]):
    """A case with its place in the data set: its line, or the path of its entry, e.g. `dev.3`."""

    def __init__(self, case: Mapping[str, Json], where: str = "", line: int | None = None) -> None:
        super().__init__(case)
        self.where, self.line = where, line


def add_origin(folder: Path, copy: Path, origin: Path) -> None:
    """Notes which file of the user a file of the suite is a copy of."""
    with (folder / _ORIGINS_FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps([copy.relative_to(folder).as_posix(), str(origin)]) + "\n")


def take_origins(folder: Path) -> dict[str, str]:
    """Returns the origins by path below the folder, and removes their file."""
    path = folder / _ORIGINS_FILE
    if not path.is_file():
        return {}
    found = dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    path.unlink()
    return found


class UsersFiles:
    """Translates problems with a suite that is being made into problems with the user's files.

    Attributes:
        cases: the cases, in the order of the lines of the suite's file.
    """

    def __init__(self, made: Path, cases_file: str, source: Path) -> None:
        self._made, self._source = made, source
        # The suite's own files are named below its folder, others (structures, tables) by their whole path.
        self._below = re.compile(rf"(?:{re.escape(f'{made.parent}/')})?\b{re.escape(made.name)}/([^\s:'\",]+)")
        self._line_of_cases = re.compile(rf"\b{re.escape(f'{made.name}/{cases_file}')}:(\d+)")
        self._cases_file = f"{made.name}/{cases_file}"
        self.cases: Sequence[Mapping[str, Json]] = ()
        self._origins: dict[str, str] = {}

    @contextmanager
    def named(self) -> Iterator[None]:
        """Raises the InputError of its block with the places that the user knows."""
        try:
            yield
        except InputError as error:
            self.take_origins()
            raise InputError(map(self.told, error.problems)) from error

    def take_origins(self) -> None:
        """Reads what importers noted with `add_origin`, and removes their file."""
        self._origins |= take_origins(self._made)

    def told(self, problem: Problem) -> Problem:
        """Returns the problem with the place that the user knows."""
        message = self._line_of_cases.sub(lambda found: self._where(int(found[1])), problem.message)
        message = self._below.sub(lambda found: self._origin(found[0], found[1]), message)
        if problem.file != self._cases_file:
            within = self._below.fullmatch(problem.file)
            file = problem.file if within is None else self._origin(problem.file, within[1])
            return Problem(file, problem.line, problem.field, message)
        if problem.line is None or problem.line > len(self.cases):
            return Problem(str(self._source), None, problem.field, message)
        case = self.cases[problem.line - 1]
        if not isinstance(case, PlacedCase):
            return Problem(str(self._source), None, problem.field, f"{message} (case '{case.get('id')}')")
        field = ".".join(filter(None, (case.where, problem.field)))
        return Problem(str(self._source), case.line, field, message)

    def _where(self, number: int) -> str:
        case = self.cases[number - 1] if number <= len(self.cases) else {}
        if isinstance(case, PlacedCase):
            return case.where or f"line {case.line}"
        return f"case {number}"

    def _origin(self, path: str, below: str) -> str:
        """Returns the user's file for a path, which may go on within an archive; for a file that was made, its path."""
        for copy, origin in self._origins.items():
            if below == copy or below.startswith(f"{copy}/"):
                return origin + below.removeprefix(copy)
        return f"{self._made.name}/{below}" if str(self._made.parent) in path else path


NOTES_FILE = "import_notes.txt"
_OPTIONS_FILE = "import_options.json"
_LEFT_OUT_FILE = "import_left_out.jsonl"


def add_import_notes(folder: Path, sentences: Iterable[str]) -> None:
    """Adds sentences, each on its own line; without any, no file is made."""
    lines = [f"{' '.join(sentence.split())}\n" for sentence in sentences]
    if lines:
        with (folder / NOTES_FILE).open("a", encoding="utf-8") as file:
            file.writelines(lines)


def import_notes(folder: Path) -> list[str]:
    """Returns the sentences that importers noted; none if there is no such file."""
    path = folder / NOTES_FILE
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def add_import_options(folder: Path, options: Mapping[str, Json]) -> None:
    """Keeps options for the `suite.yaml` of the suite that is being made in a folder; called once."""
    if options:
        (folder / _OPTIONS_FILE).write_text(json.dumps(dict(options)), encoding="utf-8")


def take_import_options(folder: Path) -> dict[str, Json]:
    """Returns the options that an importer kept, and removes their file; empty if there are none."""
    path = folder / _OPTIONS_FILE
    if not path.is_file():
        return {}
    options: dict[str, Json] = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return options


def leave_out(folder: Path, name: str, why: str) -> None:
    """Notes an entry of a data set that cannot be a case."""
    with (folder / _LEFT_OUT_FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps([name, why]) + "\n")


def take_left_out(folder: Path) -> dict[str, str]:
    """Returns why entries are no cases, by name, and removes their file."""
    path = folder / _LEFT_OUT_FILE
    if not path.is_file():
        return {}
    found = dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    path.unlink()
    return found
