"""The page with the newest evaluations of a suite by model version and prompt, and the pairs that differ."""

from starlette.responses import Response

from eval_pipeline.analysis.comparisons.chosen.matrix import (
    EvaluationFigures,
    Matrix,
    MatrixCell,
    legend,
    mark,
    matrix_of,
)
from eval_pipeline.analysis.comparisons.chosen.references import KnownEvaluation
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.comparison.differing import sides_of_pair
from eval_pipeline.reports.places.links import compare_path
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.evaluation import model_versions_of, scope_of
from eval_pipeline.view.page import NotFoundError, Page, Visit
from eval_pipeline.view.published import Row, StoreView

_FIGURES = """
SELECT d.model_version, d.eval_date, d.scope, if(d.sampled, NULL, d.scored) AS scored, d.accuracy, d.low, d.high,
    v.settings ->> '$.suite_prompt' AS prompt,
    c.usd_per_correct_turn AS usd, c.tokens_per_correct_turn AS tokens
FROM leaderboard_details({suite}) AS d
LEFT JOIN cost_per_correct_answer AS c USING (suite, model_version, eval_date)
LEFT JOIN model_versions AS v ON v.model_version = d.model_version
ORDER BY d.scope IS NOT DISTINCT FROM 'full' DESC, d.model_version
"""


def _respond(visit: Visit) -> Response:
    if not model_versions_of(visit.look, visit.suite):
        raise NotFoundError(f"the store has no evaluation of a suite '{visit.suite}'")
    found = visit.look.remembered(("matrix", visit.suite), lambda: _matrix(visit.look, visit.suite))
    best = next((cell for cell in found.cells.values() if cell.is_best), None)

    def beside_best(cell: MatrixCell) -> str:
        if best is None or cell.is_best:
            return ""
        sides = [_place(visit.suite, one) for one in (best, cell)]
        same = len({scope_of(visit.look, side) for side in sides}) == 1
        return compare_path(sides) if same else ""

    return visit.page(
        "matrix.html.j2",
        f"{'Prompts and model' if len(found.prompts) > 1 else 'Model'} versions on {visit.suite}",
        matrix=found,
        legend=legend(found),
        mark=mark,
        place=lambda cell: _place(visit.suite, cell),
        beside_best=beside_best,
        beside=lambda row: compare_path(sides_of_pair(visit.suite, row)),
    )


def _matrix(look: StoreView, suite: str) -> Matrix:
    """Returns the matrix of what is published: every pair is corrected for all pairs of the suite."""
    figures = [_figures(row) for row in look.rows(_FIGURES.format(suite=text(suite)))]
    shown = {found.name for found in figures}
    pairs = look.rows("SELECT *, model_a AS name_a, model_b AS name_b FROM model_comparisons WHERE suite = ?", [suite])
    return matrix_of(figures, [row for row in pairs if {row["name_a"], row["name_b"]} <= shown])


def _figures(row: Row) -> EvaluationFigures:
    name = row["model_version"]
    known = KnownEvaluation(name, row["eval_date"], row["scope"] == "full", prompt=row["prompt"] or "")
    return EvaluationFigures(
        known, name, *(row[column] for column in ("scored", "accuracy", "low", "high", "usd", "tokens"))
    )


def _place(suite: str, cell: MatrixCell) -> Partition:
    known = cell.figures.known
    return Partition(suite, known.model_version, known.eval_date)


PAGES = (Page("/suites/{suite}/matrix", _respond),)
