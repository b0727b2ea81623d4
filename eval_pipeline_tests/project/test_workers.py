"""Tests that run in forked workers are reported as if they had run in one process."""

import re
import sys
import threading
from collections import Counter
from xml.etree import ElementTree

import pytest

from eval_pipeline_tests import workers
from eval_pipeline_tests.support import ROOT

pytest_plugins = "pytester"

CHEAP = """
from eval_pipeline_tests.workers import COSTS

def pytest_collection_modifyitems(config, items):
    config.stash[COSTS] = {item.nodeid: 0.01 for item in items}
"""
MANY = """
import os
import pytest

@pytest.fixture(scope="module")
def made():
    with open(os.environ["MADE"], "a") as log:
        log.write(f"{__name__} {os.environ['EVAL_TEST_WORKER']}\\n")
    yield
    with open(os.environ["MADE"], "a") as log:
        log.write(f"{__name__} ended\\n")

@pytest.mark.parametrize("number", range(6))
def test_passes(made, number, tmp_path, record_property):
    record_property("number", number)
    assert tmp_path.parent.name == os.environ["EVAL_TEST_WORKER"]
"""
OUTCOMES = """
import os, warnings
import pytest

def test_fails():
    print("said before")
    assert [1, 2] == [1, 3]

@pytest.mark.skip(reason="why not")
def test_skipped(): ...

@pytest.mark.xfail(reason="known")
def test_expected(): assert False

@pytest.mark.xfail
def test_better(): ...

def test_warns(): warnings.warn("look out")

@pytest.fixture
def broken():
    yield
    raise ValueError("too late")

def test_teardown(broken): ...

def test_dies(): os._exit(7)

def test_after(): ...
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    more = ("-p", "eval_pipeline_tests.workers", "-p", "no:hypothesispytest", "-p", "no:cacheprovider", "-n2")
    return pytester.run(sys.executable, "-m", "pytest", *more, *arguments)


@pytest.fixture(autouse=True)
def apart(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MADE", str(pytester.path / "made"))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("EVAL_TEST_WORKER", raising=False)


def test_reports_are_those_of_one_process(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(conftest=CHEAP, test_one=MANY, test_two=MANY, test_outcomes=OUTCOMES)
    said = run(pytester, "-rA", "--junitxml=found.xml", "-o", "junit_family=xunit1")
    said.assert_outcomes(passed=15, failed=2, errors=1, skipped=1, xfailed=1, xpassed=1, warnings=1)
    text = said.stdout.str()
    assert re.search("worker w. exited with code 7 while it ran this test", text)
    for told in ("said before", "assert [1, 2] == [1, 3]", "why not", "known", "look out", "too late"):
        assert told in text
    cases = list(ElementTree.parse(pytester.path / "found.xml").iter("testcase"))
    assert Counter(case.get("classname") for case in cases) == {"test_one": 6, "test_two": 6, "test_outcomes": 8}
    numbers = [found.get("value") for case in cases for found in case.iter("property")]
    assert sorted(numbers) == sorted([*"012345"] * 2)
    made = (pytester.path / "made").read_text().splitlines()
    assert sorted(line.split()[0] for line in made if line.endswith("ended")) == ["test_one", "test_two"]
    assert len({line for line in made if "ended" not in line}) == len(made) / 2 == 2


def test_the_first_failure_stops_the_run_and_failures_may_be_run_again(pytester: pytest.Pytester) -> None:
    again = "def test_fails(tries=[]):\n    tries.append(0)\n    assert len(tries) > 1\n"
    pytester.makepyfile(test_again=again, test_fails="def test_fails(): raise ValueError('no')", test_one=MANY)
    pytester.makepyfile(test_last=MANY.replace("range(6)", "range(200)"))
    said = run(pytester, "-x", "--reruns=1", "test_again.py", "test_fails.py", "test_one.py", "test_last.py")
    outcomes = said.parseoutcomes()
    assert (outcomes["failed"], outcomes.get("rerun", 0)) == (1, 2)
    assert outcomes["passed"] < 150
    assert "stopping after 1 failures" in said.stdout.str()


def test_a_worker_that_ends_badly_after_its_last_test_is_told_and_the_others_go_on(pytester: pytest.Pytester) -> None:
    ends = "def test_ends(): Finalize(None, os._exit, (3,), exitpriority=1)\n"
    pytester.makepyfile(
        test_ends=f"import os\nfrom multiprocessing.util import Finalize\n{ends}", test_one=MANY, test_two=MANY
    )
    said = run(pytester)
    assert said.parseoutcomes()["passed"] == 13
    assert said.ret == pytest.ExitCode.INTERNAL_ERROR
    assert re.search("worker w. exited with code 3 after its last test", said.stdout.str() + said.stderr.str())


def test_a_thread_that_a_fork_would_lose_is_named() -> None:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, name="forgotten")
    thread.start()
    assert "forgotten" in workers._threads()
    ended.set()
    thread.join()
    assert "forgotten" not in workers._threads()
