"""Bad input, first half: suites, model versions and predictions that are wrong; suites without any result."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.providers.base import CallError
from eval_pipeline.stages.checks.readable import check_readable
from eval_pipeline.workspace.asked.scope import Scope, suites_in_scope
from eval_pipeline_tests.support import TWO_CASES, Lab, Puppet, case

DAY = "2026-03-01"
RUN = ("run", "--eval-date", DAY)


def test_wrong_suites_fail_each_with_its_places_and_the_others_run(small: Lab) -> None:
    """One home with every kind of broken suite, one run."""
    folders = {name: small.suite(name) for name in ("no_parse", "no_field", "no_track", "no_feature", "twice")}
    (folders["no_parse"] / "cases" / "alpha.yaml").write_text("id: alpha\nturns: [\n")
    (folders["no_field"] / "cases" / "alpha.yaml").write_text(
        "id: alpha\nturns:\n  - question: why?\n    program: '5'\n"
    )
    (folders["no_track"] / "suite.yaml").write_text("name: no_track\nversion: '1'\ntrack: chess\ncases: cases/*.yaml\n")
    small.suite("no_feature", [case("zeta", ("50", 50.0), features={"has_type3_question": True})])
    small.suite("twice", [{**TWO_CASES[0], "id": "omega"}])
    (folders["twice"] / "cases" / "omega.yaml").write_text(yaml.safe_dump(TWO_CASES[0], sort_keys=False))
    small.suite("my_pages")
    small.suite("my-pages")
    header = small.suite("our.pages") / "suite.yaml"
    header.write_text(header.read_text().replace("our.pages", "our_pages"))
    said = small.cli(*RUN, "--no-report")
    assert said.code == 1
    for told in (
        ("no_parse", "no_parse/cases/alpha.yaml:3", "does not parse"),
        ("no_field", "no_field/cases/alpha.yaml:3: turns.0.answer", "is missing"),
        ("no_field", "no_field/cases/alpha.yaml:1: document", "is missing"),
        ("no_track", "no_track/suite.yaml:3: track", "unknown track 'chess'; known: "),
        ("no_feature", "no_feature/cases/zeta.yaml:", "features.has_type3_question"),
        ("twice", "twice/cases/omega.yaml:1: id", "duplicate id 'alpha', first used at twice/cases/alpha.yaml:1"),
        ("my-pages/suite.yaml:1: name: ",),
        ("our.pages/suite.yaml:1: name: 'our_pages' is not the folder's name 'our.pages'",),
    ):
        assert all(part in said.err for part in told), (told, said.err)
    assert "Traceback" not in said.text
    assert "a fault of eval-pipeline" not in said.err
    assert small.sql("SELECT DISTINCT suite FROM turn_results ORDER BY suite") == [("my_pages",), ("small",)]
    assert "small" in said.out
    again = small.cli("validate")
    assert again.code == 2
    assert "small: 2 cases, 3 turns" in again.out
    for name, code in (("my-pages", 2), ("my_pages", 0)):
        said = small.cli("validate", "--suite", name)
        assert (said.code, "my-pages/suite.yaml:1: name: " in said.err) == (code, code == 2)
    doctor = small.cli("doctor")
    assert doctor.code == 1
    assert "FAIL suite no_track" in doctor.out
    part = suites_in_scope(small.workspace(), ["no_parse", "no_track", "small"], Scope(tags=("easy",)))
    assert sorted(part) == ["no_parse", "no_track", "small"], "what is wrong is told by the run, of a part too"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"provider": "chess"}, "unknown provider 'chess'; allowed: recorded, simulated, oracle, null, anthropic"),
        ({"provider": "oracle", "price": {"input": 1}}, "price.output: is missing"),
        ({"provider": "oracle", "prompt": {"finqua": "plan-1"}}, ":7: prompt.finqua: unknown track; known: "),
        ({"provider": "oracle", "prompt": {"finqa": "plan-7"}}, ":7: prompt.finqa: unknown prompt 'plan-7'; known: c"),
    ],
)
def test_a_wrong_model_version_is_refused_at_load(lab: Lab, entry: dict[str, Any], expected: str) -> None:
    lab.suite()
    lab.versions({"name": "fine", "provider": "oracle"}, {"name": "wrong-one", **entry})
    for arguments in (("plan",), (*RUN, "--no-report")):
        said = lab.cli(*arguments)
        assert said.code == 2
        assert "model_versions.yaml:" in said.err
        assert expected in said.err, said.err
        assert "(model version 'wrong-one')" in said.err
    assert not lab.home.record.exists()


def predictions(lab: Lab, *rows: dict[str, Any] | str) -> tuple[str, ...]:
    file = lab.home.root.parent / "answers.jsonl"
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return ("import", "predictions", str(file), "--suite", "small", "--model-version", "mine")


def row(name: str, index: int, answer: Any = "50", **more: Any) -> dict[str, Any]:
    return {"case_id": name, "turn_index": index, "answer": answer, **more}


def test_wrong_predictions_are_all_told_and_nothing_is_registered(lab: Lab) -> None:
    lab.suite()
    lab.versions({"name": "fine", "provider": "oracle"})
    others = [row("beta", 0, **more) for more in ({"colour": "red"}, {"response": "x"}, {"input_tokens": -5})]
    rows = [row("alpha", 0), row("alpha", 2), row("nobody", 0), "", row("alpha", 0, "51"), "{", *others]
    said = lab.cli(*predictions(lab, *rows))
    assert said.code == 2
    for line, told in (
        (2, "turn_index: case 'alpha' has 2 turns, found index 2 (from 0)"),
        (3, "case_id: the suite has no case 'nobody'"),
        (5, "the same turn was given on line 1"),
        (6, "JSON"),
        (7, "colour: unknown field (--map OURS=colour says what it is, --ignore colour leaves it out)"),
        (8, "expected one of 'response', 'trajectory', 'answer' and 'sql'"),
        (9, "input_tokens"),
    ):
        (sentence,) = [found for found in said.err.splitlines() if f"answers.jsonl:{line}:" in found]
        assert told in sentence
    assert not lab.home.imported_model_versions.exists()
    assert not lab.home.predictions.exists()


def test_predictions_that_are_no_text_not_there_or_under_a_wrong_name_are_told_in_a_sentence(lab: Lab) -> None:
    lab.suite()
    lab.versions({"name": "fine", "provider": "oracle"})
    arguments = predictions(lab, row("alpha", 0))
    file = Path(arguments[2])
    for name in ("mine/again", "-mine", "m" * 121):
        said = lab.cli(*arguments[:-2], f"--model-version={name}")
        assert (said.code, f"'{name}' is not a valid name for a model version" in said.err) == (2, True), said.text
    file.write_bytes(b'{"case_id": "\xff"}\n')
    said = lab.cli(*arguments)
    assert (said.code, "answers.jsonl" in said.err) == (2, True), said.text
    file.unlink()
    said = lab.cli(*arguments)
    assert (said.code, "no file" in said.err) == (2, True)
    assert not lab.home.predictions.exists()


def test_a_turn_without_prediction_is_no_answer_and_counted(lab: Lab) -> None:
    lab.suite()
    lab.versions()
    percent = row("beta", 0, "84", unit="percent", input_tokens=5, output_tokens=2)
    said = lab.cli(*predictions(lab, row("alpha", 0), percent))
    assert said.code == 0, said.text
    assert "2 predictions imported" in said.out
    assert "1 turn without a prediction counts as no answer: small/alpha#1" in said.out
    lab.evaluate(version="mine")
    rows = lab.sql("SELECT case_id, correct, outcome FROM turn_results ORDER BY turn_id")
    assert rows == [("alpha", True, "ran"), ("alpha", False, "call_error"), ("beta", True, "ran")]
    assert lab.sql("SELECT failure_mode, error_message FROM errors") == [
        ("no_answer", "no_prediction: no prediction of sample 0 is recorded for small/alpha#1")
    ]
    ((n, mean),) = lab.sql("SELECT n, mean FROM statistics WHERE metric = 'correct' AND split = 'all'")
    assert (n, mean) == (3, pytest.approx(2 / 3))
    assert lab.one("SELECT sum(call_errors) FROM runs") == 1
    assert lab.evaluate(version="mine", upto="generations")["generations"].reused


def test_a_model_without_a_price_is_told_of_once_at_import(lab: Lab) -> None:
    lab.suite()
    lab.versions()
    arguments = predictions(lab, row("alpha", 0, input_tokens=5, output_tokens=2))
    assert "price" not in lab.cli(*arguments).text
    said = lab.cli(*arguments[:-1], "unpriced", "--priced-as", "nomodel")
    assert said.code == 0, said.text
    assert "note: the price table has no model 'nomodel': dollars will be NULL" in said.err
    assert "2 turns without a prediction count as no answer" in said.out
    said = lab.cli(*arguments[:-1], "priced", "--priced-as", "claude-sonnet-4-5")
    assert (said.code, said.err) == (0, "")


def test_an_empty_suite_and_one_whose_every_turn_failed_run_through(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite("empty", [])
    lab.suite("failing")
    lab.versions({"name": "puppet", "provider": "puppet"})
    puppet.answer = staticmethod(lambda call: CallError(CallErrorKind.BAD_REQUEST, "no"))
    for suite in ("empty", "failing"):
        lab.evaluate(suite, publish=True)
        lab.stage("report", lab.inputs(suite))
    verdicts = [check_readable(lab.inputs(suite)) for suite in ("empty", "failing")]
    assert [verdict.passed for verdict in verdicts] == [True, False]
    assert "only 0 of 3 answers can be read (3 × bad_request)" in verdicts[1].text
    for suite, n, mean in (("empty", 0, None), ("failing", 3, 0.0)):
        ((found_n, found_mean, reason),) = lab.sql(
            f"SELECT n, mean, reason FROM statistics WHERE suite = '{suite}' AND metric = 'correct' AND split = 'all'"
        )
        assert (found_n, found_mean) == (n, mean)
        assert (reason is not None) == (mean is None)
        ((success, reason),) = lab.sql(
            f"SELECT tokens_per_success, reason FROM cost_per_correct_answer WHERE suite = '{suite}'"
        )
        assert success is None
        assert reason
        rows = lab.sql(f"SELECT ceiling, verdict, reason FROM complexity_ceiling WHERE suite = '{suite}'")
        assert rows
        assert all(ceiling is None and verdict for ceiling, verdict, _ in rows)
        folder = lab.home.reports / suite / "puppet" / DAY
        assert (folder / "report.xlsx").is_file()
        assert "reason" in json.dumps(json.loads((folder / "statistics.json").read_text()))
    ((p50, reason),) = lab.sql(
        "SELECT mean, reason FROM statistics WHERE suite = 'failing' AND metric = 'latency_ms_p50'"
    )
    assert p50 is None or p50 == 0
    assert reason
    assert lab.sql("SELECT suite, count(*) FROM errors GROUP BY 1") == [("failing", 3)]
    assert lab.sql("SELECT DISTINCT verdict FROM validation") == [("invalid",)]
