"""The lint of accepted queries, and a suite of golds with the usual mistakes: each is found, and none costs a point."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.analysis.gold.suspects import suspect_rows
from eval_pipeline.stages.checks.verdicts import check_gold
from eval_pipeline.stages.scoring.gold import gold_failure
from eval_pipeline.store.coverage import recorded_cases
from eval_pipeline.store.tables import STATISTICS, TURNS
from eval_pipeline_plugins.tracks.sql.cases.source import Database, Options, SharedDatabases, read_databases
from eval_pipeline_plugins.tracks.sql.gold.lint import SCORES, findings
from eval_pipeline_plugins.tracks.sql.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.sql.helpers import answer, attempt

BROKEN = golden("sql_broken_golds.yaml")
OPTIONS = {"dialect": "sqlite", "max_rows": 100, "query_time_limit_s": 0.25, "judge": "never"}


def write_database(folder: Path) -> Path:
    place = folder / "databases" / "town"
    place.mkdir(parents=True, exist_ok=True)
    (place / "schema.sql").write_text(BROKEN["script"])
    return folder


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("town")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_HOME", str(folder / "home"))
        yield read_databases(write_database(folder), OPTIONS).databases["town"]


@pytest.mark.always
def test_each_usual_mistake_is_found_with_the_rows_that_show_it(town: Database) -> None:
    for one in BROKEN["doubted"]:
        found = findings(one["sql"], town)
        assert sorted(finding.kind for finding in found) == sorted(one["kinds"]), (one["id"], found)
        said = " ".join(finding.words for finding in found)
        assert all(name in said for name in one.get("names", ())), (one["id"], said)
    assert {kind for one in BROKEN["doubted"] for kind in one["kinds"]} == SCORES.keys()


def test_who_agrees_with_mended_gold_loses_no_point(town: Database) -> None:
    """Nobody knows that such an answer is wrong, unless the case's tags say that the gold is meant so."""
    shared, asked = SharedDatabases({"town": town}, Options.model_validate(OPTIONS)), []
    for one in (one for one in BROKEN["doubted"] if "mended" in one):
        for sql, tags, unscored in (
            (one["mended"], [], True),
            ("SELECT 'x'", [], False),
            (one["mended"], one["kinds"], False),
        ):
            raw = {"id": one["id"], "question": "?", "expected_sql": one["sql"], "tags": tags}
            case = TRACK.read_case(raw, "broken", "cases.yaml", 1, shared)
            tried = asyncio.run(attempt(case, answer(sql)))
            told = gold_failure(TRACK.gather(case, case.turns[0], tried))
            assert (told is not None) == unscored, (one["id"], sql, tags, told)
            asked += [] if told is None else [told]
    assert {kind for kind in SCORES if any(kind in told for told in asked)} >= {"cut_tie", "nulls_first", "text_order"}


def test_what_only_looks_like_a_mistake_is_not_doubted(town: Database) -> None:
    assert {sql: found for sql in BROKEN["fine"] if (found := findings(sql, town))} == {}


def test_a_suite_of_broken_golds_finds_each_and_costs_no_model_a_point(lab: Lab) -> None:
    """The oracle answers with the gold itself: what it lacks in points, broken golds have cost it."""
    kinds = ("unscored", "doubted")
    cases = [{"id": one["id"], "question": "?", "expected_sql": one["sql"]} for kind in kinds for one in BROKEN[kind]]
    assert len(cases) > 20
    write_database(lab.suite("broken", cases, track="sql", options=OPTIONS))
    lab.versions({"name": "oracle", "provider": "oracle", "max_recovery_attempts": 0})
    lab.evaluate("broken", "oracle", upto="coverage")
    inputs = lab.inputs("broken", "oracle")
    problems = {row["case_id"]: row["gold_problem"] for row in inputs.read(TURNS).to_pylist() if row["gold_problem"]}
    assert problems.keys() == {one["id"] for one in BROKEN["unscored"]}
    for one in BROKEN["unscored"]:
        assert one["says"] in problems[one["id"]], problems[one["id"]]
    correct = next(
        row for row in inputs.read(STATISTICS).to_pylist() if (row["metric"], row["split"]) == ("correct", "all")
    )
    counts = recorded_cases(inputs.record, inputs.place)
    assert counts.unscored == len(BROKEN["unscored"])
    assert correct["n"] == len(BROKEN["doubted"])
    assert correct["mean"] == 1.0
    doubted = {row["case_id"]: row["evidence"] for row in suspect_rows(inputs) if row["reason"] == "lint"}
    assert doubted.keys() == {one["id"] for one in BROKEN["doubted"]}
    assert all(kind in doubted[one["id"]] for one in BROKEN["doubted"] for kind in one["kinds"])
    verdict = check_gold(inputs)
    assert (verdict.facts["wrong_gold"], verdict.facts["linted"]) == (len(BROKEN["unscored"]), len(BROKEN["doubted"]))


@pytest.mark.parametrize(
    ("accepted", "doubted"),
    [
        ("SELECT name FROM people WHERE city = 'oslo'", False),  # its tag says that it is meant
        (["SELECT name FROM people ORDER BY age DESC LIMIT 1"], True),
        # whoever lists several knows of the tie, and that they differ is no doubt
        (["SELECT name FROM people ORDER BY age DESC LIMIT 1", "SELECT 'Ada'", "SELECT 'Bo'"], False),
        (
            ["SELECT name FROM people ORDER BY age DESC LIMIT 1", "SELECT id FROM people ORDER BY age DESC LIMIT 1"],
            True,
        ),
    ],
)
def test_of_several_accepted_queries_all_have_to_be_doubted(town: Database, accepted: Any, doubted: bool) -> None:
    shared = SharedDatabases({"town": town}, Options(**OPTIONS))
    raw = {"id": "a", "question": "?", "expected_sql": accepted, "tags": ["empty_result"]}
    case = TRACK.read_case(raw, "broken", "a.yaml", 1, shared)
    assert [doubt.linted for doubt in TRACK.contradictions(case)] == [True] * doubted
