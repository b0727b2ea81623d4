"""`plan`, `validate`, `publish`, `report`, `query`, `doctor`: what they say and how they end."""

import csv
import io
import json
import re
from datetime import date

import duckdb
import pyarrow.parquet as pq
import pytest

from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.homes.kept import keep
from eval_pipeline_tests.chains import compared
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, command, number, python


def planned(text: str) -> list[str]:
    """Turns, journalled ones and calls of the only plan in a text."""
    (line,) = re.findall(r"(?m)^  turns +(.*)$", text)
    return re.findall(r"[\d,]*\d", line)


def test_a_plan_counts_what_the_journal_answers_and_asks_nothing(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite()
    lab.versions({"name": "puppet", "provider": "puppet", "max_tokens": 50, "price": {"input": 0, "output": 1000}})
    said = lab.cli("plan")
    assert said.code == 0, said.text
    assert said.out.startswith("small · puppet\n")
    assert planned(said.out) == ["3", "0", "3"]
    assert "output    at most 150 tokens\n  cost      at most $0.1500" in said.out
    lab.evaluate(scope=Scope(cases=("alpha",)))
    puppet.reset()
    assert planned(lab.cli("plan").out) == ["3", "2", "1"]
    assert planned(lab.cli("plan", "--case", "alpha").out) == ["2", "2", "0"]
    assert planned(lab.cli("plan", "--tag", "hard").out) == ["1", "0", "1"]
    assert planned(lab.cli("plan", "--fresh").out) == ["3", "0", "3"]
    assert len(planned(lab.cli("plan", "--sample-size", "1").out)) == 3
    assert not puppet.asked


def test_a_plan_counts_the_responses_that_the_date_holds(small: Lab) -> None:
    """A plain run after a fresh one of the same date keeps its responses; on another date it asks."""
    small.evaluate(epoch="tonight")
    assert planned(small.cli("plan", "--eval-date", DAY.isoformat()).out) == ["3", "3", "0"]
    assert planned(small.cli("plan", "--eval-date", "2026-03-02").out) == ["3", "0", "3"]
    assert planned(small.cli("plan", "--eval-date", DAY.isoformat(), "--fresh").out) == ["3", "0", "3"]
    said = small.cli("plan")
    assert planned(said.out) == ["3", "0", "3"]
    assert "cost      unknown: the model has no price" in said.out
    small.evaluate(day=date.today(), epoch="tonight")
    assert planned(small.cli("plan").out) == ["3", "3", "0"]


def test_a_plan_of_imported_predictions_asks_and_spends_nothing(lab: Lab) -> None:
    lab.suite()
    lab.versions()
    file = lab.home.root.parent / "answers.jsonl"
    file.write_text('{"case_id": "alpha", "turn_index": 0, "answer": 50}\n')
    names = ("--suite", "small", "--model-version", "mine")
    assert lab.cli("import", "predictions", str(file), *names, "--priced-as", "claude-sonnet-4-6").code == 0
    assert lab.cli("plan", *names).out.splitlines() == [
        "small · mine",
        "  turns     3, read from imported predictions: the model is not asked",
    ]


def test_validate_names_what_is_wrong_and_exits_with_how_wrong_it_is(lab: Lab) -> None:
    folder = lab.suite("fine")
    (folder / "cases" / "nothing.yaml").write_text("# later\n")
    lab.versions({"name": "oracle", "provider": "oracle"})
    said = lab.cli("validate")
    assert said.code == 0
    assert "fine/cases/nothing.yaml: holds no case" in said.err
    for told in ("fine: 2 cases, 3 turns", "gold of all 3 turns holds", "score 1.0 and no answer 0.0 on all 3 turns"):
        assert told in said.out
    lab.suite("wrong", [case("one", ("50", 50.0), ("add(50, 7)", 99.0))])
    said = lab.cli("validate")
    assert said.code == 1
    assert "wrong/one#1: " in said.err
    assert "it cannot be scored and is in no figure" in said.err
    for told in ("wrong: 1 case, 2 turns", "gold of 1 of 2 turns does not hold", "0.0 on all 1 turn\n"):
        assert told in said.out
    broken = lab.suite("broken")
    (broken / "cases" / "beta.yaml").write_text("id: beta\n")
    said = lab.cli("validate")
    assert said.code == 2
    assert "broken/cases/beta.yaml:1: turns: is missing" in said.err
    assert "wrong/one#1: " in said.err
    lab.suite("misnamed", track="chess")
    assert [lab.cli("validate", "--suite", name).code for name in ("fine", "wrong", "misnamed")] == [0, 1, 2]
    lab.versions({"name": "claude", "provider": "anthropic", "model": "m", "sampling": {"temperature": 0}})
    said = lab.cli("validate", "--suite", "fine")
    assert said.code == 2
    assert "sampling.temperature: unknown field" in said.err
    assert "gold answers score 1.0" in said.out


def test_a_file_without_any_prediction_is_told(lab: Lab) -> None:
    lab.suite()
    lab.versions({"name": "oracle", "provider": "oracle"})
    empty = lab.home.data / "empty.jsonl"
    empty.touch()
    said = lab.cli("import", "predictions", str(empty), "--suite", "small", "--model-version", "mute")
    assert f"{empty}: holds no prediction" in said.err


def test_a_plan_of_what_failed_before(small: Lab, puppet: type[Puppet]) -> None:
    puppet.answer = staticmethod(lambda call: number(-1) if call.case_id == "beta" else call.gold.oracle())
    assert "needs an earlier evaluation" in small.cli("plan", "--failed").err
    small.evaluate()
    assert planned(small.cli("plan", "--failed", "--fresh").out)[0] == "1"
    assert planned(small.cli("plan", "--fresh").out)[0] == "3"


def test_an_edited_file_of_predictions_is_told_at_the_run(lab: Lab) -> None:
    lab.suite()
    lab.versions()
    file = lab.home.root.parent / "answers.jsonl"
    file.write_text('{"case_id": "alpha", "turn_index": 0, "answer": "50"}\n')
    assert lab.cli("import", "predictions", str(file), "--suite", "small", "--model-version", "mine").code == 0
    lab.evaluate(version="mine", upto="turn_metrics")
    (imported,) = lab.home.predictions.rglob("*.jsonl")
    imported.write_text(imported.read_text().replace("50", "51"))
    said = lab.cli("run", "--no-report", "--model-version", "mine", "--eval-date", DAY.isoformat())
    assert said.code == 1
    assert f"{imported}: was changed since it was imported" in said.err


def test_publish_report_and_query(small: Lab) -> None:
    small.evaluate()
    said = small.cli("query", "SELECT 1")
    assert said.code == 2
    assert "run `eval-pipeline run` first" in said.err
    said = small.cli("publish")
    assert said.code == 0
    assert str(small.home.store) in said.out
    contents = small.store_contents()
    assert ": 0 partitions replaced" in small.cli("publish").out
    assert ": 0 partitions" not in small.cli("publish", "--full").out
    assert small.store_contents() == contents

    sql = "SELECT turn_id, correct, tokens, usd FROM turn_results ORDER BY turn_id LIMIT 2"
    assert list(csv.reader(io.StringIO(small.cli("query", sql, "--format", "csv").out))) == [
        ["turn_id", "correct", "tokens", "usd"],
        ["small/alpha#0", "True", "110", ""],
        ["small/alpha#1", "True", "110", ""],
    ]
    assert json.loads(small.cli("query", sql, "--format", "json").out)[0] == {
        "turn_id": "small/alpha#0",
        "correct": True,
        "tokens": 110,
        "usd": None,
    }
    table = pq.read_table(io.BytesIO(small.cli("query", sql, "--format", "parquet").raw))
    assert table.to_pydict()["tokens"] == [110, 110]
    drawn = small.cli("query", sql)
    assert drawn.code == 0
    (line,) = [line for line in drawn.out.splitlines() if "small/alpha#1" in line]
    assert line.split() == ["small/alpha#1", "True", "110", "NULL"]
    for sql, sentence in (
        ("SELECT nothing FROM turn_results", "nothing"),
        ("SELEC 1", "syntax error"),
        ("DROP TABLE turn_results", "read-only"),
        ("COPY turn_results TO '/tmp/stolen.csv'", "disabled"),
    ):
        said = small.cli("query", sql)
        assert said.code == 2
        assert sentence in said.err, said.err
        assert len(said.err.strip().splitlines()) == 1
    assert small.cli("query", "SELECT 1", "--format", "xml").code == 2
    assert small.store_contents() == contents


@pytest.mark.always
def test_report_writes_the_newest_evaluation_or_the_one_asked_for(small: Lab) -> None:
    said = small.cli("report")
    assert said.code == 2
    assert "no such evaluation" in said.err
    small.evaluate()
    small.evaluate(day=date(2026, 3, 5))
    said = small.cli("report")
    assert said.code == 0
    assert said.out.strip().endswith("small/puppet/2026-03-05")
    said = small.cli("report", "--eval-date", DAY.isoformat())
    assert said.code == 0
    assert (small.home.reports / "small" / "puppet" / DAY.isoformat() / "report.xlsx").is_file()


def test_doctor_of_a_sound_home(small: Lab) -> None:
    small.evaluate()
    compared(small.workspace(), "small")
    small.stage("published")
    keep(small.home.expected / "outcome-1.json", "x" * 700_000)
    said = small.cli("doctor")
    assert said.code == 0, said.text
    assert "FAIL" not in said.out
    assert "700 kB of results to use again, of at most 1.07 GB" in " ".join(said.out.split())
    for topic in (
        "eval-pipeline",
        "duckdb",
        "disk",
        "kept",
        "suite small",
        "model versions: 1",
        "journal",
        "record",
        "store",
    ):
        assert f"ok   {topic}" in said.out, topic


def test_an_error_is_one_sentence_and_with_debug_a_trace(lab: Lab) -> None:
    said = lab.cli("query", "SELECT 1")
    assert (said.code, said.out) == (2, "")
    assert len(said.err.strip().splitlines()) == 1
    with pytest.raises(EvalError):
        lab.cli("--debug", "query", "SELECT 1")
    with pytest.raises(UsageError):
        lab.cli("query", "SELECT 1", "--format", "xml", "--debug")
    child = lab.child("--debug", "query", "SELECT 1")
    assert "Traceback" in child.stderr
    assert child.returncode == 1


def test_a_fault_of_the_program_is_said_to_be_one(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("eval_pipeline.store.published.query.run_query", fault)
    said = lab.cli("query", "SELECT 1")
    assert said.code == 1
    assert "ZeroDivisionError: oops (a fault of eval-pipeline; --debug shows where)" in said.err


LAZY = """
import contextlib, io, sys
from eval_pipeline.cli.app import command_line
for line in sys.argv[1:]:
    sys.argv = ["eval-pipeline", *line.split("|")]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
        code = command_line()
    large = {"dagster", "scipy", "pandas", "openpyxl", "pyarrow", "duckdb", "pydantic_core"}
    heavy = sorted({name.partition(".")[0] for name in sys.modules} & large)
    ours = sum(name.startswith("eval_pipeline.") for name in sys.modules)
    print(line.split("|")[0], code, ours, ",".join(heavy), err.getvalue().strip())
"""


def test_no_command_loads_dagster_and_none_what_it_does_not_need(lab: Lab) -> None:
    lab.suite()
    lab.versions({"name": "stand-in", "provider": "oracle"})
    assert lab.cli("run", "--no-report", "--eval-date", str(DAY)).code == 0
    file = lab.home.root / "answers.jsonl"
    file.write_text(json.dumps({"case_id": "alpha", "turn_index": 0, "answer": "50"}) + "\n")
    lines = [
        "--help",
        "--version",
        f"run|--model-version|stand-in|--no-report|--eval-date|{DAY}",  # all is up to date
        "query|SELECT 1",
        "plan",
        "validate",
        f"import|predictions|{file}|--suite|small|--model-version|mine",
        "publish",
        "run|--model-version|stand-in|--no-report|--eval-date|2026-03-02",
    ]
    child = python(lab, "-c", LAZY, *lines)
    found = [line.split(" ", 3) for line in child.stdout.splitlines()]
    assert [(name, code) for name, code, *_ in found] == [(line.split("|")[0], "0") for line in lines], child.stderr
    assert not any("dagster" in heavy for *_, heavy in found), found
    # These must start at once; typer itself reads options with pydantic.
    at_once = [(name, heavy.partition(" ")[0]) for name, _, _, heavy in found[:4]]
    assert at_once == [
        ("--help", ""),
        ("--version", "pydantic_core"),
        ("run", "pyarrow,pydantic_core"),
        ("query", "duckdb,pyarrow,pydantic_core"),
    ]
    assert int(found[2][2]) < 300, "modules of ours: no code of stages, and no track but the suite's"


@pytest.mark.always
def test_a_store_that_another_program_has_changed_is_told(small: Lab) -> None:
    small.evaluate(publish=True)
    assert "changed" not in small.cli("query", "SELECT 1").err
    with duckdb.connect(str(small.home.store)) as connection:
        connection.execute("UPDATE turn_results SET correct = NOT correct")
    said = small.cli("query", "SELECT 1")
    assert said.code == 0
    assert "another program has changed the store" in said.err
    assert "`eval-pipeline publish` mends it" in said.err
    assert "was changed since it was published, by another program" in " ".join(small.cli("doctor").text.split())
    assert small.cli("publish").code == 0
    assert "changed" not in small.cli("query", "SELECT 1").err
    small.home.store.write_bytes(small.home.store.read_bytes())  # as `cp -r` leaves it
    assert "changed" not in small.cli("query", "SELECT 1").err


def test_commands_that_are_near_to_a_mistyped_one_are_named() -> None:
    said = command("rescoer")
    assert (said.code, "No such command 'rescoer'. Did you mean 'rescore'" in said.err) == (2, True), said.text
