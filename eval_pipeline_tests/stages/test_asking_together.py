"""How items are shared out among workers: many at a time where nothing is waited for, else side by side."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.stages.attempts.model_calls import ask_together

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
