"""Logs of any tool, told apart by their content, as suites with answers and the log's own verdicts."""

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.operations.recorded import log_suites
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline.operations.recorded.forms import ALL_LOGS
from eval_pipeline.operations.recorded.log_suites import _cases, parted
from eval_pipeline.operations.recorded.logs import recognised
from eval_pipeline.operations.recorded.mapping import NO_ANSWER, FieldMapping
from eval_pipeline.statistics.raters.agreement import cohens_kappa
from eval_pipeline.store.published import ddl
from eval_pipeline_plugins.data_sets.text import read_rows
from eval_pipeline_plugins.logs.texts import day_of, expected_answers, question_text, said_text, verdict_of
from eval_pipeline_plugins.tracks.text.cases.case_file import read_case
from eval_pipeline_plugins.tracks.text.cases.settings import TextOptions
from eval_pipeline_plugins.tracks.text.comparing.scoring import is_correct
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import Lab

LOGS = Path(__file__).parent / "recorded_logs"


def entries(file: Path) -> list[Entry]:
    form = recognised(file)
    return list(ALL_LOGS.load(form, ALL_LOGS.get(form).place)(file))


@pytest.mark.parametrize("row", golden("logs.yaml"), ids=lambda row: row["file"])
def test_what_is_read_from_a_log(row: dict[str, Any]) -> None:
    file = LOGS / row["file"]
    assert recognised(file) == row["form"]
    found = entries(file)
    tasks = [entry.task for entry in found if entry.task]
    assert {task.question: list(task.expected) for task in tasks} == row["cases"]
    if "answers" in row:
        said: dict[str, list[Any]] = {}
        for entry in found:
            answer = [entry.given.get("response"), entry.given.get("source_correct")]
            said.setdefault(str(entry.given.get("model", "")), []).append(answer)
        assert said == row["answers"]
    if "first" in row:
        told = {"response", "source_correct", "model"}
        assert {name: value for name, value in found[0].given.items() if name not in told} == row["first"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Why?", "Why?"),
        ({"question": "Why?", "context": "c"}, "Why?"),
        ('{"question": "Why?"}', "Why?"),
        ([{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "Why?"}]}], "Why?"),
        (
            [{"role": r, "content": c} for r, c in (("user", "Hi"), ("assistant", "Yes?"), ("user", "Why?"))],
            "[user]\nHi\n\n[assistant]\nYes?\n\n[user]\nWhy?",
        ),
        ({"messages": [{"role": "user", "content": "Why?"}]}, "Why?"),
        ({"a": 1, "b": 2}, '{"a":1,"b":2}'),
        ("[not JSON]", "[not JSON]"),
    ],
)
def test_a_question_is_text_whatever_its_form(value: Any, text: str) -> None:
    assert question_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("Oslo", "Oslo"),
        (42, "42"),
        ({"role": "assistant", "content": "Oslo"}, "Oslo"),
        ({"choices": [{"message": {"content": "Oslo"}}]}, "Oslo"),
        ([{"message": {"content": "Oslo"}}], '[{"message":{"content":"Oslo"}}]'),
        ([{"type": "reasoning", "text": "hm"}, {"type": "output_text", "text": "Oslo"}], "Oslo"),
        ({"answer": "Oslo"}, "Oslo"),
        ({"answer": "Oslo", "sure": True}, '{"answer":"Oslo","sure":true}'),
    ],
)
def test_an_answer_is_text_whatever_its_form(value: Any, text: str) -> None:
    assert said_text(value) == text


def test_small_values_of_logs() -> None:
    assert expected_answers(["a", "b"]) == ("a", "b")
    assert expected_answers({"answer": "a"}) == ("a",)
    assert expected_answers({"a": 1, "b": 2}) == ({"a": 1, "b": 2},)
    assert expected_answers("") == ()
    assert [verdict_of(scores) for scores in ({"a": "C"}, {"a": 1, "b": 0.5}, {"a": 1, "b": 0}, {"a": 0.5}, {})] == [
        True,
        True,
        None,
        None,
        None,
    ]
    assert [day_of(moment) for moment in ("2026-11-20T10:00:00Z", 1763632800, 1763632800000, "x", True)] == [
        "2026-11-20",
        "2025-11-20",
        "2025-11-20",
        None,
        None,
    ]


def logged(*tasks: LoggedTask) -> list[Entry]:
    return [Entry(None, given={"response": "x"}, found={"q": task.question}, task=task) for task in tasks]


def test_cases_are_the_distinct_tasks_of_a_log() -> None:
    notes: list[str] = []
    same, other = LoggedTask("1", "Why?", ("a", "b"), ("t",)), LoggedTask("1", "How?", ("c",))
    cases, kept = _cases(
        Path("f"), logged(same, same, other, LoggedTask("", "Who?", ("d",)), LoggedTask("2", "When?")), notes
    )
    assert [(case["question"], case["answer"], case.get("accept"), case.get("tags")) for case in cases] == [
        ("Why?", "a", ["b"], ["t"]),
        ("How?", "c", None, None),
        ("Who?", "d", None, None),
    ]
    names = [entry.given["case_id"] for entry in kept]
    assert names[0] == names[1] == "1" and names[2].startswith("1-") and names[3].startswith("case-")
    assert notes == ["1 of 5 entries do not tell question and right answer, and are left out"]


def test_solutions_of_gsm8k_end_in_their_answer() -> None:
    notes: list[str] = []
    cases, _ = _cases(
        Path("f"), logged(LoggedTask("1", "Q", ("2+2 is 4\n#### 4",)), LoggedTask("2", "R", ("#### 1,000",))), notes
    )
    assert [case["answer"] for case in cases] == ["4", "1,000"]
    assert "'####'" in notes[0]


def test_a_log_without_golds_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"no entry tells its right answer: --map expected=FIELD .*there are q\)"):
        _cases(Path("f"), logged(LoggedTask("1", "Why?")), [])


def test_fields_of_tasks_are_told_from_those_of_answers() -> None:
    assert parted(["question=a.b", "response=c", "expected=d"]) == (
        {"question": "a.b", "expected": "d"},
        ["response=c"],
    )


def test_an_answer_whose_name_the_user_knows_is_no_missing_one(tmp_path: Path) -> None:
    rows = [{"doc": {"question": "Why?"}, "target": "x", "out": "y"}, {"question": "How?", "out": None}]
    rows.append({"question": "Who?", "out": "z", "error": "cut off"})
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    mapped = FieldMapping.of(["response=out"])
    found = [mapped.applied(entry.given, entry.found) for entry in entries(file)]
    assert [(row.get("response"), row.get("error")) for row in found] == [
        ("y", None), (None, NO_ANSWER), ("z", "cut off"),
    ]  # fmt: skip


def test_kappa_of_source_agreement_is_that_of_the_statistics() -> None:
    sql = ddl.__file__ and Path(ddl.__file__).with_name("views.sql").read_text()
    views = re.findall(r"CREATE VIEW source_\w+ AS\n.*?;\n", sql, re.DOTALL)
    assert len(views) == 2
    draws = np.random.default_rng(20261128)
    with duckdb.connect() as store:
        store.execute(
            "CREATE TABLE turn_results AS SELECT 's' AS suite, 'm' AS model_version, DATE '2026-01-01' AS eval_date, "
            "'' AS turn_id, 0 AS sample, true AS correct, '' AS cluster, '' AS question, '' AS expected, '' AS answer "
            "LIMIT 0"
        )
        store.execute(
            "CREATE TABLE attempts AS SELECT suite, model_version, eval_date, turn_id, sample, 0 AS number, "
            "'{}'::JSON AS metadata FROM turn_results"
        )
        for view in views:
            store.execute(view)
        drawn = {}
        for model in range(12):
            count = int(draws.integers(4, 60))
            ours, theirs = draws.random(count) < 0.6, draws.random(count) < 0.5
            theirs = np.where(draws.random(count) < 0.5, ours, theirs)
            clusters = draws.integers(0, 8, count)
            drawn[f"m{model}"] = cohens_kappa(ours, theirs, clusters)
            judged = [json.dumps({"source": {"correct": bool(one)}}) for one in theirs]
            rows = [(f"m{model}", turn, bool(ours[turn]), clusters[turn], judged[turn]) for turn in range(count)]
            values = ", ".join(
                f"('s', '{m}', DATE '2026-01-01', '{t}', 0, {c}, '{k}', '', '', '')" for m, t, c, k, _ in rows
            )
            store.execute(f"INSERT INTO turn_results VALUES {values}")
            values = ", ".join(f"('s', '{m}', DATE '2026-01-01', '{t}', 0, 0, '{j}')" for m, t, _, _, j in rows)
            store.execute(f"INSERT INTO attempts VALUES {values}")
        found = store.execute(
            "SELECT model_version, n, clusters, agreement, kappa, kappa_se FROM source_agreement"
        ).fetchall()
    assert len(found) == 12
    for model_version, n, clusters, agreement, kappa, se in found:
        wanted = drawn[model_version]
        assert (n, clusters) == (wanted.n, wanted.clusters)
        for got, want in ((agreement, wanted.observed), (kappa, wanted.kappa), (se, wanted.se)):
            assert got == (None if want is None else pytest.approx(want, rel=1e-12))


@pytest.mark.always
def test_a_log_becomes_suite_answers_and_agreement(lab: Lab, tmp_path: Path) -> None:
    said = lab.cli("import", "log", str(LOGS / "rows.csv"), "--suite", "capitals").text
    assert "recognised as rows" in said and "kept of 6 of 6 answers" in said
    assert "next: eval-pipeline run --suite capitals --model-version model-a --model-version model-b" in said
    assert lab.cli("run", "--suite", "capitals", "--model-version", "model-a", "--no-report").code == 0
    assert lab.sql("SELECT n, both_right, only_ours, only_theirs, both_wrong FROM source_agreement") == [
        (3, 2, 0, 0, 1)
    ]
    # The same questions in another tool's log are assigned to the suite that exists.
    said = lab.cli("import", "log", str(LOGS / "deepeval.json"), "--suite", "capitals").text
    assert "the suite 'capitals' exists" in said and "3 predictions imported as model version 'gpt-4o-mini'" in said
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"question": "Why?", "response": ""}\n')
    assert "no entry tells its right answer" in lab.cli("import", "log", str(bad)).text
    assert not (lab.home.imported_suites / "bad").exists()


@pytest.mark.parametrize(
    ("expected", "is_contained", "said_of_it"),
    [
        (["Paris"], True, "contains"),
        (["the North Sea"], True, "contains"),
        (["It is the sea to the north"], False, ""),
        (["No"], False, "not only to contain it, as 'No'"),
        (["Paris", "No"], False, "not only to contain it, as 'No'"),
        ([42], False, ""),
    ],
)
def test_short_right_answers_may_be_given_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: list[Any], is_contained: bool, said_of_it: str
) -> None:
    made: list[Any] = []
    notes: list[str] = []
    monkeypatch.setattr(log_suites, "import_at_arms_length", lambda *told: made.append(told[-1]))
    log_suites._made(tmp_path, "rows", "s", [{"question": "Q?", "answer": one} for one in expected], None, notes)
    assert bool(notes) == bool(said_of_it) and said_of_it in "".join(notes)
    assert made[0].metric == ("contains" if is_contained else "")
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"id": "a", "question": "Where?", "answer": "Paris"}))
    cases, options = read_rows(rows, None, {}, None, metric="contains")
    case = read_case(cases[0], "s", "f", 1, TextOptions.model_validate(options))
    said = {"Paris": 1, "It is Paris.": 1, "It is not Paris.": 0, "Paris or London": 0, "London": 0, "Parisian": 0}
    assert {text: is_correct(text, case, case.turns[0]) for text in said} == said
