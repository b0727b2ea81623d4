"""A matrix of model versions and prompts as Markdown."""

from collections.abc import Iterator, Sequence

from eval_pipeline.analysis.comparisons.chosen.matrix import Matrix, MatrixCell, difference_text, legend, mark
from eval_pipeline.core import shown
from eval_pipeline.operations.ci.markdown import bullets, code, table, words

MOST_PAIRS = 20
"""How many of the pairs that differ are listed."""


def cell_texts(cell: MatrixCell | None) -> Sequence[str]:
    """Returns accuracy with its sign, its interval, and the cost of a right turn; a dash for no evaluation."""
    if cell is None or cell.figures.accuracy is None:
        return (shown.UNKNOWN,)
    found = cell.figures
    accuracy = shown.rate(found.accuracy, found.low, found.high)
    ends = shown.interval_or_counts(found.accuracy, found.scored, found.low, found.high)
    used = f"{shown.tokens(found.tokens)} tokens" if found.tokens else ""
    cost = used if found.usd is None else shown.dollars(found.usd)
    return [text for text in (f"{mark(cell)} {accuracy}".strip(), ends, cost) if text]


def matrix_markdown(suite: str, matrix: Matrix) -> Iterator[str]:
    """Yields the lines of a suite's matrix: model versions down, prompts across."""
    yield f"### {code(suite)}"
    yield ""
    heads = [code(prompt) for prompt in matrix.prompts] if len(matrix.prompts) > 1 else ["accuracy, cost"]
    rows = [
        [code(model), *("<br>".join(map(words, cell_texts(cell))) for cell in cells)] for model, cells in matrix.rows()
    ]
    yield from table(["model version", *heads], rows)
    yield ""
    yield words(legend(matrix))
    if matrix.different:
        yield ""
        yield from bullets([words(difference_text(row)) for row in matrix.different], MOST_PAIRS)
    yield ""
