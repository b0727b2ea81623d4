"""`eval-pipeline run`: parts of a suite, gates, dates, freshness, exit codes; and `suite report`."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import pytest

from eval_pipeline.cli.evaluating import running
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.days import today
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.runs import fresh_epoch
from eval_pipeline_tests.chains import with_metrics
from eval_pipeline_tests.fakes.logged import PLACE
from eval_pipeline_tests.support import DAY, ROOT, Lab, Puppet, case, number

DATED = ("--eval-date", DAY.isoformat())
RUN = ("run", "--no-report", *DATED)


def many(lab: Lab, count: int = 12) -> None:
    """Conversations of two turns; half of them tagged."""
    cases = [case(f"c{i:02}", ("50", 50.0), ("7", 7.0), tags=["even"] if i % 2 == 0 else []) for i in range(count)]
    lab.suite(cases=cases)
    lab.versions({"name": "puppet", "provider": "puppet"}, {"name": "worse", "provider": "puppet", "active": False})


def test_gates_decide_the_exit_code(small: Lab, puppet: type[Puppet]) -> None:
    puppet.answer = staticmethod(lambda call: number(-1) if call.case_id == "beta" else call.gold.oracle())
    small.evaluate()
    assert small.cli(*RUN).code == 0
    assert small.cli(*RUN, "--fail-below", "correct=0.66").code == 0
    said = small.cli(*RUN, "--fail-below", "correct=0.67", "--fail-below", "numerical_match=0.9")
    assert said.code == 1
    assert "small, puppet: correct is 66.7%, the gate is 67%" in said.err
    assert "numerical_match is 66.7%, the gate is 90%" in said.err
    no_gates = [(gate, "is not a gate") for gate in ("correct", "correct=much", "correct=nan", "correct=-inf")]
    for gate, sentence in (*no_gates, ("nope=0.5", "no metric 'nope'")):
        said = small.cli(*RUN, "--fail-below", gate)
        assert said.code == 2
        assert sentence in said.err


def test_a_baseline_is_a_gate_where_the_loss_is_significant(lab: Lab, puppet: type[Puppet]) -> None:
    many(lab)
    lab.evaluate()
    puppet.answer = staticmethod(lambda call: number(-1) if call.turn_index == 0 else call.gold.oracle())
    lab.home.journal.unlink()
    lab.evaluate(version="worse")
    said = lab.cli(*RUN, "--model-version", "worse", "--baseline", "puppet")
    assert said.code == 1
    assert "small, worse: worse than puppet on 24 turns: −50 points [−59 to −27]" in said.err
    assert lab.cli(*RUN, "--model-version", "puppet", "--baseline", "worse").code == 0
    said = lab.cli(*RUN, "--baseline", "nobody")
    assert said.code == 2
    assert "unknown model version 'nobody'" in said.err
    # A loss on one conversation may be chance.
    lab.versions({"name": "puppet", "provider": "puppet"}, {"name": "other", "provider": "puppet", "model": "o"})
    puppet.answer = staticmethod(lambda call: number(-1) if call.turn_id == "small/c00#0" else call.gold.oracle())
    lab.evaluate(version="other")
    assert lab.cli(*RUN, "--model-version", "other", "--baseline", "puppet").code == 0


def test_a_loss_overnight_fails_the_run_however_often_it_is_asked_for(lab: Lab, puppet: type[Puppet]) -> None:
    many(lab)
    lab.evaluate()
    puppet.answer = staticmethod(lambda call: number(-1) if call.turn_index == 0 else call.gold.oracle())
    night = ("run", "--no-report", "--suite", "small", "--model-version", "puppet", "--eval-date")
    asked = [lab.cli(*night, "2026-03-02", *more) for more in (["--fresh"], [])]
    assert [said.code for said in asked] == [1, 1]
    assert all(said.err.count("puppet: −50 points [") == 1 for said in asked), [said.err for said in asked]
    assert lab.cli(*night, DAY.isoformat()).code == 0, "the night before lost nothing"


def test_a_sample_is_seeded_whole_recorded_and_never_shown_before_a_full_evaluation(
    lab: Lab, puppet: type[Puppet]
) -> None:
    many(lab)
    lab.evaluate(publish=True)
    puppet.reset()
    lab.home.journal.unlink()
    said = lab.cli(
        "run", "--no-report", "--eval-date", "2026-03-02", "--sample-size", "3", "--seed", "5", "--suite", "small"
    )
    assert said.code == 0, said.text
    assert "cases left out, part" in said.out
    expected = [f"{found.id}#{i}" for found in Scope(3, 5).select(lab.workspace().cases("small")) for i in range(2)]
    assert puppet.turns_asked() == expected
    ((scope, turns, cases),) = lab.sql(
        "SELECT scope, turns_planned, cases_planned FROM runs WHERE eval_date = '2026-03-02'"
    )
    assert (json.loads(scope), turns, cases) == ({"sample_size": 3, "seed": 5}, 6, 3)
    assert lab.sql("SELECT eval_date::VARCHAR, count(*) FROM turn_results GROUP BY 1 ORDER BY 1") == [
        ("2026-03-01", 24),
        ("2026-03-02", 6),
    ]
    assert lab.sql("SELECT DISTINCT eval_date::VARCHAR FROM latest_turn_results") == [("2026-03-01",)]
    # A later part replaces a part, and a full evaluation too; a part never replaces a full one.
    assert Scope(3, 6).select(lab.workspace().cases("small")) != Scope(3, 5).select(lab.workspace().cases("small"))
    lab.evaluate(day=date(2026, 3, 2), scope=Scope(1, 6), publish=True)
    assert lab.one("SELECT count(*) FROM turn_results WHERE eval_date = '2026-03-02'") == 2
    lab.evaluate(day=date(2026, 3, 2), publish=True)
    assert lab.sql("SELECT DISTINCT eval_date::VARCHAR FROM latest_turn_results") == [("2026-03-02",)]
    for arguments in (("--sample-size", "3"), ("--case", "c01"), ("--tag", "even"), ("--failed",)):
        said = lab.cli("run", "--eval-date", "2026-03-02", *arguments)
        assert said.code == 2
        assert "has been evaluated in full" in said.err
        assert "give another --eval-date" in said.err


def test_cases_tags_and_what_failed_before(lab: Lab, puppet: type[Puppet]) -> None:
    many(lab)
    puppet.answer = staticmethod(lambda call: number(-1) if call.turn_id == "small/c04#1" else call.gold.oracle())
    lab.evaluate()
    lab.home.journal.unlink()
    puppet.reset()
    said = lab.cli("run", "--no-report", "--eval-date", "2026-03-03", "--failed")
    assert said.code == 0, said.text
    assert puppet.turns_asked() == ["c04#0", "c04#1"]
    puppet.reset()
    said = lab.cli("run", "--no-report", "--eval-date", "2026-03-04", "--case", "c01", "--case", "c02", "--tag", "even")
    assert said.code == 0, said.text
    assert puppet.turns_asked() == ["c02#0", "c02#1"]
    for arguments, sentence in (
        (("--case", "nope"), "no case 'nope'"),
        (("--tag", "nope"), "no case has the tag 'nope'; tags: even"),
        (("--suite", "nope"), "unknown suite 'nope'; known: small"),
        (("--model-version", "nope"), "unknown model version 'nope'; known: puppet, worse"),
        (("--eval-date", "1st of May"), "'1st of May' is not a date; expected YYYY-MM-DD"),
        (("--sample-size", "0"), "sample-size"),
        (("--colour", "red"), "--colour"),
    ):
        said = lab.cli("run", *arguments)
        assert said.code == 2
        assert sentence in said.err, (arguments, said.err)
        assert "Traceback" not in said.err


def test_fresh_asks_anew(small: Lab, puppet: type[Puppet]) -> None:
    small.evaluate(publish=True)
    said = small.cli(*RUN, "--fresh")
    assert said.code == 0, said.text
    assert len(puppet.asked) == 6
    assert small.sql("SELECT calls, journal_hits, epoch IS NOT NULL AND epoch <> '' FROM runs ORDER BY started_at") == [
        (3, 0, False),
        (3, 0, True),
    ]
    # A plain run of the same date keeps the newer responses, and does not fall back on the older ones either.
    assert small.cli(*RUN).code == 0
    assert len(puppet.asked) == 6
    assert small.one("SELECT count(DISTINCT epoch) FROM runs WHERE epoch <> ''") == 1


def test_two_fresh_runs_of_one_second_are_two() -> None:
    assert fresh_epoch() != fresh_epoch()


def test_the_date_is_today_where_none_is_given(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Partition] = []
    monkeypatch.setattr(running, "evaluate", lambda _, places, *more, **settings: asked.extend(places) or ([], []))
    before = today()
    said = small.cli("run", "--no-report")
    assert said.code == 0, said.text
    assert [place.eval_date in {before, today()} for place in asked] == [True]


def test_without_anything_to_run_it_says_so(lab: Lab, puppet: type[Puppet]) -> None:
    lab.versions({"name": "puppet", "provider": "puppet"})
    said = lab.cli(*RUN)
    assert said.code == 2
    assert "suite" in said.err
    lab.suite()
    lab.versions({"name": "puppet", "provider": "puppet", "active": False})
    said = lab.cli(*RUN)
    assert said.code == 2
    assert "model version" in said.err


def test_a_failed_check_of_metrics_is_told_and_exits_with_1(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from eval_pipeline.tracks.base import Metric
    from eval_pipeline_plugins.tracks.finqa.track import TRACK

    def broken(predicted: float) -> float:
        raise RuntimeError("out of order")

    with_metrics(monkeypatch, TRACK, (*TRACK.metrics, Metric("broken", broken, "score", "a test's")))
    small.evaluate()
    said = small.cli(*RUN)
    assert said.code == 1
    assert "small, puppet: metrics failed 3 times (broken); see table metric_errors" in said.err
    assert small.one("SELECT count(*) FROM metric_errors") == 3  # published all the same


def test_sigterm_ends_a_run_cleanly_and_the_next_one_goes_on(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eval_pipeline.providers import registry

    monkeypatch.setitem(registry.PROVIDERS, "logged", PLACE)
    log = tmp_path / "requests.log"
    monkeypatch.setenv("LOGGED_REQUESTS", str(log))
    lab.suite(cases=[case(f"c{i:02}", ("50", 50.0)) for i in range(40)])
    lab.versions({"name": "logged", "provider": "logged", "concurrency": 2})
    environment = os.environ | {"LOGGED_LATENCY_S": "0.2"}
    command = [sys.executable, "-m", "eval_pipeline_tests.fakes.logged", *RUN]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        while child.poll() is None and (not log.exists() or log.read_text().count("\n") < 8):
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "interrupted; what was done is kept" in err
    assert "Traceback" not in err
    asked = log.read_text().splitlines()
    lab.evaluate(version="logged")
    again = log.read_text().splitlines()[len(asked) :]
    assert len(set(again) & set(asked)) <= 2  # those in flight
    assert {*asked, *again} >= {f"small/c{i:02}#0 0" for i in range(40)}


def test_a_gate_on_no_metric_is_refused_before_anything_is_asked(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite()
    lab.suite("broken", track="chess")
    lab.versions({"name": "puppet", "provider": "puppet", "samples_per_turn": 2})
    for gate in ("nope", "pass@3", "pass^0", "turns"):
        said = lab.cli(*RUN, "--fail-below", f"{gate}=0.5")
        assert said.code == 2
        assert f"small has no metric '{gate}'; metrics: " in said.err
        assert not puppet.asked
    known = ("pass@2", "pass^2", "conversation_success", "latency_ms_p95", "tokens", "numerical_match")
    gates = [text for name in known for text in ("--fail-below", f"{name}=0")]
    said = lab.cli(*RUN, "--suite", "small", *gates)
    assert said.code == 0, said.text


def test_every_metric_of_an_evaluation_may_be_a_gate(lab: Lab, puppet: type[Puppet]) -> None:
    from eval_pipeline.cli.options import check_gates

    lab.suite()
    lab.versions({"name": "puppet", "provider": "puppet", "samples_per_turn": 3})
    lab.evaluate()
    found = {name for (name,) in lab.sql("SELECT DISTINCT metric FROM statistics WHERE split = 'all'")}
    assert "pass^3" in found
    check_gates(lab.workspace(), dict.fromkeys(found, 0.5), [("puppet", "small")])


@pytest.mark.always
def test_turns_are_told_by_what_model_versions_made_of_them(lab: Lab, tmp_path: Path) -> None:
    lab.suite()
    weak = [
        {"name": f"weak{n}", "provider": "simulated", "options": {"seed": n, "rates": {"wrong_operations": 0.5}}}
        for n in range(3)
    ]
    lab.versions({"name": "oracle", "provider": "oracle"}, {"name": "silent", "provider": "null"}, *weak)
    said = lab.cli("suite", "report", "--suite", "small")
    assert (said.code, "has no full evaluation yet" in said.err) == (2, True)
    for name in ("oracle", "silent", *(version["name"] for version in weak)):
        lab.evaluate(version=str(name), upto="statistics")
    said = lab.cli("suite", "report", "--suite", "small", "--csv", str(tmp_path / "turns.csv"))
    assert said.code == 0, said.err
    # The oracle and the model that says nothing are right and wrong by construction: they do not count.
    assert said.out.startswith("small · 3 turns, 3 model versions\n")
    with (tmp_path / "turns.csv").open() as file:
        rows = list(csv.DictReader(file))
    wrong = dict(
        lab.sql("SELECT turn_id, avg((NOT correct)::INT) FROM turn_results WHERE model_version LIKE 'weak%' GROUP BY 1")
    )
    assert {row["turn_id"]: float(row["difficulty"]) for row in rows} == pytest.approx(wrong)
    assert {row["evaluations"] for row in rows} == {"3"}
    always_right = sum(share == 0 for share in wrong.values())
    assert f"  {always_right} were right in every evaluation\n" in said.out or not always_right


@pytest.mark.always
def test_a_part_of_a_suite_is_no_history(lab: Lab) -> None:
    lab.suite()
    lab.versions({"name": "some", "provider": "simulated", "options": {"rates": {}}})
    lab.evaluate(version="some", scope=Scope(1), upto="statistics")
    said = lab.cli("suite", "report", "--suite", "small")
    assert (said.code, "has no full evaluation yet" in said.err) == (2, True)
