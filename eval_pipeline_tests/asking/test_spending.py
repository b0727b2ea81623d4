"""The limit on costs that many share: whoever races, it is never exceeded, and what was reserved is given back."""

import asyncio
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.asking.budgets import Budget, most
from eval_pipeline.asking.spending import purse as module
from eval_pipeline.asking.spending.ledger import Claim, Hold, Ledger, SqliteLedger, answer_to
from eval_pipeline.asking.spending.purse import Purse
from eval_pipeline.core.covering.cost_limit import MAX_COST, CostLimit, command_limit
from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.model import CallErrorKind, CallFailure
from eval_pipeline.core.shown import dollars
from eval_pipeline.core.system.processes import worldwide_mark
from eval_pipeline.state.place import state_place
from eval_pipeline_tests.asking.test_budgets import DAY, answer, make_version
from eval_pipeline_tests.fakes.scripted import make_call

LIMIT = CostLimit("night 2026-11-28", 1.0)
ME = f"{worldwide_mark()} me"


class Watched:
    """A ledger in memory, without which no claim is made, that keeps the highest total and what calls really cost."""

    def __init__(self) -> None:
        self.held: dict[str, Hold] = {}
        self.highest = 0.0

    def claim(self, account: str, limit: float, now: Hold, then: Hold) -> Claim:
        found = answer_to(list(self.held.values()), limit, now, then, lambda _: True)
        self.put(account, then if found is Claim.GRANTED else now)
        return found

    def put(self, account: str, now: Hold) -> None:
        self.held[now.holder] = now
        self.highest = max(self.highest, sum(one.usd for one in self.held.values()))

    def rows(self, account: str) -> list[Hold]:
        return list(self.held.values())

    def close(self) -> None: ...


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(SqliteLedger(tmp_path / "spending.sqlite")) as made:
        yield made


async def spend(purse: Purse, calls: list[tuple[float, float]]) -> list[float]:
    """Makes calls at once, each with the most and what it costs; returns the costs of those that were allowed."""

    async def one(claimed: float, cost: float) -> float | None:
        if not await purse.claim(claimed):
            purse.refuse()
            return None
        await asyncio.sleep(0)
        purse.settle(claimed, cost)
        return cost

    found = await asyncio.gather(*(one(*call) for call in calls))
    return [cost for cost in found if cost is not None]


CALLS = st.lists(
    st.tuples(st.floats(0.001, 0.6), st.floats(0, 1)).map(lambda one: (one[0], one[0] * one[1])), max_size=8
)


@given(st.lists(CALLS, min_size=1, max_size=3))
def test_whatever_calls_cost_the_limit_holds_and_what_is_left_over_is_too_little_for_what_was_refused(
    groups: list[list[tuple[float, float]]],
) -> None:
    async def all_of_them() -> list[list[float]]:
        return await asyncio.gather(*(spend(purse, calls) for purse, calls in zip(purses, groups, strict=True)))

    ledger = Watched()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "LOOK_S", 0.001)
        purses = [Purse(ledger, LIMIT, f"purpose {number}") for number in range(len(groups))]
        paid = asyncio.run(all_of_them())
    for purse in purses:
        purse.close()
    spent = sum(map(sum, paid))
    assert ledger.highest <= LIMIT.usd
    assert sum(row.usd for row in ledger.rows("")) == pytest.approx(spent)
    refused = [row.refused for row in ledger.rows("")]
    assert sum(refused) == sum(map(len, groups)) - sum(map(len, paid))
    assert all(row.in_flight == 0 for row in ledger.rows(""))
    if sum(refused):  # nobody is refused what would have fitted in the end
        assert spent + max(most for calls in groups for most, _ in calls) > LIMIT.usd


@pytest.mark.parametrize(
    ("now", "then", "others", "alive", "answer"),
    [  # worked out by hand; the limit is 1
        ((0.0, 0), (0.4, 1), [(0.6, 1)], True, Claim.GRANTED),
        ((0.0, 0), (0.5, 1), [(0.6, 1)], True, Claim.LATER),
        ((0.0, 0), (0.5, 1), [(0.6, 1)], False, Claim.REFUSED),
        ((0.0, 0), (0.5, 1), [(0.6, 0)], True, Claim.REFUSED),
        ((0.6, 1), (1.1, 2), [], False, Claim.LATER),
        ((0.6, 0), (1.1, 1), [], True, Claim.REFUSED),
        ((0.3, 1), (0.4, 2), [(0.3, 0), (0.3, 0)], True, Claim.GRANTED),
    ],
)
def test_a_claim_is_granted_waits_for_the_living_or_is_refused(
    now: tuple[float, int], then: tuple[float, int], others: list[tuple[float, int]], alive: bool, answer: Claim
) -> None:
    rows = [Hold(f"host 1 2 {number}", "", *one) for number, one in enumerate(others)]
    before, after = (Hold(ME, "", *one) for one in (now, then))
    assert answer_to([*rows, before], 1.0, before, after, lambda _: alive) is answer


EXCEEDED = f"""
CREATE TRIGGER exceeded{{0}} AFTER {{0}} ON spending
WHEN (SELECT sum(usd) FROM spending WHERE account = new.account) > {LIMIT.usd}
BEGIN SELECT RAISE(ABORT, 'exceeded'); END"""


def race(place: Path, seed: int) -> None:
    """Makes calls at once, and notes what they cost."""
    random = Random(seed)
    calls = [(random.uniform(0.02, 0.2), random.uniform(0, 0.02)) for _ in range(4)]
    purse = Purse(SqliteLedger(place), LIMIT, f"race {seed}")
    paid = asyncio.run(spend(purse, calls))
    purse.close()
    place.with_name(f"paid {seed}").write_text(str(sum(paid)))


def child(work: Callable[[], object]) -> int:
    """Forks a process that does some work; returns its id."""
    pid = os.fork()
    if not pid:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def test_sixteen_threads_and_three_processes_never_exceed_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "spending.sqlite"
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    SqliteLedger(place).close()
    with closing(sqlite3.connect(place)) as connection:
        for event in ("INSERT", "UPDATE"):
            connection.execute(EXCEEDED.format(event))
    children = [child(lambda seed=seed: race(place, seed)) for seed in range(3)]  # type: ignore[misc]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda seed: race(place, seed), range(100, 116)))
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 3
    paid = sum(float(path.read_text()) for path in tmp_path.glob("paid *"))
    with closing(SqliteLedger(place)) as ledger:
        rows = ledger.rows(LIMIT.account)
    assert sum(row.usd for row in rows) == pytest.approx(paid)
    assert 0 < paid <= LIMIT.usd
    assert len(rows) == 19


def test_what_a_killed_process_had_reserved_counts_and_nobody_waits_for_it(tmp_path: Path) -> None:
    place = tmp_path / "spending.sqlite"

    def reserve_and_die() -> None:
        asyncio.run(Purse(SqliteLedger(place), LIMIT, "killed").claim(0.4))
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(child(reserve_and_die), 0)
    purse = Purse(SqliteLedger(place), LIMIT, "after")
    assert [asyncio.run(purse.claim(usd)) for usd in (0.7, 0.5)] == [False, True]
    purse.close()
    assert sum(row.usd for row in open_rows(place)) == pytest.approx(0.9)


def open_rows(place: Path) -> list[Hold]:
    with closing(SqliteLedger(place)) as ledger:
        return ledger.rows(LIMIT.account)


async def test_a_claim_that_is_cancelled_as_it_is_granted_leaves_nothing_reserved() -> None:
    ledger, asked, may_go = Watched(), threading.Event(), threading.Event()
    real = ledger.claim

    def slow(account: str, limit: float, now: Hold, then: Hold) -> Claim:
        asked.set()
        may_go.wait(10)
        return real(account, limit, now, then)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ledger, "claim", slow)
        purse = Purse(ledger, LIMIT, "cancelled")
        waiting = asyncio.create_task(purse.claim(0.6))
        await asyncio.to_thread(asked.wait, 10)
        waiting.cancel()
        may_go.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await purse.claim(0.9)
    purse.settle(0.9, 0.0)
    purse.close()
    assert sum(row.usd for row in ledger.rows("")) == pytest.approx(0.0)


def budget(purse: Purse, **settings: Any) -> Budget:
    return Budget(make_version(**settings), purse=purse, today=lambda: DAY)


async def test_budgets_of_several_models_share_a_limit_and_tell_which_one_refused(tmp_path: Path) -> None:
    one = most(make_version(), make_call(), DAY.isoformat()).usd or 0.0
    place, limit = tmp_path / "spending.sqlite", CostLimit("command x", 2.5 * one)
    first, second = (budget(Purse(SqliteLedger(place), limit, name)) for name in ("first", "second"))
    reserved = [await first.reserve(make_call()), await second.reserve(make_call())]
    assert all(reserved)
    first.settle(reserved[0], CallFailure(CallErrorKind.TIMEOUT, "no answer"))  # may have been charged
    second.settle(reserved[1], answer(0, 0))
    assert await second.reserve(make_call())
    second.settle(reserved[1], None)
    third = budget(Purse(SqliteLedger(place), limit, "third"), max_tokens_total=1)
    assert await third.reserve(make_call()) is None
    assert third.refusal.message == "not asked: the budget of the run was reached"
    limit_of_one = budget(Purse(SqliteLedger(place), CostLimit("command x", one), "small"))
    assert await limit_of_one.reserve(make_call()) is None
    assert await limit_of_one.reserve(make_call()) is None
    assert limit_of_one.refusal.message.startswith(f"not asked: the limit of {dollars(one)} of the command ")
    for used in (first, second, third, limit_of_one):
        used.close()
    spent = state_place().spent_under(tmp_path, "command x")
    assert spent.usd == pytest.approx(one)
    assert spent.refused == {"small": 2}


async def test_a_call_of_unknown_price_is_refused_in_a_sentence(ledger: Ledger) -> None:
    unpriced = budget(Purse(ledger, LIMIT, "unpriced"), price=None)
    with pytest.raises(UsageError, match=r"no price of 'v' is known, .* \$1.00 of the night .*; set `price`"):
        await unpriced.reserve(make_call())


def test_a_damaged_ledger_is_told_in_a_sentence_and_nothing_is_paid(tmp_path: Path) -> None:
    (tmp_path / "spending.sqlite").write_bytes(b"no database, " * 1000)
    with pytest.raises(StoreError, match=r"spending\.sqlite cannot be used \(.*: remove it if it is damaged"):
        state_place().spent_under(tmp_path, LIMIT.account)


@pytest.mark.parametrize(("text", "given", "usd"), [("", None, None), ("2.5", None, 2.5), ("2.5", 4.0, 4.0)])
def test_the_limit_of_a_command_is_the_option_or_else_the_environments(
    text: str, given: float | None, usd: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MAX_COST, text)
    found, other = command_limit(given), command_limit(given)
    assert (found and found.usd) == usd
    assert found is None or other is None or found.account != other.account


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "five", "5 USD"])
def test_a_limit_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_COST, text)
    with pytest.raises(UsageError, match=f"{MAX_COST} is '{text}'; expected US dollars"):
        command_limit()
