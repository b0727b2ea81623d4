"""Matrices of evaluations: every pair corrected by Holm, the best of them, and the cost of a right turn."""

from typing import Any

import pytest

from eval_pipeline.analysis.comparisons.chosen.matrix import OWN_PROMPT, Matrix, figures_of, mark, matrix_of
from eval_pipeline.analysis.comparisons.chosen.references import names_of
from eval_pipeline.analysis.comparisons.pairs import comparison_rows, every_pair
from eval_pipeline.operations.ci.matrix import cell_texts, matrix_markdown
from eval_pipeline_tests.analysis.comparisons.held import reader, side
from eval_pipeline_tests.goldens import golden

(GOLDEN,) = golden("comparison_matrix.yaml")["matrix"]


def matrix(patterns: dict[str, str]) -> tuple[Matrix, list[dict[str, Any]]]:
    sides = [side(name, right, file="f") for name, right in patterns.items()]
    called = names_of([one.known for one in sides])
    names = every_pair(called)
    rows = comparison_rows([(a.evaluated, b.evaluated) for a, b in every_pair(sides)], reader(), names)
    named = [row | {"name_a": a, "name_b": b} for row, (a, b) in zip(rows, names, strict=True)]
    figures = [figures_of(s.known, name, reader().read(s.evaluated)) for name, s in zip(called, sides, strict=True)]
    return matrix_of(figures, named), named


def test_three_prompts_and_four_models_equal_statsmodels() -> None:
    found, rows = matrix(GOLDEN["input"])
    for row, expected in zip(rows, GOLDEN["expected"], strict=True):
        assert (row["model_a"], row["model_b"]) == (expected["a"], expected["b"])
        assert row["p_decisive"] == pytest.approx(expected["p"], rel=1e-9)
        assert row["p_corrected"] == pytest.approx(expected["p_corrected"], rel=1e-9)
    assert (found.tested, len(found.different)) == (
        66,
        sum(expected["p_corrected"] < 0.05 for expected in GOLDEN["expected"]),
    )
    assert list(found.prompts) == [OWN_PROMPT, "terse", "steps"]
    assert list(found.models) == ["haiku (f)", "mini (f)", "opus (f)", "sonnet (f)"]
    assert [mark(found.cells[model, "steps"]) for model in found.models] == ["", "", "*", "="]
    # Sixty turns of half a dollar each.
    assert found.cells["opus (f)", "steps"].figures.usd == 0.5
    assert found.cells["haiku (f)", OWN_PROMPT].figures.usd == pytest.approx(30 / GOLDEN["input"]["haiku"].count("1"))


def test_cells_that_nobody_evaluated_or_tested_say_so() -> None:
    found, _ = matrix({"a": "1" * 12, "b+terse": "1" * 11 + "0"})
    assert [[cell is None for cell in cells] for _, cells in found.rows()] == [[False, True], [True, False]]
    assert cell_texts(None) == ("–",)
    alone, _ = matrix({"a": "1", "b": "0"})
    assert [mark(cell) for cell in alone.cells.values()] == ["*", "?"]
    none, _ = matrix({"a": "0" * 12, "b": "0" * 12})
    assert [(cell.is_best, cell.figures.usd) for cell in none.cells.values()] == [(True, None)] * 2


@pytest.mark.always
def test_the_matrix_as_markdown_has_a_column_for_each_prompt() -> None:
    found, _ = matrix(GOLDEN["input"])
    lines = list(matrix_markdown("small", found))
    assert lines[2] == f"| model version | `{OWN_PROMPT}` | `terse` | `steps` |"
    assert len([line for line in lines if line.startswith("| `")]) == 4
    assert lines[-2].startswith("- and ") == (len(found.different) > 20)
    assert any("better than" in line for line in lines)
