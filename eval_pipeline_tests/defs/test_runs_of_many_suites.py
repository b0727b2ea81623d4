"""Many suites: a model version is run in several Dagster runs, and nobody can tell from what comes out."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from eval_pipeline.chain.evaluation import COMPARING, INGESTING
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.chain.stage import Stage
from eval_pipeline.core.interrupts import handlers_kept
from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets import suite_assets
from eval_pipeline.defs.assets.partitions import EARLIER, earlier_tag, run_context
from eval_pipeline.defs.running import launch, storage
from eval_pipeline.defs.running.instance import sweep_home
from eval_pipeline.defs.running.outcomes import Finished
from eval_pipeline.operations.publication import Publication
from eval_pipeline.providers.base import Call
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Silent, StageResult
from eval_pipeline_tests.defs.runs import REPORTS
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, response

SUITES = ["s0", "s1", "s2"]
VERSIONS = ("puppet", "second")


@given(st.lists(st.text(max_size=3), unique=True, max_size=200), st.integers(1, 50))
def test_parts_hold_every_suite_once_in_order_and_are_alike(suites: list[str], size: int) -> None:
    parts = list(launch.batches(suites, size))
    assert [suite for part in parts for suite in part] == suites
    lengths = [len(part) for part in parts]
    assert max(lengths, default=0) <= size
    assert max(lengths, default=0) - min(lengths, default=0) <= 1
    assert len(parts) == (len(suites) + size - 1) // size


@pytest.fixture
def three(lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Three suites of a turn each, in runs of two suites at most: the first alone, then the others."""
    for name in SUITES:
        lab.suite(name, [case(f"of {name}", ("50", 50.0))])
    lab.versions({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "oracle"})
    monkeypatch.setattr(launch, "SUITES_A_RUN", 2)
    return lab


def launched(
    lab: Lab, *versions: str, suites: list[str] = SUITES, publication: Publication | None = None
) -> list[Finished]:
    pairs = [Partition(suite, version, DAY) for version in versions for suite in suites]
    request = launch.Request(pairs, with_report=False, publication=publication)
    return list(launch.run(lab.home, request, Silent()))


@pytest.fixture
def instance(three: Lab) -> Iterator[dg.DagsterInstance]:
    with launch.open_instance(three.home) as found:
        yield found


def runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    return list(reversed(instance.get_runs()))


def done(instance: dg.DagsterInstance, run: dg.DagsterRun) -> set[tuple[str, str]]:
    """Suite and asset of what a run has materialised."""
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    found = (record.event_log_entry for record in instance.get_records_for_run(run.run_id, of_type=kind).records)
    keys = (entry.dagster_event.asset_key for entry in found if entry.dagster_event)
    return {(key.path[0], key.path[-1]) for key in keys if key}


def test_all_is_done_once_in_runs_that_the_ui_shows(
    three: Lab, instance: dg.DagsterInstance, copies: list[Path]
) -> None:
    assert not [found for found in launched(three, *VERSIONS) if found.errors or found.incomplete]
    found = runs(instance)
    assert [run.tags["dagster/partition"] for run in found] == ["puppet"] * 2 + ["second"] * 2 + ["puppet", "second"]
    # The last one of each publishes.
    assert [run.job_name for run in found] == ["suite_s0", "all_suites"] * 2 + ["all_suites"] * 2
    assert {run.status for run in found} == {dg.DagsterRunStatus.SUCCESS}
    assert all(run.remote_job_origin for run in found)
    # What is of no single model version is made once: files when they are first read, comparisons at the end.
    made = Counter(
        (suite, asset, run.tags["dagster/partition"]) for run in found for suite, asset in done(instance, run)
    )
    compared = set(COMPARING) - REPORTS
    assert {key for key in made if key[1] in INGESTING} == {(s, a, "puppet") for s in SUITES for a in INGESTING}
    assert {key for key in made if key[1] in compared} == {(s, a, "second") for s in SUITES for a in compared}
    assert set(made.values()) == {1}
    assert len(copies) == 1
    assert three.one("SELECT count(DISTINCT suite) FROM model_comparisons WHERE model_a != model_b") == len(SUITES)
    assert three.sql("SELECT suite, model_version FROM statistics GROUP BY ALL ORDER BY ALL") == [
        (suite, version) for suite in SUITES for version in VERSIONS
    ]


def test_what_fails_in_one_run_stops_no_other(three: Lab, instance: dg.DagsterInstance, copies: list[Path]) -> None:
    def answer(call: Call) -> str:
        if call.case_id == "of s1":
            raise RuntimeError("the provider is broken")
        return call.gold.oracle()

    Puppet.answer = answer
    three.suite("s0", track="chess")
    three.evaluate("s2", "second")
    up_to_date = Publication(three.workspace())
    up_to_date.close(three.inputs("s2", "second", run=RunContext("kept")))
    found = launched(three, "puppet", publication=up_to_date)
    failed = {(one.suite, one.model_version) for one in found if one.errors or one.incomplete}
    assert failed == {("s0", ""), ("s1", "puppet")}
    assert [(one.suite, one.incomplete) for one in found if not one.errors] == [("s2", False)]
    assert three.sql("SELECT DISTINCT suite FROM trends") == [("s2",)]
    assert three.sql("SELECT DISTINCT model_version FROM turn_results ORDER BY ALL") == [("puppet",), ("second",)]
    assert len(copies) == 1, "with what was up to date"
    assert [run.status.name for run in runs(instance)] == ["FAILURE", "FAILURE", "SUCCESS"]


def test_the_budget_is_one_for_the_runs_of_a_command(three: Lab, instance: dg.DagsterInstance) -> None:
    Puppet.answer = lambda call: response(call.gold.oracle(), 40_000, 10_000)
    three.versions({"name": "puppet", "provider": "puppet", "max_tokens_total": 50_100})
    found = launched(three, "puppet")
    assert [call.case_id for call in Puppet.asked] == ["of s0", "of s1"][: len(Puppet.asked)]
    asked = len(Puppet.asked)
    assert asked == 1, "what is left after the first run is too little for the turns of the second"
    assert [one.suite for one in found if any("budget" in error for error in one.errors)] == ["s1", "s2"]
    assert dict(three.sql("SELECT suite, status FROM runs")) == {
        "s0": "complete",
        "s1": "incomplete",
        "s2": "incomplete",
    }
    launched(three, "puppet", suites=["s2"])
    assert len(Puppet.asked) == 2, "the next command has a budget of its own"


def test_a_run_that_is_done_again_shares_no_budget_with_runs_of_before() -> None:
    """The UI copies the tags of the run that it does again."""
    first, second, again = (str(uuid4()) for _ in range(3))
    tags = {EARLIER: earlier_tag(second, [first])}
    assert run_context(second, tags).earlier == {first}
    assert run_context(again, tags).earlier == set()
    assert run_context(again, {}).earlier == set()


def test_a_stop_signal_ends_the_command_and_not_one_run_alone(three: Lab, instance: dg.DagsterInstance) -> None:
    def answer(call: Call) -> str:
        if call.case_id == "of s1":
            os.kill(os.getpid(), signal.SIGINT)
        return call.gold.oracle()

    Puppet.answer = answer
    with handlers_kept():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            launched(three, "puppet")
    first, stopped = runs(instance)
    assert first.status == dg.DagsterRunStatus.SUCCESS
    assert stopped.is_finished
    assert sweep_home(three.home, instance) == []
    assert three.sql("SELECT DISTINCT suite FROM turn_results") == [("s0",)], "what was done is published"
    assert list(three.home.unpublished.iterdir()) == []


def test_few_databases_are_open_however_many_runs_there_are(tmp_path: Path) -> None:
    log = storage.ReusingEventLog(str(tmp_path))
    for number in range(storage.OPEN_RUNS + 3):
        for name in (f"run{number}", "run0"):  # an older one is opened again
            with log.run_connection(name) as connection:
                assert connection.execute(text("SELECT count(*) FROM event_logs")).scalar() == 0
        places = (os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
        opened = {Path(place).name for place in places if place.startswith(str(tmp_path))}
        databases = {name for name in opened if name.endswith(".db")}
        assert len(databases - {"index.db"}) <= storage.OPEN_RUNS
        assert f"run{number}.db" in databases
    log.dispose()


def test_what_is_complete_is_published_though_the_comparing_is_interrupted(
    three: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = list[str]()

    def interrupted(stage: Stage, inputs: Inputs) -> StageResult:
        if stage.name in COMPARING:
            noted.extend(path.read_text() for path in three.home.unpublished.glob("*"))
            os.kill(os.getpid(), signal.SIGINT)
        return run_stage(stage, inputs)

    monkeypatch.setattr(suite_assets, "run_stage", interrupted)
    with handlers_kept():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            launched(three, "puppet", suites=["s0", "s1"])
    assert '"s0"' in "".join(noted), "a kill would be told"
    assert three.sql("SELECT suite, status FROM runs") == [("s0", "complete")]
    assert not list(three.home.unpublished.glob("*"))
