import datetime as dt
import json
import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from eval_pipeline.cli.terminal import least_width
from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.store.published.ddl import FORMAT
from eval_pipeline.store.published.publish import publish, publish_full
from eval_pipeline.store.published.query import connect_read_only, run_query
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import (
    ACCURACY_BY_CONTRACT,
    CASES,
    COST_PER_CORRECT_ANSWER,
    COVERAGE,
    EVIDENCE,
    GENERATION_PROMPTS,
    GENERATIONS,
    GOLD_EDITIONS,
    METRICS,
    MODEL_VERSIONS,
    RECOVERY_ATTEMPTS,
    RECOVERY_PROMPTS,
    RUNS,
    STATISTICS,
    TURN_RESULTS,
    TURNS,
    VALIDATION,
    all_tables,
)
from eval_pipeline_tests.store.samples import DAY, TRACKS, ask, key_of, put, put_model, put_partition, put_suite, rows

NEXT = DAY + dt.timedelta(days=1)
LAST = DAY + dt.timedelta(days=2)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that tests only try to change."""
    home = tmp_path_factory.mktemp("home")
    put_partition(Record(home / "record"), key_of())
    return publish(Record(home / "record"), home / "eval.duckdb", TRACKS).path


def results(record: Record, key: RecordKey, correct: list[bool | None], **given) -> None:
    count = len(correct)
    ids = [f"finqa/c#{index}" for index in range(count)]
    columns = {"turn_id": ids, "case_id": ["c"] * count, "turn_index": list(range(count)), "sample": [0] * count}
    put(record, TURN_RESULTS, key, count, **{**columns, "correct": correct, **given})


def test_query_gives_rows(store: Path) -> None:
    found = run_query(store, "SELECT suite, eval_date, details, value FROM metrics LIMIT 1")
    assert found.to_pylist() == [{"suite": "finqa", "eval_date": DAY, "details": '{"a": [1, null]}', "value": 1.0}]
    assert found.schema.field("details").type == pa.string()
    assert run_query(store, "SELECT details->>'$.a[0]' AS first FROM metrics LIMIT 1").to_pylist() == [{"first": "1"}]
    assert run_query(store, "SELECT 1 WHERE false").num_rows == 0
    assert run_query(store, "SHOW TABLES").num_rows > len(all_tables(TRACKS))
    assert run_query(store, "CREATE TEMP TABLE mine AS SELECT 1 AS one; FROM mine").to_pylist() == [{"one": 1}]
    assert run_query(store, "CREATE TEMP TABLE mine (a INTEGER)").num_rows == 0


def test_clear_errors(record: Record, out: Path) -> None:
    with pytest.raises(StoreError, match=r"no store at .*eval\.duckdb; run `eval-pipeline run` first"):
        run_query(out, "SELECT 1")
    publish(record, out, TRACKS)
    for sql in ("SELEC 1", "SELECT nope FROM metrics", "FROM nowhere", "SELECT 'a'::INTEGER"):
        with pytest.raises(UsageError) as caught:
            run_query(out, sql)
        assert "\n" not in str(caught.value)
        assert "Error" in str(caught.value)
    out.write_bytes(b"no store at all" * 1000)
    with pytest.raises(StoreError, match=r"cannot read .*`eval-pipeline publish --full` rebuilds it"):
        run_query(out, "SELECT 1")


def test_what_a_store_of_an_earlier_version_lacks_is_told_with_what_to_do(
    record: Record, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_partition(record, key_of())
    with monkeypatch.context() as earlier:
        for module in ("ddl", "publish"):
            earlier.setattr(f"eval_pipeline.store.published.{module}.FORMAT", FORMAT - 1)
        publish(record, out, TRACKS)
    hint = (
        r"(not found|not exist).*; the store was made by an earlier version .* `eval-pipeline publish` makes it anew$"
    )
    for sql in ("SELECT of_tomorrow FROM metrics", "FROM tomorrow"):
        with pytest.raises(UsageError, match=hint):
            run_query(out, sql)
    with pytest.raises(UsageError) as caught:
        run_query(out, "SELEC 1")
    assert "earlier" not in str(caught.value), "no version reads that"
    publish(record, out, TRACKS)
    with pytest.raises(UsageError) as caught:
        run_query(out, "SELECT of_tomorrow FROM metrics")
    assert "earlier" not in str(caught.value), "it is made anew"


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM metrics",
        "INSERT INTO metrics (suite) VALUES ('a')",
        "DROP TABLE metrics",
        "CREATE TABLE mine (a INTEGER)",
        "COPY (SELECT 1) TO '{path}'",
        "COPY (SELECT 1) TO '{path}' (FORMAT csv, USE_TMP_FILE false)",
        "COPY (SELECT 1) TO '{path}.wal' (USE_TMP_FILE false)",
        "COPY (SELECT 1) TO '{folder}/other.csv'",
        "EXPORT DATABASE '{folder}/export'",
        "ATTACH '{path}' AS other",
        "ATTACH '{folder}/other.duckdb'",
        "USE memory; DETACH store; ATTACH '{path}' AS store",
        "SET disabled_filesystems = ''",
        "RESET disabled_filesystems",
        "SET enable_external_access = true",
        "SELECT * FROM read_text('/etc/passwd')",
        "INSTALL httpfs",
        "LOAD '/tmp/evil.duckdb_extension'",
    ],
)
def test_nothing_can_be_written(store: Path, sql: str) -> None:
    before, files = store.read_bytes(), set(store.parent.iterdir())
    with pytest.raises(UsageError):
        run_query(store, sql.format(path=store, folder=store.parent))
    assert store.read_bytes() == before
    assert set(store.parent.iterdir()) == files
    connection = connect_read_only(store)
    with pytest.raises(duckdb.Error):
        connection.execute(sql.format(path=store, folder=store.parent))
    connection.close()


def test_latest_is_the_newest_date_of_the_full_scope(record: Record, out: Path) -> None:
    put_partition(record, key_of("alpha", DAY), whole=True)
    put_partition(record, key_of("alpha", NEXT), scope="full", whole=True)
    put_partition(record, key_of("alpha", LAST), scope="tag:short", whole=True)
    put_partition(record, key_of("beta", DAY), scope="sample:2", whole=True)
    put_partition(record, key_of("beta", NEXT), scope="sample:2", whole=True)
    times = [dt.datetime(2026, 1, 7, hour) for hour in (3, 1, 2)]
    put(record, RUNS, key_of("gamma", DAY), scope=["full"])
    put(record, RUNS, key_of("gamma", NEXT), 3, scope=["case:c1", "full", "full"], started_at=times)
    results(record, key_of("delta", DAY), [True])
    results(record, key_of("delta", NEXT), [True])
    put(record, METRICS, key_of("delta", LAST))
    publish(record, out, TRACKS)
    assert ask(out, "FROM latest_partitions ORDER BY model_version") == [
        ("finqa", "alpha", NEXT, "full"),
        ("finqa", "beta", NEXT, "sample:2"),
        ("finqa", "delta", NEXT, None),
        ("finqa", "gamma", DAY, "full"),
    ]
    tables = {f"latest_{table.name}": table for table in all_tables(TRACKS) if table.key == "partition"}
    each = (f"SELECT DISTINCT '{view}', model_version, eval_date FROM {view}" for view in tables)
    found = ask(out, " UNION ALL ".join(each))
    described = ask(out, "SELECT table_name, column_name FROM duckdb_columns() ORDER BY table_name, column_index")
    for view, table in tables.items():
        evaluations = {(model, day) for name, model, day in found if name == view}
        assert {("alpha", NEXT), ("beta", NEXT)} <= evaluations <= {
            ("alpha", NEXT), ("beta", NEXT), ("delta", NEXT), ("gamma", DAY)
        }  # fmt: skip
        assert [column for name, column in described if name == view] == [c.name for c in table.published_columns]


def put_explained(record: Record, key: RecordKey) -> None:
    place = {"turn_id": ["finqa/c#0"], "case_id": ["c"], "turn_index": [0], "sample": [0]}
    put(record, GENERATION_PROMPTS, key, prompt_hash=["p0"], text=["first prompt"])
    put(record, RECOVERY_PROMPTS, key, prompt_hash=["p1"], text=["second prompt"])
    failed = {
        "outcome": ["failed"],
        "error_class": ["column_error"],
        "error_message": ["no such row"],
        "result": [None],
    }
    first = {"number": [0], "prompt_hash": ["p0"], "response": ["one"], "call_error": [None]}
    put(record, GENERATIONS, key, **place, **first, **failed)
    ran = {"outcome": ["ran"], "error_class": [None], "error_message": [None], "result": ["412.5"]}
    second = {"number": [1], "prompt_hash": ["p1"], "response": ["two"], "call_error": [None]}
    put(record, RECOVERY_ATTEMPTS, key, **place, **second, **ran)
    both = {name: values * 2 for name, values in place.items()}
    put(record, VALIDATION, key, 2, **both, number=[0, 1], parsed=[False, True], verdict=["invalid", "valid"])
    put(record, EVIDENCE, key, **place, kind=["value"], verdict=["equal"], value=[412.5])
    put(record, METRICS, key, 2, **both, metric=["numerical_match", "exact_match"], value=[1.0, 0.0],
        reason=[None, "differs in the last digit"], error=[None, None], label=[None, None],
        scorer_version=["3", "1"])  # fmt: skip
    put(record, TURN_RESULTS, key, **place, answer=["412.5"], correct=[True], outcome=["ran"])


def put_question(record: Record) -> None:
    suite = RecordKey.of_suite("finqa")
    put(record, CASES, suite, case_id=["c"], source_file=["cases.jsonl"], source_line=[12], source_hash=["abc"],
        content=['{"id": "c"}'])  # fmt: skip
    put(record, TURNS, suite, turn_id=["finqa/c#0"], case_id=["c"], question=["how much?"], expected=["412.5"],
        gold=['{"program": "extract"}'], gold_problem=[None])  # fmt: skip


def test_explain_turn_tells_all_in_order_of_one_date(record: Record, out: Path) -> None:
    put_question(record)
    put_explained(record, key_of(day=DAY))
    put_explained(record, key_of(day=LAST))
    put(record, RUNS, key_of(day=DAY), scope=["full"])
    put(record, METRICS, key_of("beta"), turn_id=["finqa/c#0"])
    publish(record, out, TRACKS)
    found = ask(out, "FROM explain_turn('finqa/c#0', 'alpha')")
    assert [row[:7] for row in found] == [
        (1, None, None, "case", "c", '{"id": "c"}', None),
        (2, None, None, "question", "finqa/c#0", "how much?", None),
        (3, None, None, "gold", "finqa/c#0", "412.5", None),
        (4, 0, 0, "prompt", "p0", "first prompt", None),
        (5, 0, 0, "response", "text", "one", None),
        (6, 0, 0, "validation", "invalid", None, 0.0),
        (7, 0, 0, "outcome", "column_error", "no such row", None),
        (8, 0, 1, "prompt", "p1", "second prompt", None),
        (9, 0, 1, "response", "text", "two", None),
        (10, 0, 1, "validation", "valid", None, 1.0),
        (11, 0, 1, "outcome", "ran", "412.5", None),
        (12, 0, None, "evidence", "value", "equal", 412.5),
        (13, 0, None, "answer", "ran", "412.5", 1.0),
        (14, 0, None, "metric", "exact_match", "differs in the last digit", 0.0),
        (15, 0, None, "metric", "numerical_match", None, 1.0),
    ]
    details = [json.loads(row[7]) for row in found]
    assert details[0]["source_file"] == "cases.jsonl"
    assert details[0]["source_hash"] == "abc"
    assert details[2]["gold"] == {"program": "extract"}, "JSON within JSON, not text"
    assert details[4]["input_tokens"] == 3
    assert details[14]["scorer_version"] == "3"

    def dates(*arguments: str) -> set[str]:
        call = f"FROM explain_turn('finqa/c#0', 'alpha'{''.join(f', {argument}' for argument in arguments)})"
        return {day for (day,) in ask(out, f"SELECT details->>'eval_date' {call} WHERE kind = 'prompt'")}

    assert dates() == {str(LAST)}
    assert dates(f"on_date := '{DAY}'") == {str(DAY)}
    assert dates(f"DATE '{DAY}'") == {str(DAY)}
    assert dates(f"on_date := '{NEXT}'") == set()
    counted = (
        "SELECT eval_date, count(*), max(step) FROM explain_turn WHERE model_version = 'alpha' GROUP BY 1 ORDER BY 1"
    )
    found = ask(out, counted)
    assert found == [(DAY, 15, 15), (LAST, 15, 15)], "the view has every evaluation, each numbered by itself"


def test_leaderboard(record: Record, out: Path) -> None:
    for model, correct, cost in (("low", [False, True, False], 900.0), ("high", [True, True, False], 500.0)):
        put_model(record, model)
        results(record, key_of(model), correct, tokens=[10, 20, 30], usd=[0.5, 0.25, None], simulated=[True] * 3)
        put(record, COST_PER_CORRECT_ANSWER, key_of(model), tokens_per_success=[cost], usd_per_success=[0.125])
        mean = sum(correct) / 3
        columns = {"metric": ["correct", "correct", "score"], "split": ["all", "tag", "all"]}
        put(record, STATISTICS, key_of(model), 3, **columns, mean=[mean, 0.9, 0.9], low=[0.1] * 3, high=[0.8] * 3)
    counts = {"cases": [2], "cases_in_suite": [3], "left_out_because": ["the budget did not allow asking it"]}
    put(record, COVERAGE, key_of("high"), planned=[5], asked=[4], answered=[3], readable=[2], scored=[3], **counts)
    of_gold = {"edition": ["scored", "published"], "name": ["1 with 2 overrides", "1"], "mean": [2 / 3, 0.5]}
    counts = {"overridden_turns": [2, 2], "excluded_turns": [1, 1], "metric": ["correct"] * 2}
    put(record, GOLD_EDITIONS, key_of("high"), 2, **of_gold, **counts)
    one = {"edition": ["scored"], "name": ["1"], "mean": [1 / 3], "overridden_turns": [0], "metric": ["correct"]}
    put(record, GOLD_EDITIONS, key_of("low"), **one)
    results(record, key_of("bare"), [True, None, None], simulated=[False] * 3)
    put(record, RUNS, key_of("empty"))
    put_partition(record, key_of("high", suite="other"))
    publish(record, out, TRACKS)
    found = run_query(out, "FROM leaderboard_details('finqa')").to_pylist()
    assert [row["model_version"] for row in found] == ["bare", "high", "low", "empty"]
    assert found[1] == {
        "suite": "finqa", "model_version": "high", "eval_date": DAY, "scope": None, "turns": 3, "accuracy": 2 / 3,
        "sampled": None,  # the scope is not on record
        "low": 0.1, "high": 0.8, "tokens": 3, "usd": 0.5, "tokens_per_success": 500.0, "usd_per_success": 0.125,
        "on_front": True, "simulated": True, "planned": 5, "asked": 4, "answered": 3, "readable": 2, "scored": 3,
        "cases": 2, "cases_in_suite": 3, "left_out_because": "the budget did not allow asking it", "retired": False,
        "gold_edition": "1 with 2 overrides", "overridden_turns": 2, "excluded_turns": 1, "accuracy_published": 0.5,
    }  # fmt: skip
    assert (found[2]["gold_edition"], found[2]["accuracy_published"]) == ("1", None), "nothing is overridden"
    assert (found[0]["planned"], found[0]["answered"], found[0]["scored"]) == (None, None, 1), "of before"
    assert {row["model_version"]: row["on_front"] for row in found} == {
        "bare": None,  # the only one that is no stand-in, and one alone is on no front
        "high": True,
        "low": False,  # as dear as high, and less accurate
        "empty": None,
    }
    assert (found[0]["accuracy"], found[0]["low"], found[0]["turns"]) == (1.0, None, 3)
    assert (found[3]["accuracy"], found[3]["turns"], found[3]["simulated"]) == (None, 0, None)
    narrow = run_query(out, "FROM leaderboard('finqa')").to_pylist()
    same = narrow[0].keys() - {"scope"}
    assert [{name: row[name] for name in same} for row in narrow] == [
        {name: row[name] for name in same} for row in found
    ]
    assert {row["model_version"]: row["scope"] for row in narrow} == {
        "bare": None,
        "high": None,
        "low": None,
        "empty": "part",  # the only one whose run is on record, with a scope that is none of ours
    }
    of_all = run_query(out, "FROM leaderboard").to_pylist()
    assert [(row["suite"], row["model_version"]) for row in of_all] == [
        *(("finqa", row["model_version"]) for row in found), ("other", "high"),
    ]  # fmt: skip
    assert [row["accuracy"] for row in of_all if row["suite"] == "finqa"] == [row["accuracy"] for row in found]


def test_ranks_under_each_contract(record: Record, out: Path) -> None:
    """Equal ones share a rank; retired ones have none and take none; only the latest date counts."""
    accuracies = {"alpha": (0.5, 0.9), "beta": (0.5, 0.7), "gamma": (0.25, 1.0), "gone": (1.0, 1.0)}
    for model, accuracy in accuracies.items():
        put(record, MODEL_VERSIONS, RecordKey.of_model_version(model), retired=[model == "gone"])
        for key in (key_of(model), key_of(model, LAST)):
            put(record, RUNS, key, scope=["full"])
            both = accuracy if key.eval_date == LAST else (0.1, 0.1)
            put(record, ACCURACY_BY_CONTRACT, key, 2, contract=["exact", "bird"], accuracy=both)
    publish(record, out, TRACKS)
    found = ask(out, "SELECT contract, model_version, accuracy, rank FROM contract_accuracy WHERE suite = 'finqa'")
    assert sorted(found) == [
        ("bird", "alpha", 0.9, 2), ("bird", "beta", 0.7, 3), ("bird", "gamma", 1.0, 1),
        ("exact", "alpha", 0.5, 1), ("exact", "beta", 0.5, 1), ("exact", "gamma", 0.25, 3),
    ]  # fmt: skip


UNKNOWN = {
    "leaderboard('nothing')": "there is no suite 'nothing'; there are: finqa",
    "leaderboard_details(NULL)": "there is no suite 'NULL'; there are: finqa",
    "compare('alpha', 'nobody', 'finqa')": "there is no model version 'nobody'; there are: alpha",
    "compare('nobody', 'alpha', 'finqa')": "there is no model version 'nobody'; there are: alpha",
    "compare_details('alpha', 'alpha', 'finca')": "there is no suite 'finca'; there are: finqa",
    "explain_turn('c0#0', 'alpha')": "there is no turn 'c0#0'; ids are <suite>/<case>#<index>, such as finqa/c0#0",
    "explain_turn('finqa/c0#0', 'nobody')": "there is no model version 'nobody'; there are: alpha",
}


@pytest.mark.parametrize("call", UNKNOWN)
def test_names_that_are_not_there_are_errors(store: Path, call: str) -> None:
    with pytest.raises(UsageError, match=re.escape(UNKNOWN[call])):
        run_query(store, f"FROM {call}")


def test_names_that_are_there_without_evaluations_are_no_errors(record: Record, out: Path) -> None:
    put_suite(record)
    put_model(record, "idle")
    publish(record, out, TRACKS)
    for call in ("leaderboard('finqa')", "compare('idle', 'idle', 'finqa')", "explain_turn('finqa/c0#0', 'idle')"):
        assert run_query(out, f"FROM {call}").num_rows == 0


LONG = {"scope": "full", "eval_date": "2026-01-15", "simulated": "False", "correct_a": "False", "correct_b": "False"}
LONG |= {"turns": "100000", "sample": "10", "change": "unanswered", "accuracy": "0.876543", "low": "0.876543"}
LONG |= {"high": "0.876543", "tokens_per_success": "123,457", "usd_per_success": "0.1235"}


@pytest.mark.parametrize(
    ("call", "width"),
    [("leaderboard('finqa')", 100), ("leaderboard", 110), ("compare('alpha', 'alpha', 'finqa')", 140)],
)
def test_what_is_printed_first_fits_a_terminal(store: Path, call: str, width: int) -> None:
    columns = run_query(store, f"FROM {call}").column_names
    row = [LONG.get(name, "a long text that may be folded") for name in columns]
    assert least_width([name.replace("_", "_\n") for name in columns], [row]) <= width, columns


def test_answers_have_the_attempt_that_counts(record: Record, out: Path) -> None:
    key = key_of()
    put_model(record, "alpha")
    results(record, key, [True, False])
    place = {"turn_id": ["finqa/c#0"], "case_id": ["c"], "turn_index": [0], "sample": [0], "prompt_hash": ["p"]}
    put(record, GENERATIONS, key, **place, number=[0], response=["first"], result=[None])
    put(record, RECOVERY_ATTEMPTS, key, **place, number=[1], response=["second"], result=['{"value": 1}'])
    metrics = {"turn_id": ["finqa/c#1"], "case_id": ["c"], "turn_index": [1], "sample": [0]}
    put(record, METRICS, key, **metrics, metric=["failure_mode"], label=["wrong_row"])
    turns = {"turn_id": ["finqa/c#0"], "case_id": ["c"], "turn_index": [0], "expected_result": ['{"value": 2}']}
    put(record, TURNS, RecordKey.of_suite("finqa"), **turns)
    publish(record, out, TRACKS)
    columns = "turn_id, correct, response, returned_result, expected_result, failure_mode, attempt"
    assert ask(out, f"SELECT {columns} FROM answers ORDER BY turn_id") == [
        ("finqa/c#0", True, "second", '{"value": 1}', '{"value": 2}', None, 1),
        ("finqa/c#1", False, None, None, None, "wrong_row", None),
    ]


def test_rows_name_the_run_that_made_them(record: Record, out: Path) -> None:
    key = key_of()
    put_model(record, "alpha")

    def write(run_id: str, value: float) -> None:
        with record.writer(METRICS, key, {"run": run_id}, run_id) as writer:
            writer.write(rows(METRICS, 1, value=[value]))

    for run_id, value, told in (("one", 1.0, "one"), ("two", 0.0, "two"), ("three", 0.0, "two")):
        write(run_id, value)
        publish(record, out, TRACKS)
        assert ask(out, "SELECT value, run_id FROM metrics") == [(value, told)]
    publish_full(record, out, TRACKS)
    assert ask(out, "SELECT value, run_id FROM latest_metrics") == ask(out, "SELECT 0.0, 'two' WHERE false")
    assert ask(out, "SELECT value, run_id FROM metrics") == [(0.0, "two")], "a store built anew says the same"


def test_compare_pairs_the_latest_turns(record: Record, out: Path) -> None:
    results(record, key_of("alpha", DAY), [False] * 5)
    results(record, key_of("alpha", NEXT), [True, True, False, None], answer=["a0", "a1", "a2", None], tokens=[1] * 4)
    results(record, key_of("beta", DAY), [True, False, True, True, True], answer=["b"] * 5, tokens=[2] * 5)
    results(record, key_of("beta", LAST, suite="other"), [True])
    publish(record, out, TRACKS)
    found = run_query(out, "FROM compare_details('alpha', 'beta', 'finqa')").to_pylist()
    assert [row["turn_id"] for row in found] == [f"finqa/c#{index}" for index in range(4)]
    assert [row["change"] for row in found] == ["same", "broken", "fixed", None]
    assert found[1] == {
        "suite": "finqa", "model_a": "alpha", "model_b": "beta", "case_id": "c", "turn_index": 1,
        "turn_id": "finqa/c#1", "sample": 0, "question": "text", "expected": "text",
        "correct_a": True, "correct_b": False, "change": "broken",
        "answer_a": "a1", "answer_b": "b", "tokens_a": 1, "tokens_b": 2,
        "answered_a": None, "answered_b": None,  # no attempt is on record
    }  # fmt: skip
