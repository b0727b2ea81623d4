"""Golds that do not hold: what they give as evidence, and how the tracks tell of them."""

import asyncio
import sqlite3
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import Evidence
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.stages.checks.kept import check_gold_usable
from eval_pipeline.stages.judged.judging import pairs_of
from eval_pipeline.stages.scoring.gold import drifted, drifting, gold_failure
from eval_pipeline.store.coverage import recorded_cases
from eval_pipeline_plugins.tracks.sql.cases.source import Options, SharedDatabases
from eval_pipeline_plugins.tracks.sql.gold.clock import clock_parts, pinned
from eval_pipeline_plugins.tracks.sql.responses.evidence import EXECUTION
from eval_pipeline_plugins.tracks.sql.responses.running import result_fingerprint
from eval_pipeline_plugins.tracks.sql.track import TRACK, SqlTrack
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.sql.helpers import OSLO, answer, attempt, ran, read, shared, shop_lab

NUMBERS = "SELECT CAST(name AS INTEGER) FROM customers"
"""Accepted by the validator, but it does not run."""
RIGHT = "SELECT name FROM customers WHERE city = 'Oslo'"


@pytest.mark.parametrize(
    ("accepted", "sql", "fails"),
    [
        ([NUMBERS], NUMBERS, None),  # an answer that fails is told first: only `check_gold` runs the gold
        ([NUMBERS], RIGHT, NUMBERS),
        ([RIGHT, NUMBERS], RIGHT, NUMBERS),  # else only right answers of such a case would count
        ([RIGHT], NUMBERS, None),
        ([RIGHT], RIGHT, None),
    ],
)
def test_gold_that_fails_beside_an_answer_is_told(
    shop: SharedDatabases, accepted: Any, sql: str, fails: str | None
) -> None:
    case = read(OSLO | {"expected_sql": accepted}, shop)
    tried = asyncio.run(attempt(case, answer(sql)))
    found = gold_failure(TRACK.gather(case, case.turns[0], tried))
    assert (found is not None) == (fails is not None)
    assert bool(TRACK.check_gold(case)) == (NUMBERS in accepted)


CLOCKS = golden("sql_clock.yaml")
AT = datetime(2024, 5, 1)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_pinned_clock_stands_still_in_every_function_that_reads_it(engine: str) -> None:
    run: Any = sqlite3.connect(":memory:") if engine == "sqlite" else duckdb.connect()
    if engine == "duckdb":
        run.execute("SET TimeZone = 'UTC'")
    for one in CLOCKS[engine]:
        text = pinned(one["sql"], engine, AT)
        assert list(run.execute(text).fetchone()) == one["row"], text
        assert (text == one["sql"]) == one.get("same", False)
        assert pinned(one["sql"], engine, None) == one["sql"]


@pytest.mark.parametrize("dialect", ["postgres", "mysql"])
def test_servers_are_given_times_in_their_own_words(dialect: str) -> None:
    for one in CLOCKS[dialect]:
        assert pinned(one["sql"], dialect, AT) == one["text"]


@given(st.text(alphabet="now()'\" ,date_currenttimestrftime;-1", max_size=60))
def test_pinning_changes_nothing_but_clocks(text: str) -> None:
    for dialect in ("sqlite", "duckdb", "postgres"):
        parts, found = clock_parts(text, dialect), pinned(text, dialect, AT)
        assert (found == text) == (not parts)
        assert all(one.end <= other.start for one, other in pairwise(parts))


def test_gold_and_answer_run_at_the_time_and_within_the_limits_of_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
    found = shared(tmp_path / "shop", as_of="2024-02-04", max_rows=3)
    late = read(OSLO | {"expected_sql": "SELECT COUNT(*) FROM orders WHERE placed_on < current_date"}, found)
    tried = asyncio.run(attempt(late, answer("SELECT COUNT(*) FROM orders WHERE placed_on < today()")))
    assert ran(tried.outcome)["rows"] == [[2]]
    executions = [one for one in TRACK.gather(late, late.turns[0], tried) if one.kind == EXECUTION]
    assert [one.verdict for one in executions] == ["match"]
    many = read(OSLO | {"expected_sql": "SELECT id FROM orders"}, found)
    ((_, why),) = TRACK.check_gold(many)
    assert "3 rows" in why


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (date(2024, 5, 1), datetime(2024, 5, 1)),
        ("2024-05-01 12:30", datetime(2024, 5, 1, 12, 30)),
        ("2024-05-01T01:30:00+02:00", datetime(2024, 4, 30, 23, 30)),
        (datetime(2024, 5, 1, 12, tzinfo=UTC), datetime(2024, 5, 1, 12)),
    ],
)
def test_the_clock_of_a_suite_is_in_utc(written: Any, meant: datetime) -> None:
    assert Options(as_of=written).as_of == meant


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (["a"], ["a"], False),
        (["a"], ["b"], True),
        (["a", "c"], ["a", "b"], True),  # any accepted one
        ([None], ["b"], False),  # does not run: it is not scored at all
        (["a"], None, None),
        (["a"], ["a", "b"], None),  # not the same golds
        (None, ["a"], None),
    ],
)
def test_gold_that_gives_another_result_has_drifted(now: Any, before: Any, expected: bool | None) -> None:
    evidence = [Evidence("t", 0, EXECUTION, "match", 1.0, {} if now is None else {"gold_results": now})]
    assert drifted("t", evidence, {} if before is None else {"t": before}) is expected


def test_the_fingerprint_of_a_result_knows_rows_but_not_their_order() -> None:
    one, other = (
        SqlRows(("a",), [(1,), (None,), (0.1 + 0.2,)], 0.0, 0.0),
        SqlRows(("b",), [(0.3,), (1,), (None,)], 1.0, 1.0),
    )
    assert result_fingerprint(one) == result_fingerprint(other)
    for rows in ([(1,), (None,)], [(1,), (None,), (0.31,)], [(1,), ("None",), (0.3,)], [(1,), (1,), (None,), (0.3,)]):
        assert result_fingerprint(SqlRows(("a",), rows, 0.0, 0.0)) != result_fingerprint(one)


def test_gold_that_changes_after_the_suite_was_read_is_told_with_its_case(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is drawn at random stands for what the clock changes; what fails later held when the suite was read."""
    monkeypatch.setattr(SqlTrack, "check_gold", lambda *_: [])
    fails = OSLO | {"id": "fails", "expected_sql": [RIGHT, NUMBERS]}
    shop_lab(
        lab,
        OSLO | {"expected_sql": "SELECT random() FROM customers WHERE city = 'Oslo'"},
        fails,
        judge="never",
        as_of=date(2024, 5, 1),
    )
    lab.versions({"name": "oracle", "provider": "oracle"})
    lab.evaluate("shop", "oracle", upto="coverage")
    inputs = lab.inputs("shop", "oracle")
    told = check_gold_usable(inputs)
    assert (told.passed, told.facts["drifted"], told.facts["unscored"]) == (False, 1, 1)
    assert {place[0] for place, _ in pairs_of(inputs)} == {"shop/oslo#0"}  # nobody pays a judge for the other
    unscored, moved = recorded_cases(inputs.record, inputs.place).gold_texts()
    assert "fails: the expected query does not run" in unscored
    assert "oslo" in moved and "fails" not in moved
    moved = drifting(inputs.workspace, "shop", inputs.track)
    assert [turn for case in inputs.cases for turn in moved(case)] == ["shop/oslo#0"]
