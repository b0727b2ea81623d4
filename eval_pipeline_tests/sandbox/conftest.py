"""Sandboxes that tests share, one for each tier: starting one takes longer than most of what runs in it."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from typing import Any, TypeVar

import pytest

from eval_pipeline.sandbox.python_sandbox import PythonSandbox
from eval_pipeline.sandbox.returned.outcomes import Outcome
from eval_pipeline_tests.sandbox.campaign import LIMITS, PLANTED, tier_of, usable
from eval_pipeline_tests.services import no_jail

T = TypeVar("T")


class Boxes:
    """Open sandboxes with one zygote each, and the event loop that they belong to."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner, self._open = runner, dict[str, PythonSandbox]()

    def of(self, title: str = "") -> PythonSandbox:
        """The sandbox of a tier, the best one by default; skips where it cannot be used."""
        tier = tier_of(title) if title else usable()
        if tier.title not in self._open:
            if why_not := tier.why_not():
                raise no_jail(why_not)
            self._open[tier.title] = PythonSandbox(LIMITS, zygotes=1, tiers=[tier])
            self.wait(self._open[tier.title].__aenter__())
        return self._open[tier.title]

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of work in the loop."""
        return self._runner.run(work)

    def run(self, *codes: str, title: str = "", tables: Mapping[str, Any] | None = None, **more: Any) -> list[Outcome]:
        """Runs snippets one after the other in one sandbox."""
        box = self.of(title)

        async def together() -> list[Outcome]:
            return [await box.run(code, tables, **more) for code in codes]

        return self.wait(together())

    def close(self) -> None:
        for box in self._open.values():
            self.wait(box.__aexit__(None, None, None))


@pytest.fixture(scope="package")
def boxes() -> Iterator[Boxes]:
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setenv(PLANTED, "planted in the environment")
        found = Boxes(runner)
        yield found
        found.close()
