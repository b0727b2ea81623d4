"""What a materialisation shows: tables as Markdown, bars, charts."""

import base64
from datetime import date
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.defs.assets import previews
from eval_pipeline.defs.assets.describe import shown, workbench
from eval_pipeline.defs.assets.previews import PREVIEWS, bar, cell, charts, count_table, markdown_table, rows_table
from eval_pipeline.judge.judgement import TIMEOUT
from eval_pipeline.store.tables import all_tables
from eval_pipeline.workspace.workspace import StageResult
from eval_pipeline_tests.defs.runs import materialise
from eval_pipeline_tests.support import BROKEN, Lab, Puppet


def test_every_column_that_is_shown_exists() -> None:
    known = {table.name: {column.name for column in table.columns} for table in all_tables(())}
    for name, found in PREVIEWS.items():
        of = known.get(name) or known[f"compared_{name}"]  # of a view, the table behind it
        assert set(found.columns) <= of, name
        assert {found.bar} - {None} <= of, name


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (True, "yes"),
        (12345, "12,345"),
        (0.123456, r"0.1235"),
        (1234567.8, "1,234,568"),
        (date(2026, 3, 1), "2026-03-01"),
        ("a|b\nc", r"a\|b c"),
        ("![x](http://evil)", r"\!\[x\]\(http\://evil\)"),
        ("x" * 100, "x" * 79 + "…"),
    ],
)
def test_a_cell_shows_its_value_and_does_nothing(value: object, shown: str) -> None:
    assert cell(value) == shown


@given(st.text())
def test_no_text_breaks_out_of_its_cell(text: str) -> None:
    bare = cell(text).replace(r"\\", "").replace(r"\|", "")
    assert "|" not in bare
    assert "\n" not in bare


@pytest.mark.parametrize(("share", "shown"), [(0.0, ""), (1.0, "█" * 12), (0.5, "█" * 6), (None, ""), (1.2, "")])
def test_a_bar_is_as_long_as_its_share(share: float | None, shown: str) -> None:
    assert bar(share) == shown


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_has_no_shorter_bar(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert len(bar(low)) <= len(bar(high)) <= 12


def test_counts_are_ordered_by_frequency() -> None:
    lines = count_table(["outcome"], [("ran",), ("failed",), ("ran",), (None,), ("ran",)]).splitlines()
    assert lines[0] == r"| outcome | rows | share |"
    assert [line.split(" | ")[:2] for line in lines[2:]] == [["| ran", "3"], ["| failed", "1"], ["| –", "1"]]
    assert count_table(["outcome"], []) == ""


def test_of_a_judges_error_only_its_kind_is_shown() -> None:
    """The rest quotes what was answered, and Dagster keeps what it shows."""
    shown = previews._KINDS["error"]
    assert shown("LLM judge gave no choice (ValueError: x): zebra (1)") == "LLM judge gave no choice"
    assert [shown(TIMEOUT), shown(None)] == [TIMEOUT, None]


def test_a_long_table_says_how_much_more_there_is() -> None:
    text = markdown_table(["n"], [[str(i)] for i in range(25)])
    assert "| 19 |" in text
    assert "| 20 |" not in text
    assert text.endswith("and 5 more")


def test_only_the_rows_that_are_meant() -> None:
    rows = [{"metric": "correct", "split": split, "mean": 0.5} for split in ("all", "tag")]
    assert len(rows_table(PREVIEWS["statistics"], rows).splitlines()) == 3
    assert rows_table(PREVIEWS["statistics"], rows[1:]) == ""


def test_charts_are_pictures_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert charts(tmp_path) == ""
    (tmp_path / "charts").mkdir()
    for name in ("a-chart", "b-chart"):
        (tmp_path / "charts" / f"{name}.svg").write_text(f"<svg>{name}</svg>")
    first, _, second = charts(tmp_path).partition("\n\n")
    assert first == f"![a chart](data:image/svg+xml;base64,{base64.b64encode(b'<svg>a-chart</svg>').decode()})"
    assert second.startswith("![b chart]")
    monkeypatch.setattr(previews, "MOST_CHART_BYTES", 20)
    assert charts(tmp_path) == first


def test_materialisations_show_tables_tokens_and_dollars(
    small: Lab, instance: dg.DagsterInstance, puppet: type[Puppet]
) -> None:
    small.versions({"name": "puppet", "provider": "puppet", "price": {"input": 10, "output": 100}})
    puppet.answer = staticmethod(
        lambda call: BROKEN if call.turn_index and not call.number else str(call.gold.oracle())
    )
    result = materialise(small, instance)
    shown = {
        event.asset_key.path[-1]: event.step_materialization_data.materialization.metadata
        for event in result.get_asset_materialization_events()
    }
    generations = shown["generations"]
    assert (generations["input_tokens"].value, generations["output_tokens"].value) == (300, 30)
    assert generations["usd"].value == pytest.approx((300 * 10 + 30 * 100) / 1e6)
    assert shown["recovery_attempts"]["input_tokens"].value == 100
    assert shown["turn_metrics"]["input_tokens"].value == 400
    for name in ("generations", "recovery_attempts", "turn_metrics", "statistics", "cost_per_correct_answer"):
        table = shown[name]["table"]
        assert isinstance(table, dg.MarkdownMetadataValue)
        assert table.value.startswith("| ")
    assert r"| failed | syntax\_error | 1 | ████ |" in str(generations["table"].value)
    assert "| correct | 3 | 100% |" in str(shown["statistics"]["table"].value)


def test_what_is_handed_on_is_linked_to_the_workbench(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = small.inputs()
    stages = {name: stage_of(inputs.track, name) for name in ("published", "report", "trends", "generations")}
    monkeypatch.delenv("EVAL_VIEW_URL", raising=False)
    assert {workbench(stage, inputs) for stage in stages.values()} == {None}
    monkeypatch.setenv("EVAL_VIEW_URL", "https://evals.example.org/")
    turns = "https://evals.example.org/suites/small/turns?model_version=puppet&eval_date=2026-03-01"
    assert {name: workbench(stage, inputs) for name, stage in stages.items()} == {
        "published": turns,
        "report": turns,
        "trends": "https://evals.example.org/suites/small/compare",
        "generations": None,
    }
    told = shown(stages["published"], inputs, StageResult(1, "hash", False, {}))
    assert told["workbench"] == dg.MetadataValue.url(turns)
