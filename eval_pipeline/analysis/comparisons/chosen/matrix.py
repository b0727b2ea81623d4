"""Several evaluations of a suite at a glance: prompts and model versions, which are the best, and their cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.analysis.comparisons.chosen.references import KnownEvaluation
from eval_pipeline.analysis.comparisons.pairs import Row
from eval_pipeline.analysis.comparisons.scored import ScoredEvaluation
from eval_pipeline.analysis.comparisons.two_figures import NOT_SIGNIFICANT
from eval_pipeline.core import shown
from eval_pipeline.statistics.cost import cost_per_success
from eval_pipeline.statistics.intervals import estimate_rate

_NAMES = ("name_a", "name_b")
OWN_PROMPT = "suite's own"
"""Heads the column of evaluations without a named prompt."""


@dataclass(frozen=True, slots=True)
class EvaluationFigures:
    """Figures of an evaluation over all of its own scored turns.

    Attributes:
        name: tells the evaluation from the others.
        scored: turns with a verdict of which accuracy is the rate; None if it is an estimate for others too.
        accuracy, low, high: with its clustered interval; None if unknown.
        usd, tokens: cost of one right turn, those of wrong turns included; None if unknown or nothing was right.
    """

    known: KnownEvaluation
    name: str
    scored: int | None
    accuracy: float | None
    low: float | None
    high: float | None
    usd: float | None
    tokens: float | None


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """An evaluation in the matrix.

    Attributes:
        figures: its figures.
        is_best: whether no other has a higher accuracy; where one was asked the whole suite, only of those.
        worse: whether it is significantly worse than the best one, corrected over all pairs; None if not tested.
    """

    figures: EvaluationFigures
    is_best: bool
    worse: bool | None


@dataclass(frozen=True, slots=True)
class Matrix:
    """Evaluations of a suite by model version and prompt.

    Attributes:
        cells: every evaluation, by its row and column.
        models, prompts: the rows and columns, in the order given.
        tested: number of pairs with a test.
        different: the comparisons of those that differ significantly after Holm's correction: first those of one model
            version with two prompts, then the others, each beginning with the largest difference.
    """

    cells: Mapping[tuple[str, str], MatrixCell]
    models: Sequence[str]
    prompts: Sequence[str]
    tested: int
    different: Sequence[Row]

    def rows(self) -> Iterator[tuple[str, list[MatrixCell | None]]]:
        """Yields each model version with its evaluations by prompt, in the order of `prompts`."""
        for model in self.models:
            yield model, [self.cells.get((model, prompt)) for prompt in self.prompts]


def figures_of(known: KnownEvaluation, name: str, turns: ScoredEvaluation) -> EvaluationFigures:
    """Returns the figures of an evaluation from its turns."""
    found = estimate_rate(turns.values["correct"], turns.clusters)
    usd, tokens = (cost_per_success(turns.values[cost], turns.values["correct"]).ratio for cost in ("usd", "tokens"))
    return EvaluationFigures(known, name, found.n, found.mean, found.low, found.high, usd, tokens)


def matrix_of(figures: Sequence[EvaluationFigures], rows: Sequence[Row]) -> Matrix:
    """Returns the matrix of a suite.

    Args:
        figures: those of each of its evaluations.
        rows: the comparisons of all pairs of them, with `name_a` and `name_b`.
    """
    known = [found for found in figures if found.accuracy is not None]
    ranked = [found for found in known if found.known.is_full] or known
    highest = max((found.accuracy or 0.0 for found in ranked), default=None)
    bests = [found.name for found in ranked if found.accuracy == highest]
    cells = {}
    for found in figures:
        is_best = found.name in bests
        cells[_place(found)] = MatrixCell(found, is_best, False if is_best else _is_worse(rows, found.name, *bests[:1]))
    rows_of = {cell.figures.name: model for (model, _), cell in cells.items()}
    tested = [row for row in rows if row["verdict"] is not None]
    different = [row for row in tested if row["verdict"] != NOT_SIGNIFICANT]
    return Matrix(
        cells,
        list(dict.fromkeys(model for model, _ in cells)),
        list(dict.fromkeys(prompt for _, prompt in cells)),
        len(tested),
        sorted(different, key=lambda row: (len({rows_of[row[name]] for name in _NAMES}), -abs(row["difference"]))),
    )


def _place(found: EvaluationFigures) -> tuple[str, str]:
    """Returns row and column: of `fake-1+terse (2026-11-27)`, the name without its prompt, and the prompt."""
    prompt = found.known.prompt
    return (found.name.replace(f"+{prompt}", "", 1), prompt) if prompt else (found.name, OWN_PROMPT)


def _is_worse(rows: Sequence[Row], name: str, best: str = "") -> bool | None:
    """Whether one is significantly worse than another; None if they were not tested."""
    for row in rows:
        if {row["name_a"], row["name_b"]} == {name, best}:
            better = "a_better" if row["name_a"] == best else "b_better"
            return None if row["verdict"] is None else bool(row["verdict"] == better)
    return None


def mark(cell: MatrixCell) -> str:
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
    by = shown.points(abs(row["difference"])).removeprefix("+")
    return f"{better} is better than {worse} by {by} points, p {shown.p_value(row['p_corrected'])}"
