"""Adaptive limit on the calls in flight at an endpoint, learned from its answers and shared by all its callers."""

import asyncio
import logging
from collections import deque
from types import TracebackType
from typing import Self

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.core.model_versions import ModelVersion

_log = logging.getLogger(__name__)

CONGESTION = frozenset({CallErrorKind.RATE_LIMITED, CallErrorKind.OVERLOADED})
"""Failures that mean that the endpoint is overloaded."""
_FLOOR = 1.0


class AdaptiveLimit:
    """Limits the calls in flight: the limit grows with successes and is halved when the endpoint pushes back.

    This is additive increase, multiplicative decrease, as in TCP: it grows by one after as many successes as the limit.
    Of the calls that were in flight together when the endpoint began to refuse, only the first failure halves the
    limit.

    Use it as an async context manager around each call in flight. Event loops may come and go, one at a time; the
    learned limit is kept.

    Attributes:
        lowest: the lowest limit since the step began.
    """

    def __init__(self, name: str, most: int) -> None:
        """Starts with the maximum, so that a fast endpoint is not slowed down.

        Args:
            name: name of the endpoint, for the log.
            most: upper bound of the limit.
        """
        self._name = name
        self._most = most
        self._limit = self.lowest = float(most)
        self._told = most  # the limit last written to the log
        self._in_flight = 0
        self._cuts = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """Number of calls that may be in flight now."""
        return int(self._limit)

    def start(self, most: int) -> None:
        """Begins a step with a new upper bound and resets `lowest`; a lower limit that was learned is kept."""
        unhurt = self._limit >= self._most
        self._most = most
        self._limit = float(most) if unhurt else min(self._limit, float(most))
        self._told = self.limit
        self.lowest = self._limit
        self._let_in()

    def began(self) -> int:
        """Returns a marker for a try that begins now; it must be passed to `failed`."""
        return self._cuts

    def succeeded(self) -> None:
        """Records that a try was answered."""
        if self._limit >= self._most:
            return
        self._limit = min(self._limit + 1.0 / self._limit, float(self._most))
        if self.limit >= min(self._told * 2, self._most):
            self._tell("rises", "calls succeed again")
        self._let_in()

    def failed(self, kind: CallErrorKind, began: int) -> None:
        """Records that a try failed; on congestion, halves the limit unless it was halved since the try began."""
        if kind not in CONGESTION or began != self._cuts:
            return
        self._cuts += 1
        self._limit = max(_FLOOR, float(self.limit // 2))
        self.lowest = min(self.lowest, self._limit)
        if self.limit != self._told:
            self._tell("falls", kind.value)

    async def enter(self) -> None:
        """Waits for a place; places are given in the order of requests."""
        if not self._waiting and self._in_flight < self.limit:
            self._in_flight += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self.leave()  # admitted and cancelled at the same time
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    def leave(self) -> None:
        """Gives up a place."""
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
    """Returns the limit for the endpoint of a model version, shared by all steps of this process."""
    endpoint = str(version.options.get("base_url", ""))
    limit = _limits.get((version.provider, endpoint))
    if limit is None:
        name = f"{version.provider} {endpoint}".strip()
        limit = _limits[version.provider, endpoint] = AdaptiveLimit(name, version.concurrency)
    return limit
