"""How items are shared out among workers, and how many calls share the beginning of a prompt."""

import asyncio
from collections.abc import Sequence
from itertools import groupby
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Message
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.stages.attempts.ask import history_texts, prefix_uses
from eval_pipeline.stages.attempts.model_calls import ask_together
from eval_pipeline.suites.cases import read_cases
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.support import ROOT

VERSION = ModelVersion(name="v", provider="oracle", concurrency=4)


def shared_out(together: int, *, immediate: bool, items: int = 30) -> tuple[list[list[int]], int]:
    """The groups in which items were asked, and how many groups were under way at once at most."""
    groups: list[list[int]] = []
    under_way, most = 0, 0

    async def ask(group: Sequence[int]) -> None:
        nonlocal under_way, most
        groups.append(list(group))
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1

    asker: Any = SimpleNamespace(
        caller=SimpleNamespace(together=together, end=None), executor=SimpleNamespace(immediate=immediate)
    )
    asyncio.run(ask_together(range(items), items, VERSION, asker, ask))
    assert sorted(item for group in groups for item in group) == list(range(items))
    return groups, most


def test_where_nothing_is_waited_for_many_are_asked_together() -> None:
    groups, most = shared_out(8, immediate=True)
    assert [len(group) for group in groups] == [8, 8, 8, 6]
    assert most == 2


@pytest.mark.parametrize(("together", "immediate"), [(8, False), (1, True), (1, False)])
def test_else_as_many_are_under_way_as_the_model_version_says(together: int, immediate: bool) -> None:
    groups, most = shared_out(together, immediate=immediate)
    assert {len(group) for group in groups} == {1}
    assert most == VERSION.concurrency


def test_there_are_no_more_workers_than_items() -> None:
    assert shared_out(1, immediate=False, items=2)[1] == 2
    assert shared_out(8, immediate=True, items=0) == ([], 0)


SUITES = sorted(place.parent.name for place in (ROOT / "data" / "suites").glob("*/suite.yaml"))


def test_calls_are_counted_over_all_cases_with_the_same_key() -> None:
    track = cast("Any", SimpleNamespace(prefix_key=lambda case: case.id[0]))
    cases = {name: cast("Any", SimpleNamespace(id=name)) for name in ("a1", "a2", "b1")}
    calls = [(cases["a1"], 2), (cases["b1"], 1), (cases["a2"], 3), (cases["a1"], 1)]
    assert prefix_uses(track, calls) == {"a1": 6, "a2": 6, "b1": 1}


@pytest.mark.parametrize("suite", SUITES)
def test_cases_with_equal_keys_begin_with_equal_messages(suite: str, tmp_path: Any) -> None:
    workspace = Workspace(Home(root=tmp_path, data=ROOT / "data"))
    track = workspace.track(suite)
    cases = sorted(read_cases(workspace.suite(suite)), key=track.prefix_key)
    for _, alike in groupby(cases, key=track.prefix_key):
        begun: tuple[Message, ...] | None = None
        for case in alike:
            for turn in case.turns:
                prompt = track.prompt(case, turn, history_texts(track, case, turn, None), track.prompt_versions[-1])
                shared = prompt.messages[: prompt.shared]
                assert shared, case.id
                begun = begun or shared
                common = min(len(begun), len(shared))
                assert shared[:common] == begun[:common], case.id
