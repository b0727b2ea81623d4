"""Several evaluations of a suite at a glance: prompts and model versions, which are the best, and their cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.analysis.comparisons.pairs import Row
from eval_pipeline.analysis.comparisons.references import Side, names_of
from eval_pipeline.analysis.comparisons.scored import ScoredEvaluation, TurnReader
from eval_pipeline.analysis.comparisons.two_figures import NOT_SIGNIFICANT
from eval_pipeline.statistics import Estimate, cost_per_success, estimate_rate

OWN_PROMPT = "suite's own"
"""Heads the column of evaluations without a named prompt."""


@dataclass(frozen=True, slots=True)
class Cell:
    """An evaluation in the matrix; figures are over all of its own scored turns.

    Attributes:
        name: tells the evaluation from the others.
        accuracy: with its clustered interval.
        usd, tokens: cost of one right turn, those of wrong turns included; None if unknown or nothing was right.
        is_best: whether no other has a higher accuracy.
        worse: whether it is significantly worse than the best one, corrected over all pairs; None if not tested.
    """

    side: Side
    name: str
    accuracy: Estimate
    usd: float | None
    tokens: float | None
    is_best: bool
    worse: bool | None


@dataclass(frozen=True, slots=True)
class Matrix:
    """Evaluations of a suite by model version and prompt.

    Attributes:
        cells: every evaluation, by its row and column.
        models, prompts: the rows and columns, in the order given.
        tested: number of pairs with a test.
        different: the comparisons of those that differ significantly after Holm's correction, largest first.
    """

    cells: Mapping[tuple[str, str], Cell]
    models: Sequence[str]
    prompts: Sequence[str]
    tested: int
    different: Sequence[Row]

    def rows(self) -> Iterator[tuple[str, list[Cell | None]]]:
        """Yields each model version with its evaluations by prompt, in the order of `prompts`."""
        for model in self.models:
            yield model, [self.cells.get((model, prompt)) for prompt in self.prompts]

    @property
    def in_order(self) -> list[Cell]:
        """The evaluations, the most accurate first."""
        return sorted(self.cells.values(), key=lambda cell: -(cell.accuracy.mean or 0.0))


def matrix_of(sides: Sequence[Side], rows: Sequence[Row], reader: TurnReader) -> Matrix:
    """Returns the matrix of a suite.

    Args:
        sides: its evaluations.
        rows: the comparisons of all pairs of them, with `name_a` and `name_b`.
        reader: reads their turns.
    """
    names = names_of(sides)
    scored = [reader.read(side.evaluated) for side in sides]
    accuracies = [estimate_rate(one.values["correct"], one.clusters) for one in scored]
    highest = max((found.mean for found in accuracies if found.mean is not None), default=None)
    best = next((name for name, found in zip(names, accuracies, strict=True) if found.mean == highest), "")
    cells = {}
    for side, name, turns, accuracy in zip(sides, names, scored, accuracies, strict=True):
        usd, tokens = (_per_right_turn(turns, cost) for cost in ("usd", "tokens"))
        is_best = accuracy.mean is not None and accuracy.mean == highest
        worse = False if is_best else _is_worse(rows, name, best)
        cells[_place(side, name)] = Cell(side, name, accuracy, usd, tokens, is_best, worse)
    tested = [row for row in rows if row["verdict"] is not None]
    different = [row for row in tested if row["verdict"] != NOT_SIGNIFICANT]
    return Matrix(
        cells,
        list(dict.fromkeys(model for model, _ in cells)),
        list(dict.fromkeys(prompt for _, prompt in cells)),
        len(tested),
        sorted(different, key=lambda row: -abs(row["difference"])),
    )


def _place(side: Side, name: str) -> tuple[str, str]:
    """Returns row and column: of `fake-1+terse (2026-11-27)`, the name without its prompt, and the prompt."""
    if not side.prompt:
        return name, OWN_PROMPT
    return name.replace(f"+{side.prompt}", "", 1), side.prompt


def _per_right_turn(turns: ScoredEvaluation, cost: str) -> float | None:
    return cost_per_success(turns.values[cost], turns.values["correct"]).ratio


def _is_worse(rows: Sequence[Row], name: str, best: str) -> bool | None:
    """Whether one is significantly worse than another; None if they were not tested."""
    for row in rows:
        if {row["name_a"], row["name_b"]} == {name, best}:
            better = "a_better" if row["name_a"] == best else "b_better"
            return None if row["verdict"] is None else bool(row["verdict"] == better)
    return None


def mark(cell: Cell) -> str:
    """Returns the sign of a cell: `*` the best, `=` not significantly worse than it, `?` not tested against it."""
    if cell.is_best:
        return "*"
    return {None: "?", False: "=", True: ""}[cell.worse]


def legend(matrix: Matrix) -> str:
    """Returns a sentence about the signs, and about how many pairs were tested."""
    return (
        "* the best, = not significantly worse than it, ? not tested against it; cost is that of one right turn. "
        f"{len(matrix.different):,} of {matrix.tested:,} tested pairs differ significantly, corrected by Holm over all."
    )


def difference_text(row: Row) -> str:
    """Returns which of a pair is better and by how much; the pair differs significantly."""
    first, second = row["name_a"], row["name_b"]
    better, worse = (second, first) if row["verdict"] == "b_better" else (first, second)
    return f"{better} is better than {worse} by {100 * abs(row['difference']):.1f} points, p {row['p_corrected']:.2g}"
