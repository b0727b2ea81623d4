"""BIRD-Interact as tasks in worlds: a user who knows what is meant, follow-ups, and results as tables."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.importing import take_left_out
from eval_pipeline_plugins.data_sets.agent_tasks.bird_interact import read_bird_interact
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_plugins.tracks.agent.track import TRACK

GOOD = {"term": "good signals (SNQI)", "sql_snippet": "ratio -\n 0.1 > 0", "is_mask": True, "type": "knowledge"}
QUERY: dict[str, Any] = {
    "instance_id": "alien-1",
    "selected_database": "alien",
    "amb_user_query": "How many good signals are there for each station?",
    "user_query_ambiguity": {"critical_ambiguity": [GOOD], "non_critical_ambiguity": [{"term": "order"}]},
    "knowledge_ambiguity": [{"term": "SNQI", "sql_snippet": "ratio - 0.1", "deleted_knowledge": 7}],
    "preprocess_sql": [],
    "sol_sql": ["/* why */ SELECT station, count(*) FROM signals WHERE ratio - 0.1 > 0 GROUP BY station;"],
    "follow_up": {"query": "And in all?", "sol_sql": "SELECT count(*) AS n FROM signals WHERE ratio > 0.1"},
    "category": "Query",
    "difficulty_tier": "Hard",
}
CHANGE = {
    **{name: QUERY[name] for name in ("selected_database", "user_query_ambiguity")},
    "instance_id": "alien-m",
    "amb_user_query": "Delete the bad ones.",
    "category": "Management",
    "sol_sql": ["DELETE FROM signals WHERE ratio < 0.1", "DELETE FROM signals WHERE station IS NULL"],
}


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
    folder = tmp_path / "DBs" / "alien"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "alien_template.sqlite")) as made:
        made.execute("CREATE TABLE signals (station, ratio)")
        made.executemany("INSERT INTO signals VALUES (?, ?)", [("north", 0.5), ("north", 0.05), ("south", 0.25)])
        made.commit()
    (folder / "alien_kb.jsonl").write_text('{"id": 7, "knowledge": "SNQI"}\n{"id": 8, "knowledge": "BFR"}\n')
    (folder / "alien_schema.txt").write_text("CREATE TABLE signals (station, ratio)")
    yield tmp_path / "DBs"
    close_worlds()


def read(given: Path, *tasks: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    source, made = given.parent / "tasks.jsonl", given.parent / "made"
    made.mkdir()
    source.write_text("".join(json.dumps(one) + "\n" for one in tasks))
    return [dict(one) for one in read_bird_interact(source, None, [given], made)], take_left_out(made)


def test_a_user_says_what_is_meant_and_goes_on(given: Path) -> None:
    (query, change), left_out = read(given, QUERY, CHANGE)
    assert left_out == {}
    assert (query["id"], query["difficulty"]) == ("alien_1", 3)
    assert "table answer_1 of the database alien" in query["task"] and "answer_2" in query["then"][0]
    assert query["user"]["facts"][0] == {
        "about": ["good signals (SNQI)", "good", "signals", "SNQI"],
        "say": "good signals (SNQI): ratio - 0.1 > 0",
    }
    assert [one["say"] for one in query["user"]["facts"]] == [
        "good signals (SNQI): ratio - 0.1 > 0",
        "SNQI: ratio - 0.1",
    ]
    shared = TRACK.read_shared(given.parent / "made", {})
    cases = [TRACK.read_case(one, "bird", "cases.jsonl", 1, shared) for one in (query, change)]
    assert [TRACK.check_gold(case) for case in cases] == [[], []]
    worlds = [case.context.world for case in cases]
    assert [one.name for one in worlds] == ["alien_without_7", "alien"]
    known = [(one.source / "files" / "alien_kb.jsonl").read_text().count("\n") for one in worlds]
    assert known == [1, 2], "what the user has to be asked does not lie in the world"
    assert all("alien_schema.txt" in one.listing() for one in worlds)


def test_solutions_may_lie_in_a_file_of_their_own(given: Path) -> None:
    public = {**QUERY, "sol_sql": [], "follow_up": {"query": "And in all?", "sol_sql": ""}}
    (given / "gt.jsonl").write_text(json.dumps({name: QUERY[name] for name in ("instance_id", "sol_sql", "follow_up")}))
    (case,), _ = read(given, public)
    assert [next(iter(one)) for one in case["gold"]] == ["ask_user", "sql", "answer", "sql", "answer"]


def test_scripts_of_postgres_come_in_their_order(given: Path) -> None:
    (given / "alien" / "alien_template.sqlite").unlink()
    for name in ("a", "b"):
        (given / "alien" / f"{name}.sql").write_text("SELECT 1;")
    (given / "alien" / "table_orders.txt").write_text("B\nA\n")
    (case,), _ = read(given, CHANGE)
    told = json.loads((given.parent / "made" / "worlds" / case["world"] / "world.yaml").read_text())
    assert told["databases"] == {"alien": {"scripts": ["b.sql", "a.sql"]}}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sol_sql": ""}, "it has no solution"),
        ({"preprocess_sql": ["UPDATE signals SET ratio = 1"]}, "it changes the database first"),
        ({"follow_up": {"query": "And in all?"}}, "its follow-up has no solution"),
        ({"sol_sql": ["SELECT 1", "SELECT 2"]}, "2 statements; expected one query"),
        ({"selected_database": "other"}, "its database other is not given"),
    ],
)
def test_what_cannot_be_carried_is_left_out_by_name(given: Path, change: Any, why: str) -> None:
    cases, left_out = read(given, {**QUERY, **change})
    assert cases == [] and list(left_out) == ["alien-1"] and why in left_out["alien-1"]


def test_a_damaged_line_is_one_sentence(given: Path) -> None:
    with pytest.raises(InputError) as raised:
        read(given, QUERY, {**QUERY, "user_query_ambiguity": {"critical_ambiguity": [{"term": ""}]}})
    assert len(raised.value.problems) == 1
    assert "tasks.jsonl:2: user_query_ambiguity.critical_ambiguity.0.term: " in str(raised.value)
