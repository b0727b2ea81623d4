"""Costs of tests: what several share is shared out, dear ones are named, and budgets are kept."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline_tests import costs as module
from eval_pipeline_tests.costs import (
    DEAR,
    TIER_BUDGET,
    Meter,
    by_module,
    cheapest,
    cpu_seconds,
    is_dear,
    known,
    over_budget,
    read_costs,
    shared_out,
)

HOME = "eval_pipeline_tests/"


def test_what_tests_share_is_shared_out_among_those_that_use_it() -> None:
    measured = {"a": (0.01, {"home": DEAR, "server": 0.2 * DEAR}), "b": (0.02, {"home": DEAR}), "c": (0.03, {})}
    assert shared_out(measured) == pytest.approx({"a": 0.01 + 0.7 * DEAR, "b": 0.02 + 0.5 * DEAR, "c": 0.03})


def test_what_cheap_tests_make_without_the_dear_ones_makes_them_dear_too() -> None:
    home = {"home": 4 * DEAR}
    measured = {"a": (DEAR, home), **dict.fromkeys("bcdef", (0.1 * DEAR, home)), "g": (0.1 * DEAR, {})}
    costs = shared_out(measured)
    assert costs["b"] == pytest.approx(0.9 * DEAR)
    assert shared_out({**measured, "b": (0.5 * DEAR, home)})["c"] == pytest.approx(1.1 * DEAR)


def test_dear_tests_are_named_and_cheap_ones_added_up() -> None:
    costs = by_module(
        {f"{HOME}x/test_y.py::test_z[0]": DEAR, f"{HOME}x/test_y.py::test_v": 0.05, f"{HOME}x/test_y.py::w": 0.1}
    )
    assert costs == {"x/test_y.py": {"": 0.15, "test_z[0]": DEAR}}
    assert is_dear(costs, f"{HOME}x/test_y.py::test_z[0]")
    assert not is_dear(costs, f"{HOME}x/test_y.py::test_v")
    assert not is_dear(costs, f"{HOME}new/test_new.py::test_of_today"), "a new test is in `make test`"


def test_what_is_on_record_tells_what_tests_cost_and_which_are_cheapest() -> None:
    costs = known({"x/test_y.py": {"": 1.0, "test_z": 4.0}}, [f"{HOME}x/test_y.py::test_{name}" for name in "zab"])
    assert list(costs.values()) == [4.0, 0.5, 0.5]
    assert cheapest(costs, 4.9) == {f"{HOME}x/test_y.py::test_{name}" for name in "ab"}
    assert cheapest(costs, 5.0) == set(costs)


@pytest.mark.parametrize(
    ("spent", "always", "told"),
    [
        ({"x/test_y.py": 7.9}, (), []),
        ({"x/test_y.py": 8.1}, (), ["x/test_y.py"]),
        ({"x/test_y.py": 8.1}, (f"{HOME}x/test_y.py::test_z",), []),
        ({"x/test_y.py": 16.1}, (f"{HOME}x/test_y.py::test_z",), ["x/test_y.py"]),
        ({"new/test_new.py": 5.9}, (), []),
        ({"new/test_new.py": 6.1}, (), ["new/test_new.py"]),
        ({"": TIER_BUDGET - 1, "x/test_y.py": 0.9}, (), []),
        ({"": TIER_BUDGET - 1, "x/test_y.py": 1.1}, (), ["make test"]),
    ],
)
def test_over_budget_is_who_spends_clearly_more_than_on_record(
    spent: dict[str, float], always: tuple[str, ...], told: list[str]
) -> None:
    costs = {"x/test_y.py": {"": 1.0, "test_z": 4.0}}
    found = over_budget(spent, costs, always)
    assert len(found) == len(told)
    assert all(name in text for name, text in zip(told, found, strict=True))


def test_a_fixture_made_within_another_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 3.0, 8.0, 9.0, 10.0])
    meter = Meter(_timed_at=0.0)
    monkeypatch.setattr("eval_pipeline_tests.costs.cpu_seconds", lambda: next(clock))
    meter.begin()
    with meter.sharing("outer"), meter.sharing("inner"):
        pass
    assert meter.shared == {"outer": 3.0, "inner": 5.0}
    assert meter.end() == 2.0


def test_children_count_too() -> None:
    import subprocess
    import sys

    before = cpu_seconds()
    subprocess.run([sys.executable, "-S", "-c", "for i in range(2_000_000): pass"], check=True)
    assert cpu_seconds() - before > 0.02


@pytest.mark.parametrize(
    ("status", "commit", "written"),
    [
        (pytest.ExitCode.OK, "new", True),
        (pytest.ExitCode.TESTS_FAILED, "old", True),
        (pytest.ExitCode.INTERRUPTED, "old", False),
    ],
)
def test_only_a_run_that_passes_moves_the_commit_and_one_that_is_interrupted_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: pytest.ExitCode, commit: str, written: bool
) -> None:
    file = tmp_path / "costs.json"
    file.write_text(json.dumps({"commit": "old", "modules": {}}))
    monkeypatch.setattr(module, "FILE", file)
    monkeypatch.setattr(module, "read_costs", lambda: read_costs(file))
    monkeypatch.setattr(module.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout="new\n"))
    options = {"--tier": "all", "--record-costs": True}
    config: Any = SimpleNamespace(getoption=options.get, args_source=pytest.Config.ArgsSource.TESTPATHS)
    session = module._Session(config)
    told: Any = SimpleNamespace(nodeid=f"{HOME}x/test_y.py::test_z", user_properties=[("cpu", [1.0, {}, 1.0])])
    session.pytest_runtest_logreport(told)
    ended: Any = SimpleNamespace(exitstatus=status)
    session.pytest_sessionfinish(ended)
    assert read_costs(file) == (commit, {"x/test_y.py": {"test_z": 1.0}} if written else {})
