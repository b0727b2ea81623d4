"""Texts of reports: names of files and means, links, numbers, labels as a matrix, cells, JSON that people can read."""

import json
import math
import re
import string
from datetime import date
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.contents.figures import MOST_LABELS, NO_LABEL, Figure, confusion_of, turns_of
from eval_pipeline.reports.excel.book import MOST, cell_text, looks_like_formula
from eval_pipeline.reports.files.json_text import part, parts, readable_json
from eval_pipeline.reports.places.links import VIEW_URL, compare_path, evaluation_path, linked, suite_path, view_url
from eval_pipeline.reports.places.paths import report_folder, safe_name, trace_file
from eval_pipeline.reports.profile import mean_name
from eval_pipeline.view.filtering.filter import Condition, filter_of


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))))
def test_a_name_is_one_part_of_a_path_that_any_system_takes(name: str) -> None:
    safe = safe_name(name)
    assert 0 < len(safe) <= 200
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


def test_where_a_report_and_a_page_of_the_workbench_lie() -> None:
    partition = Partition("finqa/x", "model:1", date(2026, 1, 5))
    assert report_folder(Path("/r"), partition) == Path("/r/finqa%2Fx/model%3A1/2026-01-05")
    assert trace_file("a/b") == "traces/a%2Fb.json"
    assert compare_path([A, B], {"group": "rw", "q": ""}) == (
        "/suites/s/compare?versions=a%401,b%2Bc&eval_dates=2026-03-01,2026-03-02&group=rw"
    )
    assert evaluation_path(B) == "/suites/s/turns?model_version=b%2Bc&eval_date=2026-03-02"


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


A, B = Partition("s", "a@1", date(2026, 3, 1)), Partition("s", "b+c", date(2026, 3, 2))


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("", ""),
        ("https://evals.example.org/", "https://evals.example.org"),
        (" http://here:3100 ", "http://here:3100"),
        ("javascript:alert(1)", ""),
        ("evals.example.org", ""),
    ],
)
def test_an_address_is_whole_where_somebody_said_which(
    said: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VIEW_URL, said)
    assert view_url() == address
    assert linked(suite_path("s")) == f"{address}/suites/s/compare"


def test_a_rate_of_a_table_of_its_own_leads_to_its_turns() -> None:
    apart = {"right_by_inspect": "tools", "read_otherwise": "tools", "other": "more"}
    evaluation: Any = SimpleNamespace(
        partition=Partition("moods", "m", date(2026, 1, 2)), profile=SimpleNamespace(apart=apart)
    )
    figure = partial(Figure, "read_otherwise", "read_otherwise", value=0.5, low=None, high=None)
    path = turns_of(evaluation, figure(unit="rate"))
    assert path == (
        "/suites/moods/turns?model_version=m&eval_date=2026-01-02"
        "&column=read_otherwise&is=is&value=yes&show=right_by_inspect"
    )
    found = filter_of(QueryParams(path.partition("?")[2]), dict.fromkeys(apart))
    assert (found.conditions, found.columns) == (
        (Condition("read_otherwise", "is", "yes"),),
        ("right_by_inspect",),
    )
    assert turns_of(evaluation, figure(unit="score")) == ""


def row(expected: str, said: str | None, turns: int) -> dict[str, Any]:
    return {"expected_label": expected, "answer_label": said, "turns": turns}


def test_rows_become_a_matrix_unless_there_are_none_or_too_many_labels() -> None:
    found = confusion_of([row("b", "b", 2), row("a", "b", 1), row("a", "a", 3), row("a", None, 1), row("b", "c", 4)])
    assert found.given == ("a", "b", "c", NO_LABEL)
    assert found.rows == (("a", (3, 1, 0, 1), 5), ("b", (0, 2, 4, 0), 6))
    assert confusion_of([]) is None
    assert confusion_of([row(f"{i}", f"{i}", 1) for i in range(MOST_LABELS)]) is not None
    assert confusion_of([row(f"{i}", f"{i}", 1) for i in range(MOST_LABELS + 1)]) is None


LABELS = st.sampled_from("abcd")


@given(st.dictionaries(st.tuples(LABELS, LABELS | st.none()), st.integers(1, 9), min_size=1))
def test_no_turn_is_lost(pairs: dict[tuple[str, str | None], int]) -> None:
    found = confusion_of([row(*labels, turns) for labels, turns in pairs.items()])
    assert sum(total for _, _, total in found.rows) == sum(pairs.values())
    for label, counts, _ in found.rows:
        for said, turns in zip(found.given, counts, strict=True):
            assert pairs.get((label, None if said == NO_LABEL else said), 0) == turns


_LEGAL = re.compile("[\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_becomes_one_that_xml_can_hold(text: str) -> None:
    assert _LEGAL.fullmatch(cell_text(text))


@given(st.text(alphabet=string.printable.replace("\r", "").replace("\x0b", "").replace("\x0c", "").replace("_", "")))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert cell_text(text) == text


@given(st.text(alphabet="a\U0001f600_x0F\n", min_size=0, max_size=30), st.integers(0, 5000))
def test_no_text_is_longer_than_a_cell_holds(text: str, times: int) -> None:
    assert len(cell_text(text * times).encode("utf-16-le")) // 2 <= MOST


@given(st.text(alphabet="_x0041F5", max_size=40))
def test_what_excel_would_decode_is_escaped(text: str) -> None:
    decoded = re.sub(r"_x([0-9A-Fa-f]{4})_", lambda match: chr(int(match[1], 16)), cell_text(text))
    assert decoded == text


def test_texts_like_formulas_are_known() -> None:
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "=", "=cmd|' /C calc'!A0"]
    others = ["", "1", "a=b", " =1", "#0", "'=1"]
    assert [text for text in formulas + others if looks_like_formula(text)] == formulas


def test_cuts_are_noted_and_break_neither_a_pair_nor_an_escape() -> None:
    assert cell_text("a\r\nb\rc") == "a\nb\nc"
    assert looks_like_formula(cell_text("\r=1"))
    cut, _, note = cell_text("\U0001f600" * 20_000).partition(" … ")
    assert set(cut) == {"\U0001f600"}
    assert "40,000 characters" in note
    assert cell_text("a" * MOST) == "a" * MOST
    assert cell_text("a" * (MOST + 1)) != "a" * (MOST + 1)
    for lead in range(8):
        kept = cell_text("b" * lead + "_x0041_" * 6000).partition(" … ")[0]
        shown = kept.replace("_x005F_", "_")
        assert ("b" * lead + "_x0041_" * 6000).startswith(shown)
        assert len(shown) > 16_000


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(_VALUES, st.integers(0, 6))
def test_the_text_is_the_value(value: Any, depth: int) -> None:
    assert json.loads(readable_json(value, depth)) == value


class Word(str):
    """A text of another type, as an enumeration's are."""


def test_json_is_that_of_the_standard_library_but_for_what_json_has_not() -> None:
    plain = [None, True, False, 0, -7, 10**30, 0.1, 1e300, -0.0, "", 'a"\\\n\u2028\x7fé']
    values = [*plain, Word("w"), {1: "one"}, {}, []]
    for value in [*values, values, dict.fromkeys(["a"], values), {"a": 1, "b": "x"}]:
        assert readable_json(value, 0) == json.dumps(value, ensure_ascii=False) + "\n"
    value = {"a": [math.nan, {"b": math.inf, "c": (1.0, -math.inf)}], "d": math.nan}
    assert json.loads(readable_json(value, 1)) == {"a": [None, {"b": None, "c": [1.0, None]}], "d": None}
    value = {"metrics": {"m": {"value": 1.0, "version": "1"}}, "tags": ["a", "b"]}
    assert readable_json(value, 5) == (
        '{\n  "metrics": {\n    "m": {"value": 1.0, "version": "1"}\n  },\n  "tags": ["a", "b"]\n}\n'
    )
    assert readable_json([part({"a": 1}, 0, 1)], 1) == '[\n  {"a": 1}\n]\n' == readable_json([{"a": 1}], 1)


_ROWS = st.integers(0, 7).flatmap(
    lambda names: st.lists(st.lists(_VALUES, min_size=names, max_size=names), min_size=1, max_size=3)
)


@given(_ROWS, st.integers(0, 3))
def test_what_is_written_by_column_is_the_same_text(rows: list[list[Any]], depth: int) -> None:
    names = [f"%s {place}" for place in range(len(rows[0]))]
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    columns = {name: [row[name] for row in objects] for name in names}
    whole = {"rows": objects, "by name": {"first": objects[0], "second": 2}}
    in_list = parts(columns, depth, 2) if names else [part(one, depth, 2) for one in objects]
    in_parts = {"rows": in_list, "by name": {"first": part(objects[0], depth, 2), "second": 2}}
    assert [*in_list] == [part(one, depth, 2) for one in objects]
    if any(isinstance(value, dict | list) for one in objects for value in one.values()) or len(names) > 4:
        assert readable_json(in_parts, depth + 2) == readable_json(whole, depth + 2)
