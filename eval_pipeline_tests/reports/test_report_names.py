"""Names of files, folders and means."""

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.paths import report_folder, safe_name, trace_file
from eval_pipeline.reports.profile import mean_name


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))))
def test_a_name_is_one_part_of_a_path_that_any_system_takes(name: str) -> None:
    safe = safe_name(name)
    assert safe
    assert len(safe) <= 200
    assert safe not in (".", "..")
    assert not safe.startswith(".")
    assert not set(safe) & set('/\\:*?"<>| \n\0')


@given(st.lists(st.text(max_size=300), unique=True, max_size=5))
def test_different_names_stay_different(names: list[str]) -> None:
    kept = [name for name in names if name.isprintable()]
    assert len({safe_name(name) for name in kept}) == len(kept)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("Single_JKHY/2009/page_28.pdf-3", "Single_JKHY%2F2009%2Fpage_28.pdf-3"),
        ("..", "%2E."),
        ("gpt-5.2@low+tools", "gpt-5.2@low+tools"),
        ("a:b c", "a%3Ab%20c"),
    ],
)
def test_examples(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_where_a_report_lies() -> None:
    partition = Partition("finqa/x", "model:1", date(2026, 1, 5))
    assert report_folder(Path("/r"), partition) == Path("/r/finqa%2Fx/model%3A1/2026-01-05")
    assert trace_file("a/b") == "traces/a%2Fb.json"


@pytest.mark.parametrize(
    ("metric", "kind", "mean"),
    [
        ("soft_match", "boolean", "soft_match_accuracy"),
        ("has_error", "boolean", "has_error_share"),
        ("recovery_success", "boolean", "recovery_success_share"),
        ("recovery_success_rate", "score", "avg_recovery_success_rate"),
        ("logic_recall", "score", "avg_logic_recall"),
        ("operations_per_turn", "count", "avg_operations_per_turn"),
    ],
)
def test_names_of_means(metric: str, kind: str, mean: str) -> None:
    assert mean_name(metric, kind) == mean
