"""DataAgentBench: its questions as tasks in worlds, and what agents did there as attempts at these."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.importing import take_left_out
from eval_pipeline_plugins.data_sets.agent_tasks.data_agent_bench import read_data_agent_bench
from eval_pipeline_plugins.logs.data_agent_bench import read_data_agent_bench_runs
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_plugins.tracks.agent.track import TRACK
from eval_pipeline_plugins.tracks.agent.trajectory import parse_trajectory

CONFIG = """
db_clients:
  review_database: {db_type: sqlite, db_path: query_dataset/review.db}
  books_database: {db_type: postgres, db_name: books, sql_file: query_dataset/books.sql}
"""


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
    top = tmp_path / "dab"
    place = top / "query_book"
    (place / "query_dataset").mkdir(parents=True)
    (place / "db_config.yaml").write_text(CONFIG)
    (place / "db_description.txt").write_text("Two databases.\n")
    (place / "query_dataset" / "books.sql").write_text("CREATE TABLE books (id int);\n")
    with closing(sqlite3.connect(place / "query_dataset" / "review.db")) as made:
        made.execute("CREATE TABLE review (rating)")
    truths = {"query1": "1990\n", "query2": "The Sludge\nLocal Honey\n", "query10": '"A, b",2.5\nC,3\n'}
    for name, text in truths.items():
        (place / name).mkdir()
        (place / name / "query.json").write_text(json.dumps(f"What of {name}?"))
        (place / name / "ground_truth.csv").write_text(text)
        (place / name / "validate.py").write_text("raise SystemExit('it is run')\n")
    yield top
    close_worlds()


def read(top: Path, source: Path | None = None) -> tuple[list[dict[str, Any]], dict[str, str]]:
    made = top.parent / "made"
    made.mkdir()
    return [dict(one) for one in read_data_agent_bench(source or top, None, [top], made)], take_left_out(made)


@pytest.mark.parametrize("part", ["", "query_book"])
def test_what_is_right_is_a_value_a_list_or_a_table(given: Path, part: str) -> None:
    cases, left_out = read(given, given / part)
    assert left_out == {}
    assert [(one["id"], one["task"], one["gold"][0]["answer"]) for one in cases] == [
        ("dab_book_1", "What of query1?", 1990),
        ("dab_book_2", "What of query2?", ["The Sludge", "Local Honey"]),
        ("dab_book_10", "What of query10?", [["A, b", 2.5], ["C", 3]]),
    ]
    shared = TRACK.read_shared(given.parent / "made", {})
    (world,) = {id(one): one for one in shared[0].values()}.values()
    assert (world.name, world.description, world.listing()) == ("book", "Two databases.", {"review.db"})
    assert world.databases["books_database"].scripts == ("books.sql",)
    assert all(one.read_only for one in world.databases.values())
    for case in cases:
        TRACK.read_case(case, "dab", "cases.jsonl", 1, shared)


def test_databases_in_files_of_one_name_are_different_ones(given: Path) -> None:
    (given / "query_book" / "more").mkdir()
    (given / "query_book" / "more" / "review.db").write_text("another")
    more = "  more: {db_type: sqlite, db_path: more/review.db}\n  again: {db_type: sqlite, db_path: more/review.db}\n"
    (given / "query_book" / "db_config.yaml").write_text(CONFIG + more)
    read(given)
    world = TRACK.read_shared(given.parent / "made", {})[0]["book"]
    files = {name: world.source / "files" / (one.file or "") for name, one in world.databases.items()}
    assert files["review_database"].read_bytes().startswith(b"SQLite")
    assert files["more"].read_text() == files["again"].read_text() == "another"


@pytest.mark.parametrize("named", ["ABSOLUTE", "../../private.db", "query_dataset/link.db"])
def test_a_file_elsewhere_on_the_machine_is_not_taken(given: Path, named: str) -> None:
    """Who wrote the data set names its files; a file outside of it would be copied to where models read it."""
    private = given.parent / "private.db"
    private.write_text("secret")
    (given / "query_book" / "query_dataset" / "link.db").symlink_to(private)
    named = str(private) if named == "ABSOLUTE" else named
    (given / "query_book" / "db_config.yaml").write_text(CONFIG.replace("query_dataset/review.db", named))
    cases, left_out = read(given)
    assert cases == [] and all(f"there is no {named}" in why for why in left_out.values()) and left_out


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("db_config.yaml", "db_clients: {news: {db_type: mongo, dump_folder: x}}", "is one of mongo"),
        ("db_config.yaml", "db_clients: {news: {db_type: duckdb, db_path: x/y.duckdb}}", "there is no x/y.duckdb"),
        ("db_config.yaml", 'db_clients: {news: {db_type: duckdb, db_path: "a\\0b"}}', "there is no a\0b"),
        ("query1/ground_truth.csv", "\n", "its ground_truth.csv is empty"),
    ],
)
def test_what_cannot_be_carried_is_left_out_by_name(given: Path, file: str, text: str, why: str) -> None:
    (given / "query_book" / file).write_text(text)
    assert why in read(given)[1]["dab_book_1"]


@pytest.mark.parametrize(
    ("file", "text", "place"),
    [
        ("db_config.yaml", "db_clients: [", "db_config.yaml:2: is no YAML"),
        ("db_config.yaml", "db_clients: {a: {}}", "db_clients.a.db_type: "),
        ("query1/query.json", "{}", "query.json: expected a text"),
        ("query1/query.json", "x", "query.json:1: is not JSON"),
    ],
)
def test_a_damaged_file_is_one_sentence(given: Path, file: str, text: str, place: str) -> None:
    (given / "query_book" / file).write_text(text)
    with pytest.raises(InputError) as raised:
        read(given)
    assert len(raised.value.problems) == 1 and place in str(raised.value)


def call(place: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"id": place, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


MESSAGES = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "What of query1?"},
    {"role": "assistant", "tool_calls": [call("c1", "query_db", {"db_name": "review_database", "query": "SELECT 1"})]},
    {"role": "tool", "tool_call_id": "c1", "name": "query_db", "content": "\nThe tool query_db execution failed. No."},
    {"role": "assistant", "tool_calls": [call("c2", "return_answer", {"answer": "1990"})]},
    {"role": "tool", "tool_call_id": "c2", "name": "return_answer", "content": "ok"},
]
RUN = {"messages": MESSAGES, "query_dir": "/x/query_book/query1", "deployment_name": "m", "duration": 2.5}


def test_a_run_is_an_attempt(tmp_path: Path) -> None:
    ends = [
        {"final_result": "1990", "terminate_reason": "return_answer"},
        {"final_result": "", "terminate_reason": "max_iterations", "messages": MESSAGES[:4]},
    ]
    for number, end in enumerate(ends, 9):
        (tmp_path / f"run_{number}").mkdir()
        (tmp_path / f"run_{number}" / "final_agent.json").write_text(json.dumps({**RUN, **end}))
    entries = list(read_data_agent_bench_runs(tmp_path))
    told: list[Any] = [one.given["trajectory"] for one in entries]
    assert [(one.given["sample"], one.found["id"], one.given.get("response")) for one in entries] == [
        (9, "dab_book_1", "1990"), (10, "dab_book_1", None),
    ]  # fmt: skip
    assert [(one["answer"], one["ended"], one["why"]) for one in told] == [
        ("1990", "answered", ""), (None, "model_calls", "max_iterations"),
    ]  # fmt: skip
    steps = parse_trajectory(json.dumps(told[0])).steps
    assert [(one.kind, [one.name for one in one.calls], one.error_class) for one in steps] == [
        ("model", ["query_db"], None), ("tool", ["query_db"], "other_error"),
        ("model", ["answer"], None), ("tool", ["answer"], None),
    ]  # fmt: skip


def test_a_submission_has_an_answer_for_each_run(tmp_path: Path) -> None:
    rows = [{"dataset": "book", "query": "1", "run": "3", "answer": "1990"}, {"dataset": "book", "query": 2, "run": 0}]
    (tmp_path / "team.json").write_text(json.dumps(rows))
    first, second = read_data_agent_bench_runs(tmp_path / "team.json")
    assert (first.found["id"], first.given) == ("dab_book_1", {"answer": "1990", "sample": 3})
    assert second.found["id"] == "dab_book_2" and second.given["error"]
    (tmp_path / "team.json").write_text(json.dumps([{**rows[0], "dataset": None}]))
    with pytest.raises(InputError, match=r"team\.json: 0\.dataset: "):
        list(read_data_agent_bench_runs(tmp_path / "team.json"))
