"""Models that answer at once are asked many calls together: what is recorded is what asking one by one records."""

import signal
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.asking.immediate_calls import ImmediateCaller
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS
from eval_pipeline_tests.forked import forked
from eval_pipeline_tests.support import Lab, case

LONG = [
    case(f"c{number}", *((f"add({number}, {turn})", float(number + turn)) for turn in range(1 + number % 5)))
    for number in range(12)
]
COUNTS = "calls, responses, journal_hits, call_errors, tokens_spent"
RATES = {"wrong_operands": 0.2, "execution_error": 0.2, "no_answer": 0.1}


def prepared(folder: Path, **settings: Any) -> Lab:
    lab = Lab.at(folder)
    lab.suite(cases=LONG)
    lab.versions({"name": "sim", "provider": "simulated", "options": {"rates": RATES}, **settings})
    return lab


def attempted(folder: Path, **settings: Any) -> tuple[list[Any], Any]:
    """What was recorded of the attempts, and what `runs` counts."""
    lab = prepared(folder, **settings)
    lab.evaluate(version="sim", upto="recovery_attempts")
    inputs = lab.inputs(version="sim")
    headers = [inputs.header(table) for table in (GENERATIONS, RECOVERY_ATTEMPTS)]
    return [(header.rows, header.content_hash) for header in headers if header], lab.sql(f"SELECT {COUNTS} FROM runs")


@pytest.mark.parametrize("history", ["gold", "own"])
def test_groups_of_any_size_leave_the_same_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: str
) -> None:
    found = []
    for size in (1, 2, 7, 500):
        monkeypatch.setattr(ImmediateCaller, "together", size)
        settings = {"history": history, "samples_per_turn": 2, "max_recovery_attempts": 2}
        found.append(attempted(tmp_path / str(size), **settings))
    assert found[1:] == found[:1] * 3
    assert all(rows for rows, _ in found[0][0])


def test_with_limits_of_spending_calls_are_asked_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = attempted(tmp_path / "free")

    async def never(*_: object) -> None:
        raise AssertionError("asked together")

    monkeypatch.setattr(ImmediateCaller, "ask_many", never)
    with pytest.raises(AssertionError, match="asked together"):
        attempted(tmp_path / "free again")
    assert attempted(tmp_path / "limited", max_tokens_total=10**9) == free


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    """What a run publishes that nobody kills, and its calls."""
    lab = prepared(tmp_path_factory.mktemp("undisturbed"))
    lab.evaluate(version="sim", publish=True)
    return lab.store_contents(), lab.one("SELECT calls FROM runs")


# 9 groups of generations, then those of the recovery attempts.
@pytest.mark.parametrize("groups", [5, 10])
def test_a_run_killed_between_groups_goes_on_to_the_same_store(
    tmp_path: Path, groups: int, undisturbed: tuple[dict[str, str], int]
) -> None:
    expected, calls = undisturbed
    lab = prepared(tmp_path / "killed")
    child = forked("eval_pipeline_tests.fakes.killed_between:main", [str(groups)], lab.environment, tmp_path / "log")
    assert child.wait(120) == -signal.SIGKILL, child.log.read_text()
    lab.evaluate(version="sim", publish=True, run_id="second")
    assert lab.store_contents() == expected
    made = lab.sql("SELECT calls, journal_hits FROM runs WHERE run_id = 'second'")
    assert sum(made[0]) <= calls
    assert made[0][0] >= calls - 4 * groups
    assert (made[0][1] > 0) == (groups < 9)
