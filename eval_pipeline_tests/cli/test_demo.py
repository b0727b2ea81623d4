"""`eval-pipeline demo` in two processes: who evaluates what, what is told, and how both end."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from eval_pipeline.cli import terminal
from eval_pipeline.cli.evaluating import demo
from eval_pipeline.cli.evaluating.demo import LOCAL, TASKS, ProcessPart, halves
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.processes import is_alive, started
from eval_pipeline.reports import registry
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline_tests.support import ROOT, Lab, Puppet, case

PART = ProcessPart(["other", "third"], "2026-03-01", local=False)
NAMES = ("strong", "weak")
QUICKLY = """
from eval_pipeline.reports import registry
registry.REPORTS = registry.REPORTS[-4:-3]
"""
"""Reports have one file each."""


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({}, ([], [])),
        ({"a": 0}, (["a"], [])),
        ({"a": 1, "b": 1}, (["a"], ["b"])),
        ({"a": 3, "b": 9, "c": 4, "d": 3}, (["a", "b"], ["c", "d"])),
        ({"z": 2, "a": 9, "b": 9}, (["z", "a"], ["b"])),
    ],
)
def test_suites_are_dealt_out_by_size(sizes: dict[str, int], expected: tuple[list[str], list[str]]) -> None:
    assert halves(sizes) == expected


def test_two_processes_share_the_suites(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "START", QUICKLY + demo.START)
    monkeypatch.setattr(registry, "REPORTS", registry.REPORTS[-4:-3])
    monkeypatch.setattr("eval_pipeline.core.system.processors.processors", lambda: 2)
    lab.suite("first", [case("c0", ("50", 50.0))])
    lab.suite("second", [case("long_name", ("50", 50.0))])
    lab.versions(*({"name": f"simulated-{n}", "provider": "simulated", "options": {"rates": {}}} for n in NAMES))
    monkeypatch.setattr(terminal, "TELL_S", 0.0)  # else a line every ten seconds
    said = lab.cli("demo", "--paths")
    assert said.code == 0, said.text
    assert re.search(r"(?m)^(first|second) · simulated-strong · .*$", said.err), "in a file, lines say how far it is"
    assert said.out.index("first") < said.out.index("second")
    assert said.out.count("report:") == 2 * (len(NAMES) + 1)
    assert said.err.count("smollm2-135m is left out: it is not in") == 1
    found = {tuple(row) for row in lab.sql("SELECT DISTINCT suite, model_version FROM statistics")}
    assert found == {(suite, f"simulated-{n}") for suite in ("first", "second") for n in NAMES}


@pytest.fixture
def alone(lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A home for demos in one process, without reports."""

    def evaluate(workspace: object, partitions: list[Partition], scope: Scope, *_: object, **ways: object) -> Any:
        assert ways["report"] and ways["launcher"]
        for place in partitions:
            lab.evaluate(place.suite, place.model_version, day=place.eval_date, scope=scope, publish=True)
        return [], partitions

    monkeypatch.setattr("eval_pipeline.core.system.processors.processors", lambda: 1)
    monkeypatch.setattr("eval_pipeline.cli.evaluating.demo.evaluate", evaluate)
    names = (*(f"simulated-{n}" for n in NAMES), LOCAL)
    lab.versions(*({"name": name, "provider": "puppet", "model": name} for name in names))
    return lab


def test_the_local_model_is_not_asked_what_is_beyond_it(alone: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval_pipeline.cli.evaluating.demo.BEYOND_LOCAL", ("finqa",))
    alone.suite("first", [case("c0", ("50", 50.0))])
    said = alone.cli("demo")
    assert said.code == 0, said.text
    assert f"{LOCAL} is left out for first: answers of the track finqa are beyond it" in said.err
    assert (LOCAL,) not in alone.sql("SELECT model_version FROM statistics")


def test_the_demo_leaves_imported_suites_and_full_evaluations_of_today_alone(alone: Lab, puppet: type[Puppet]) -> None:
    imported = alone.suite("foreign")
    alone.home.imported_suites.mkdir(parents=True)
    imported.rename(alone.home.imported_suites / "foreign")
    folder = alone.suite("small", [case(f"c{i}", ("50", 50.0)) for i in range(5)])
    assert alone.cli("demo").code == 0
    assert {call.suite for call in puppet.asked} == {"small"}
    assert len(puppet.asked) == 5 + 5 + 1
    alone.evaluate(version=LOCAL, day=date.today(), publish=True)
    said = alone.cli("demo")
    assert (said.code, LOCAL in said.out) == (0, True), said.text
    puppet.reset()
    for path in sorted((folder / "cases").iterdir()):
        path.write_text(path.read_text().replace("?", "??"))
    said = alone.cli("demo")
    assert said.code == 0, said.text
    assert f"{LOCAL} is left out for small" in said.text
    assert len(puppet.asked) == 5 + 5


def test_of_some_suites_a_few_tasks_are_evaluated(
    alone: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone.suite("small", [case(f"c{i}", ("50", 50.0)) for i in range(5)])
    monkeypatch.setattr("eval_pipeline.cli.evaluating.demo.TASKS", {"small": ("c1", "c3")})
    alone.evaluate("small", "simulated-weak", day=date.today(), publish=True)
    puppet.reset()
    said = alone.cli("demo")
    assert said.code == 0, said.text
    scopes = alone.sql("SELECT model_version, scope FROM runs WHERE model_version LIKE 'simulated%' ORDER BY 1")
    assert scopes == [("simulated-strong", '{"cases":["c1","c3"]}'), ("simulated-weak", "full")]
    assert len(puppet.asked) == 2 + 1


def test_the_tasks_of_the_sample_stand_for_all() -> None:
    folder = ROOT / "data" / "suites" / "agents_sample" / "cases"
    cases = {one["id"]: one for path in folder.glob("*.yaml") for one in yaml.safe_load(path.read_text())}
    chosen = [cases[name] for name in TASKS["agents_sample"]]
    assert {one["world"] for one in chosen} == {one["world"] for one in cases.values()}
    assert any("user" in one for one in chosen)
    assert any(one.get("unanswerable") for one in chosen)


def test_what_the_other_process_says_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"problems": ["p"], "done": [["other", "v"]]}'
    monkeypatch.setattr(demo, "START", f"import sys; print('a\\nb', file=sys.stderr); print({text!r})")
    with demo.beside(PART, "home") as rest:
        assert rest() == demo.Outcome(["p"], [("other", "v")], ["a", "b"])


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import os; os.kill(os.getpid(), 9)", "ended with signal SIGKILL: it said nothing"),
        ("import sys; print('error: no disk', file=sys.stderr); sys.exit(2)", "ended with code 2: no disk"),
        ("1 / 0", "ended with code 1: ZeroDivisionError: division by zero"),
        ("print('{')", "ended with code 0: it said nothing"),
    ],
)
def test_a_process_that_fails_is_told(program: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "START", program)
    with demo.beside(PART, "home") as rest:
        found = rest()
    assert found.problems == [f"other, third: their process {told}"]
    assert not found.done


def test_the_other_process_ends_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "START", "import time; time.sleep(300)")

    def interrupted() -> None:
        with demo.beside(PART, "home"):
            found.extend(child for child in psutil.Process().children() if child not in others)
            raise KeyboardInterrupt

    others = psutil.Process().children()  # of tests before this one
    found: list[psutil.Process] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [child.is_running() for child in found] == [False]


ALONE = """
import sys
from eval_pipeline.cli.evaluating import demo
demo.START = '''
from eval_pipeline.core.system.supervision import end_with_supervisor
import os, time
end_with_supervisor()
print(os.getpid(), file=open(r"{file}", "w"), flush=True)
time.sleep(300)
'''
with demo.beside(demo.ProcessPart(["other"], "2026-03-01", False), "home") as rest:
    rest()
"""


def test_the_other_process_does_not_outlive_a_killed_one(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", ALONE.format(file=file)], cwd=ROOT)
    until(lambda: file.exists() and file.read_text().endswith("\n"))
    child = int(file.read_text())
    since = started(child)
    assert is_alive(child, since)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: not is_alive(child, since))


def until(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.05)
