"""Small changes of the code that decides figures: every number, comparison and arithmetic sign, changed by one."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDERS = (
    "eval_pipeline_plugins/tracks/*/metrics/*.py",
    "eval_pipeline_plugins/tracks/finqa/programs/matching.py",
    "eval_pipeline/statistics/*.py",
)
_COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*"}


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
    text = file.read_text()
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = text.encode()

    def place(line: int | None, column: int | None) -> int:
        return starts[(line or 1) - 1] + (column or 0)

    for node in ast.walk(ast.parse(text)):
        for found in _changes(node):
            begin, end = place(*found.begin), place(*found.end)
            old = raw[begin:end].decode()
            if "(" in old or ")" in old or "#" in old:  # brackets between the two sides: left alone
                continue
            changed = raw[:begin] + f" {found.new} ".encode() + raw[end:]
            what = f"{old.strip()} becomes {found.new}"
            yield Mutant(file.relative_to(root), found.begin[0] or 0, what, changed.decode())


@dataclass(frozen=True)
class Change:
    """What to put between two places, each a line from 1 and a column from 0."""

    begin: tuple[int | None, int | None]
    end: tuple[int | None, int | None]
    new: str


def _changes(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Constant) and type(node.value) in {int, float}:
        yield Change((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), repr(node.value + 1))
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        yield _between(node.left, node.comparators[0], _COMPARISONS[type(node.ops[0])])
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _is_text(node):
        yield _between(node.left, node.right, _ARITHMETIC[type(node.op)])


def _is_text(node: ast.expr) -> bool:
    """Whether texts are put together: with another sign nothing would run, and so no figure could change."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _between(left: ast.expr, right: ast.expr, new: str) -> Change:
    return Change((left.end_lineno, left.end_col_offset), (right.lineno, right.col_offset), new)
