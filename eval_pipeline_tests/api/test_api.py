"""`import eval_pipeline as ep`: runs, tables, comparisons and scores from Python, which leave the process as it was."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import eval_pipeline as ep
from eval_pipeline.core.errors import EvalError, InputError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline_tests.support import SHIPPED, TWO_CASES, Lab, Puppet, case, number

OF_EACH_KIND = ("agents_sample", "finqa_sample", "sql_changes_sample")
"""Answers that act, that are read, and that are executed."""


@pytest.fixture
def ready(lab: Lab, puppet: type[Puppet]) -> Lab:
    lab.suite(cases=[case(f"case_{i:02}", ("50", 50.0)) for i in range(8)])
    lab.versions({"name": "good", "provider": "oracle"}, {"name": "bad", "provider": "null"})
    return lab


def state() -> tuple[Any, ...]:
    """What a call must leave as it was."""
    umask = os.umask(0)
    os.umask(umask)
    settings = [os.environ.get(name) for name in ("EVAL_HOME", "EVAL_DATA", "DAGSTER_HOME")]
    return umask, settings, os.getcwd(), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)


def test_runs_are_compared_and_loaded(ready: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EVAL_HOME", "EVAL_DATA"):
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    place: dict[str, Any] = {"home": ready.home.root, "data": ready.home.data}
    found_so = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as of what a script starts with `&`
    before = state()
    found = ep.run("small", ["good", "bad"], eval_date="2026-03-01", canary=False, **place)
    assert found.ok, found.problems
    assert found.evaluations == ("small/good/2026-03-01", "small/bad/2026-03-01")
    assert list(found.table()["accuracy"]) == [1.0, 0.0]
    assert not ready.home.reports.exists()

    rows = ep.compare("good", "bad", suite="small", **place)
    assert rows[["suite", "model_a", "model_b", "verdict"]].values.tolist() == [["small", "good", "bad", "a_better"]]

    tables = ep.load("small", "good", home=ready.home.root)
    turns, exact = tables["turn_results"], tables.arrow("turn_results")  # type: ignore[union-attr]
    assert len(turns) == exact.num_rows == 8
    assert set(turns["model_version"]) == {"good"}
    assert exact.schema.field("correct").type == "bool"
    assert state() == before
    signal.signal(signal.SIGINT, found_so)


def test_a_run_in_a_notebook_has_an_event_loop_around_it(ready: Lab) -> None:
    async def cell() -> Any:
        return ep.run("small", "good", sample_size=2)

    before = state()
    found = asyncio.run(cell())
    assert found.ok
    assert found.table().loc[0, "turns"] == 2
    assert found.table().loc[0, "scope"] != "full"
    assert state() == before


def test_a_run_that_breaks_says_so_and_raises_nothing(ready: Lab) -> None:
    (ready.home.data / "suites" / "small" / "cases" / "bad.yaml").write_text("id: [")
    found = ep.run("small", "good")
    assert not found.ok
    assert found.evaluations == ()
    assert "bad.yaml" in " ".join(found.problems)
    assert found.table().empty


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ep.run("nope"), "unknown suite 'nope'; known: small"),
        (lambda: ep.run("small", "nope"), "unknown model version 'nope'; known: good, bad"),
        (lambda: ep.run("small", "good", eval_date="soon"), "'soon' is not a date; expected YYYY-MM-DD"),
        (lambda: ep.run("small", "good", cases=["nope"]), "nope"),
        (lambda: ep.compare("good"), "name two or more different model versions"),
        (lambda: ep.compare("good", "bad"), "no suite has evaluations of two of good, bad"),
        (lambda: ep.load("a/b", "c"), "a model version needs the name of a suite before it"),
        (lambda: ep.score("nope", {"a#0": "x"}), "there is no suite 'nope' in "),
        (lambda: ep.score("small", {}), "no answers were given"),
        (lambda: ep.score(list(TWO_CASES), {"alpha#0": "x"}), "need the name of their track"),
        (lambda: ep.score("small", {"nobody#0": "x"}), "nobody"),
        (lambda: ep.score(list(TWO_CASES), {"alpha#0": "x"}, track="nope"), "unknown track 'nope'"),
    ],
)
def test_requests_that_cannot_be_carried_out_are_one_sentence(call: Any, message: str, ready: Lab) -> None:
    (ready.home.root).mkdir(exist_ok=True)
    with pytest.raises(EvalError) as caught:
        call()
    assert message in str(caught.value)


def test_without_a_suite_it_says_where_it_looked(lab: Lab) -> None:
    with pytest.raises(UsageError, match=r"there is no suite in .*data/suites or "):
        ep.run()


def oracle_answers(folder: Path, count: int) -> dict[str, str]:
    """The right responses to the first cases of a suite, by turn."""
    source, name = read_header(folder), folder.name
    found, track = read_suite(source), source.track()
    cases = [found.scored.case(one) for one in found.cases[:count]]
    return {turn.id.removeprefix(f"{name}/"): track.oracle(turn) for one in cases for turn in one.turns}


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_answers_of_every_kind_are_scored_without_a_home(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EVAL_DATA", str(tmp_path / "data"))
    folder = Lab(Home(tmp_path / "home", tmp_path / "data")).shipped(name, 2)
    answers = oracle_answers(folder, 1)
    last = list(answers)[-1]
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "never"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "tmp").mkdir()
    before = state()
    found = ep.score(name, answers | {last: "this is no answer"})
    by_turn = found.to_pandas().set_index("turn_id")["correct"]
    assert {turn.removeprefix(f"{name}/"): bool(right) for turn, right in by_turn.items()} == {
        turn: turn != last for turn in answers
    }
    assert found.accuracy == pytest.approx((len(answers) - 1) / len(answers))
    assert {"metrics", "statistics", "turn_results"} <= set(found.tables)
    assert not (tmp_path / "never").exists()
    assert not [path for path in (tmp_path / "tmp").iterdir() if path.name.startswith("eval-pipeline-")]
    assert state() == before


ROWS = [
    {"case_id": "alpha", "turn_index": 0, "response": number(50)},
    {"turn_id": "alpha#1", "answer": "57.0"},
    {"turn_id": "made/beta#0", "answer": 3},
]


@pytest.mark.parametrize(
    "answers",
    [
        ROWS,
        iter(ROWS),
        pd.DataFrame(ROWS),
        {"alpha": number(50), "alpha#1": {"answer": "57.0"}, "beta": {"answer": 3}},
    ],
    ids=["rows", "iterator", "DataFrame", "mapping"],
)
def test_answers_come_in_several_forms(answers: Any, lab: Lab, tmp_path: Path) -> None:
    folder = Lab.at(tmp_path / "elsewhere").suite("made")
    found = ep.score(folder, answers)
    told = found.to_pandas().set_index("turn_id")["correct"]
    assert told.to_dict() == {"made/alpha#0": True, "made/alpha#1": True, "made/beta#0": False}
    with pytest.raises(UsageError, match=r"the scores have no table 'nope'; they have .*statistics"):
        found.to_pandas("nope")


def test_cases_need_no_suite_and_unanswered_cases_are_left_out(lab: Lab) -> None:
    found = ep.score(list(TWO_CASES), {"alpha#0": number(50)}, track="finqa")
    told = found.to_pandas().set_index("turn_id")["correct"]
    assert told.to_dict() == {"given_cases/alpha#0": True, "given_cases/alpha#1": False}
    assert found.accuracy == 0.5
    with pytest.raises(InputError, match=r"cases.yaml"):
        ep.score([{"id": "x"}], {"x": "y"}, track="finqa")


def test_model_written_code_runs_in_the_sandbox_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
    (first, *_) = oracle_answers(SHIPPED / "suites" / "pandas_sample", 1)
    mark = tmp_path / "escaped"
    code = f"open({str(mark)!r}, 'w').write('x')\nimport os\nos.kill(os.getppid(), 9)\nresult = 1"
    found = ep.score("pandas_sample", {first: json.dumps({"code": code})})
    assert found.accuracy == 0.0
    assert not mark.exists()


def test_calls_of_several_threads_wait_for_each_other(lab: Lab, tmp_path: Path) -> None:
    before = state()
    found: list[float | None] = []
    threads = [
        threading.Thread(
            target=lambda right=right: found.append(  # type: ignore[misc]
                ep.score(list(TWO_CASES), {"beta": number(right)}, track="finqa").accuracy
            )
        )
        for right in (0.84, 7)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0, 1.0]  # type: ignore[type-var]
    assert state() == before


def test_the_import_brings_nothing_with_it() -> None:
    program = "import sys; before = set(sys.modules); import eval_pipeline as ep; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    brought = set(done.stdout.split())
    assert [name for name in brought if name.startswith("eval_pipeline")] == ["eval_pipeline"]
    assert {name.partition(".")[0] for name in brought} <= {*sys.stdlib_module_names, "eval_pipeline"}
    assert not brought & {"asyncio", "pathlib", "inspect", "dataclasses"}


def test_the_interface_is_documented() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "python-api.md").read_text("utf-8")
    assert [name for name in ep.__all__ if f"ep.{name}" not in guide and name != "__version__"] == []
