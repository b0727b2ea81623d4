"""Small changes of the code that decides figures."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline_tests.power.changes import changes

FOLDERS = (
    "eval_pipeline_plugins/tracks/*/metrics/*.py",
    "eval_pipeline_plugins/tracks/finqa/programs/matching.py",
    "eval_pipeline/statistics/*.py",
)


@dataclass(frozen=True)
class Mutant:
    """One change of one file; `text` is the whole file with it."""

    file: Path
    line: int
    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def mutants(root: Path) -> list[Mutant]:
    """Every such change of the packages in a folder, in order."""
    files = sorted(file for pattern in FOLDERS for file in root.glob(pattern))
    return [mutant for file in files for mutant in _of_file(root, file)]


def _of_file(root: Path, file: Path) -> Iterator[Mutant]:
    raw = file.read_bytes()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for change in changes(ast.parse(raw)):
        node = change.node
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        new = "pass" if change.new is None else f"({ast.unparse(change.new)})"
        changed = raw[:begin] + new.encode() + raw[end:]
        yield Mutant(file.relative_to(root), node.lineno, change.name, changed.decode())
