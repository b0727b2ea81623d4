"""How many calls may be in flight at an endpoint: learned from its answers, shared by everything that asks it."""

import asyncio
import logging
from collections import deque
from types import TracebackType
from typing import Self

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.core.model_versions import ModelVersion

_log = logging.getLogger(__name__)

CONGESTION = frozenset({CallErrorKind.RATE_LIMITED, CallErrorKind.OVERLOADED})
"""Failures that say the endpoint has more to do than it can."""
_FLOOR = 1.0


class AdaptiveLimit:
    """Bounds the calls in flight: grows by one while as many calls succeed, is halved when the endpoint pushes back.

    That is additive increase, multiplicative decrease, as TCP does it. Of the calls that were under way together when
    the endpoint began to refuse, one halves the limit; the others tell nothing new.

    An async context manager, entered around what counts as in flight. Event loops may come and go, one at a time; the
    limit learned stays.

    Attributes:
        lowest: the least that the limit has been since the step began.
    """

    def __init__(self, name: str, most: int) -> None:
        """Starts at the most: an endpoint that can take it should not be kept waiting.

        Args:
            name: of the endpoint, for the log.
            most: calls in flight at most, however well it goes.
        """
        self._name = name
        self._most = most
        self._limit = self.lowest = float(most)
        self._told = most  # the limit as the log has it
        self._in_flight = 0
        self._cuts = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return int(self._limit)

    def start(self, most: int) -> None:
        """Begins a step with another most, and `lowest` anew; what was learned below it stays."""
        unhurt = self._limit >= self._most
        self._most = most
        self._limit = float(most) if unhurt else min(self._limit, float(most))
        self._told = self.limit
        self.lowest = self._limit
        self._let_in()

    def began(self) -> int:
        """To be asked when a try begins, and handed to `failed`."""
        return self._cuts

    def succeeded(self) -> None:
        """A try was answered."""
        if self._limit >= self._most:
            return
        self._limit = min(self._limit + 1.0 / self._limit, float(self._most))
        if self.limit >= min(self._told * 2, self._most):
            self._tell("rises", "calls succeed again")
        self._let_in()

    def failed(self, kind: CallErrorKind, began: int) -> None:
        """A try failed. Where the endpoint pushed back the limit is halved, unless it was since the try began."""
        if kind not in CONGESTION or began != self._cuts:
            return
        self._cuts += 1
        self._limit = max(_FLOOR, float(self.limit // 2))
        self.lowest = min(self.lowest, self._limit)
        if self.limit != self._told:
            self._tell("falls", kind.value)

    async def enter(self) -> None:
        """Waits for a place, in the order of asking."""
        if not self._waiting and self._in_flight < self.limit:
            self._in_flight += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self.leave()  # let in and cancelled at once
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    def leave(self) -> None:
        """Gives a place up."""
        self._in_flight -= 1
        if self._waiting:
            self._let_in()

    async def __aenter__(self) -> Self:
        await self.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def _let_in(self) -> None:
        while self._waiting and self._in_flight < self.limit:
            place = self._waiting.popleft()
            if not place.done():
                self._in_flight += 1
                place.set_result(None)

    def _tell(self, moves: str, why: str) -> None:
        _log.info(
            "%s: the limit of calls in flight %s from %d to %d (%s)", self._name, moves, self._told, self.limit, why
        )
        self._told = self.limit


_limits: dict[tuple[str, str], AdaptiveLimit] = {}


def shared_limit(version: ModelVersion) -> AdaptiveLimit:
    """The limit of the endpoint that a model version asks; the same one for every step of this process."""
    endpoint = str(version.options.get("base_url", ""))
    limit = _limits.get((version.provider, endpoint))
    if limit is None:
        name = f"{version.provider} {endpoint}".strip()
        limit = _limits[version.provider, endpoint] = AdaptiveLimit(name, version.concurrency)
    return limit
