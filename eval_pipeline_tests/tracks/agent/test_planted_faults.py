"""Attempts with one known fault each are wrong, right ways are right, and metrics tell which step was the wrong one."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_tests.tracks.agent.planted.measuring import RIGHT, rates, sample
from eval_pipeline_tests.tracks.agent.planted.plans import BLIND, FRESH, HELD_BACK, KINDS, MODES, MORE, UNSEEN, plans
from eval_pipeline_tests.tracks.agent.planted.playing import Played, played, shown

LEAST = 0.94, 0.94
"""The shares of planted faults whose step and whose mode are told exactly; most were read when the finder was made.

0.95 and 0.90 are the aim for faults that were not.
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("planted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_HOME", str(folder))
        yield folder
        close_worlds()


def is_as_planted(one: Played) -> bool:
    wanted = {None: 1.0, "harness": None}.get(one.plan.mode, 0.0)
    correct = one.metrics["task_correct"]
    return (None if correct is None else float(correct)) == wanted


def test_there_are_enough_of_each_kind() -> None:
    found = plans()
    every = [*found, *plans(HELD_BACK), *plans(FRESH), *plans(BLIND), *plans(UNSEEN), *plans(MORE)]
    assert len({one.id for one in every}) == len(every)
    by_kind = Counter(one.mode for one in found)
    assert set(by_kind) == {*MODES, None}
    assert min(by_kind.values()) >= 40
    assert sum(one.is_whole for one in found if one.mode is not None) >= 100
    right = Counter(one.task for one in found if one.mode is None)
    assert sum(count >= 20 for count in right.values()) >= 10


@pytest.mark.parametrize(
    ("names", "others"),
    [(FRESH, {}), (BLIND, {}), *((names, {"wrong_filter_or_join": 20, "side_effect": 0}) for names in (UNSEEN, MORE))],
)
def test_of_what_nobody_has_read_there_are_ten_of_each_mode(names: str, others: dict[str, int]) -> None:
    found = plans(names)
    wanted = dict.fromkeys(set(KINDS) - {"harness"}, 10) | others
    assert Counter(one.mode for one in found if one.mode is not None) == Counter(wanted)
    assert len({one.task for one in found if one.mode is not None}) >= 25
    right = Counter(one.task for one in found if one.mode is None)
    assert len(right) >= 8
    assert right.total() >= 40


@pytest.mark.parametrize(
    "count",
    [pytest.param(22, marks=pytest.mark.always), 100, pytest.param(None, marks=pytest.mark.soak)],
    ids=["few", "some", "all"],
)
def test_what_is_planted_is_wrong_and_right_ways_are_right(home: Path, count: int | None) -> None:
    found = played(sample(count, seed=11))
    assert "\n\n".join(shown(one) for one in found if not is_as_planted(one)) == ""
    told = {one.kind: one for one in rates(found)}
    every = told["all"]
    step, mode = (0.7, 0.7) if every.n < 50 else LEAST  # a few are a coarse measure
    assert every.step >= step * every.n
    assert every.mode >= mode * every.n
    assert told[RIGHT].step == told[RIGHT].mode == told[RIGHT].n


@pytest.mark.parametrize(
    ("names", "count"),
    [
        (HELD_BACK, 22),
        pytest.param(HELD_BACK, None, marks=pytest.mark.soak),
        pytest.param(UNSEEN, None, marks=pytest.mark.soak),
        pytest.param(MORE, None, marks=pytest.mark.soak),
    ],
    ids=["few", "all", "unseen", "more"],
)
def test_what_is_held_back_is_wrong_and_nobody_blames_its_right_ways(home: Path, names: str, count: int | None) -> None:
    found = played(sample(count, seed=11, names=names))
    assert "\n\n".join(shown(one) for one in found if not is_as_planted(one)) == ""
    told = {one.kind: one for one in rates(found)}
    assert told[RIGHT].step == told[RIGHT].mode == told[RIGHT].n
