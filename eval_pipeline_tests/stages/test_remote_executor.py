"""Artefacts that run on workers have the outcomes that they have in this process; asking stays here."""

import json
import shutil
from contextlib import nullcontext

import pytest

from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.chain.runner import run_chain
from eval_pipeline.core.errors import UsageError
from eval_pipeline.sandbox.tiers import UNSAFE, NoSandboxError
from eval_pipeline.stages.attempts import executing
from eval_pipeline_plugins.tracks.pandas_code.running import runner
from eval_pipeline_tests.chain.in_this_process import InThisProcess
from eval_pipeline_tests.chains import with_other_code
from eval_pipeline_tests.support import Lab, Puppet
from eval_pipeline_tests.tracks.pandas_code.conftest import working_sandbox as working_sandbox
from eval_pipeline_tests.tracks.pandas_code.helpers import answer as code
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox, stall_lab
from eval_pipeline_tests.tracks.sql.helpers import answer, shop_lab

ASKED = ("generations", "recovery_attempts")
PUPPET = {"name": "puppet", "provider": "puppet", "max_recovery_attempts": 1}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> InThisProcess:
    found = InThisProcess()
    monkeypatch.setattr(executing, "open_cluster", lambda: nullcontext(found))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return found


def asked(lab: Lab, suite: str) -> None:
    """Runs the stages that ask."""
    inputs = lab.inputs(suite)
    run_chain([stage_of(inputs.track, name) for name in ("raw_dataset", "cases", *ASKED)], inputs)


def again_on_workers(
    lab: Lab, suite: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files of the attempts as this process makes them, and as workers do from the same responses."""
    found = []
    for here in (True, False):
        with monkeypatch.context() as patch:
            if here:
                patch.setattr(executing, "open_cluster", lambda: None)
            asked(lab, suite)
        found.append({name: lab.record_file(name).read_bytes() for name in ASKED})
        for name in ASKED:
            lab.record_file(name).unlink()
        shutil.rmtree(lab.home.expected)  # what was executed before is not executed again
    return found[0], found[1]


def test_queries_run_on_workers(
    lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    shop_lab(lab).versions(PUPPET)
    told = {"oslo": "SELECT name, 1.5, NULL FROM customers", "totals": "SELECT id / 0 AS n FROM nowhere"}
    Puppet.answer = staticmethod(lambda call: answer(told.get(call.case_id)))
    here, there = again_on_workers(lab, "shop", monkeypatch)
    assert there == here
    assert {task["case"] for task in cluster.calls} == {"oslo", "totals", "wipe", "weather"}
    assert len(Puppet.turns_asked()) == 5  # one more for what did not run; none again for the workers


@pytest.mark.always
@needs_sandbox
def test_code_runs_on_workers(
    lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    stall_lab(lab).versions(PUPPET)
    wrong = code('result = df.groupby("fruits")["amount"].sum()')
    Puppet.answer = staticmethod(lambda call: wrong if call.case_id == "totals" else call.gold.oracle())
    here, there = again_on_workers(lab, "stall", monkeypatch)
    assert there == here
    assert len(cluster.calls) >= 4


def test_tasks_hold_no_settings_of_providers(lab: Lab, puppet: type[Puppet], cluster: InThisProcess) -> None:
    shop_lab(lab).versions(PUPPET)
    Puppet.answer = staticmethod(lambda call: answer("SELECT 1"))
    asked(lab, "shop")
    named = {"home", "data", "suite", "code", "name", "case", "artefact"}
    assert {frozenset(task) for task in cluster.calls} == {frozenset(named)}


def test_what_is_computed_at_once_stays_here(small: Lab, cluster: InThisProcess) -> None:
    asked(small, "small")
    assert cluster.calls == []


def test_other_code_refuses(
    lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    shop_lab(lab).versions(PUPPET)
    Puppet.answer = staticmethod(lambda call: answer("SELECT 1"))
    asked(lab, "shop")
    task = cluster.calls[0]
    assert json.loads(str(executing.execute_there(task)["value"]))["columns"] == ["1"]
    with_other_code(monkeypatch, "attempts_code")
    with pytest.raises(UsageError, match="sees other code, libraries or files than the run that asks it"):
        executing.execute_there(task)


@needs_sandbox
def test_without_a_jail_a_worker_refuses_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert runner.confined_tier() != UNSAFE
    monkeypatch.setattr(type(runner.sandbox()), "tier", property(lambda _: UNSAFE))
    with pytest.raises(NoSandboxError, match="runs no model-written code without a jail"):
        runner.confined_tier()
