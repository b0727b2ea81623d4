"""PostgresLeases: one holder at a time, whoever is gone is outlived, and who comes back late cannot pay."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from eval_pipeline.asking.batches.intents import BatchIntents
from eval_pipeline.asking.budgets import Budget
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.permits import Permits
from eval_pipeline.asking.spending.ledger import Claim, Hold
from eval_pipeline.asking.spending.purse import Purse
from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.errors import LockedError, StoreError, UsageError
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.system import processes
from eval_pipeline.core.system.days import since_boot
from eval_pipeline.providers import registry
from eval_pipeline.state.place import DATABASE_URL, state_place
from eval_pipeline.workspace.homes.locks import held
from eval_pipeline.workspace.shards import workers
from eval_pipeline_plugins.postgres import leases as module
from eval_pipeline_plugins.postgres import session
from eval_pipeline_plugins.postgres.address import DatabaseAddress
from eval_pipeline_plugins.postgres.batches import PostgresBatchTable
from eval_pipeline_plugins.postgres.leases import LEASE_S, LostLeaseError, PostgresLeases, open_leases
from eval_pipeline_plugins.postgres.session import Session
from eval_pipeline_tests.fakes.scripted import ScriptedProvider, make_call
from eval_pipeline_tests.support import DAY, Lab

pytestmark = pytest.mark.services("postgres")
NOWHERE = Path("/there/is/no/such/file")
LIFE_S = 1.0
VERSION = ModelVersion(name="v", provider="scripted", model="m", batch=True)

Host = Callable[[], PostgresLeases]


@pytest.fixture(autouse=True)
def scripted_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PROVIDERS, "scripted", "eval_pipeline_tests.fakes.scripted:ScriptedProvider")


@pytest.fixture
def host(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Makes hosts. One that is asleep, as none is here until `awake`, renews nothing."""
    made: list[PostgresLeases] = []

    def make() -> PostgresLeases:
        made.append(PostgresLeases(DatabaseAddress(database_url, "the test's"), LIFE_S))
        return made[-1]

    monkeypatch.setattr(module, "_RENEWALS", 1e-9)
    yield make
    for one in made:
        one.close()


def let_expire(leases: PostgresLeases) -> None:
    """As if nothing had been renewed for longer than its time, which the server has been up for."""
    late = "UPDATE eval_pipeline.leases SET expires_at = clock_timestamp() - interval '1 s'"
    up = "SELECT pg_sleep_until(pg_postmaster_start_time() + %s::interval)"
    leases._session.run(lambda connection: (connection.execute(late), connection.execute(up, [f"{LIFE_S} s"])))


def when_free(leases: PostgresLeases, name: str) -> module.PostgresLease:
    let_expire(leases)
    lease = leases.take(name)
    assert lease is not None
    return lease


def break_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_one_holds_it_at_a_time(host: Host) -> None:
    one, other = host(), host()
    lease = one.take("a")
    assert other.take("a") is None and one.take("a") is None
    assert other.take("b") is not None
    assert sorted(one.held("")) == ["a", "b"]
    assert all(0 <= silent < 60 for silent in one.held("").values())
    one.release(lease)
    again = other.take("a")
    assert again is not None and again.fence > lease.fence


def test_a_holder_that_is_alive_keeps_it_for_longer_than_its_time(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RENEWALS", 1000)
    one, other, renewed, real = host(), host(), threading.Semaphore(0), PostgresLeases._renew

    def renew(self: PostgresLeases, held: dict[int, module.PostgresLease]) -> None:
        real(self, held)
        renewed.release()

    monkeypatch.setattr(PostgresLeases, "_renew", renew)
    one.life_s = 60.0
    lease = one.take("a")
    let_expire(other)
    for _ in range(2 + renewed._value):
        assert renewed.acquire(timeout=20)
    assert other.take("a") is None
    lease.check()


def test_who_was_outlived_can_neither_pay_nor_free_it(host: Host) -> None:
    one, other = host(), host()
    stale = one.take("a")
    lease = when_free(other, "a")
    with pytest.raises(LostLeaseError, match="another run has taken over 'a'"):
        stale.reserve(1, 100, 0.5)
    one.release(stale)
    one._renew({stale.fence: stale})
    lease.check()
    assert other.take("a") is None


def test_who_comes_late_before_anybody_else_keeps_it(host: Host) -> None:
    one, other = host(), host()
    lease = one.take("a")
    let_expire(other)
    assert not other.is_held("a")
    lease.reserve(2, 100, 0.5)
    assert other.take("a") is None


def test_what_is_reserved_is_written_down_with_the_fence(host: Host, database_url: str) -> None:
    lease = host().take("a")
    lease.reserve(2, 100, 0.5)
    lease.reserve(1, 20, 0.25)
    with psycopg.connect(database_url) as connection:
        found = connection.execute("SELECT fence, calls, tokens, usd FROM eval_pipeline.leases").fetchone()
    assert found == (lease.fence, 3, 120, 0.75)


def test_a_process_of_this_machine_that_is_gone_is_not_waited_for(host: Host, database_url: str) -> None:
    one, other = host(), host()
    assert one.take("a") is not None
    with psycopg.connect(database_url) as connection:
        owner = "UPDATE eval_pipeline.leases SET owner = regexp_replace(owner, '^(\\S+) \\d+ ', '\\1 4194303 ')"
        connection.execute(owner.encode())
    assert other.take("a") is not None


def test_a_host_with_the_name_of_another_is_another(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RENEWALS", 5)
    one, other = host(), host()
    first, lease = one.process(), one.take("a")
    monkeypatch.setattr(processes, "machine", lambda: "elsewhere")
    monkeypatch.setattr(module, "is_alive", lambda pid, since: False)  # numbers of processes mean nothing there
    assert other.process().name != first.name
    assert other.take("a") is None
    first.check()
    lease.check()


def test_hosts_that_cannot_be_told_apart_free_nothing_of_each_other(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RENEWALS", 5)
    monkeypatch.setattr(processes, "machine", lambda: processes.UNKNOWN)
    one, other = host(), host()
    lease = one.take("a")
    monkeypatch.setattr(module, "is_alive", lambda pid, since: False)  # it runs on the other one
    assert other.take("a") is None
    lease.check()


def test_threads_that_ask_at_the_same_time_share_the_lease_of_the_process(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases, real = host(), PostgresLeases.take

    def slow(self: PostgresLeases, name: str) -> "module.PostgresLease | None":
        time.sleep(0.2)
        return real(self, name)

    monkeypatch.setattr(PostgresLeases, "take", slow)
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(leases.process) for _ in range(4)]
        assert len({one.result().fence for one in found}) == 1


def test_threads_that_open_leases_at_the_same_time_have_the_same(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[PostgresLeases]()

    def slow(*arguments: Any) -> PostgresLeases:
        time.sleep(0.1)
        made.append(PostgresLeases(*arguments))
        return made[-1]

    monkeypatch.setattr(module, "PostgresLeases", slow)
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(open_leases) for _ in range(4)]
        assert {one.result() for one in found} == {made[0]}
    assert len(made) == 1


def test_a_lease_is_freed_although_the_connection_broke(host: Host, database_url: str) -> None:
    one = host()
    lease = one.take("a")
    one._renew({lease.fence: lease})
    break_connections(database_url)
    one.release(lease)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM eval_pipeline.leases").fetchone() == (0,)


def test_while_the_database_has_just_started_nobody_has_expired(
    host: Host, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = host(), host()
    assert one.take("a") is not None
    let_expire(other)
    other.life_s = 86_400.0  # as if the server had been started within one lease's time
    assert other.is_held("a")
    assert other.take("a") is None
    assert not other.end_expired("a")
    other.life_s = LIFE_S
    assert other.end_expired("a")


def test_a_call_is_not_made_by_one_whose_lease_another_has(host: Host) -> None:
    one, other = host(), host()
    stale = one.take("a")
    provider = ScriptedProvider()

    async def ask(turn: int) -> object:
        version = ModelVersion(name="v", provider="scripted", model="m")
        budget = Budget(version, permits=Permits(stale), today=lambda: DAY)
        with state_place().journal(NOWHERE, stale) as journal:
            return await Caller(provider, journal, version, budget=budget).ask(make_call(turn))

    asyncio.run(ask(1))
    assert len(provider.asked) == 1
    when_free(other, "a")
    with pytest.raises(LostLeaseError):
        asyncio.run(ask(2))
    assert len(provider.asked) == 1


def test_a_batch_is_neither_claimed_nor_submitted_by_one_whose_lease_another_has(host: Host) -> None:
    one, other = host(), host()
    stale = one.take("a")
    with state_place().journal(NOWHERE, stale) as journal:
        intents = BatchIntents(journal.batches, VERSION)
        intent = intents.claim(["k1"])
        intents.require_mine(intent)
        when_free(other, "a")
        for refused in (lambda: intents.claim(["k2"]), lambda: intents.require_mine(intent)):
            with pytest.raises(LostLeaseError):
                refused()
        intents.handed_in(intent.id, "batch_1")  # it was submitted before: others shall find it
        assert [found.batch_id for found in intents.open()] == ["batch_1"]


@dataclass
class Counting:
    """A payer whose answers take as long as it is told."""

    good_until: float = float("inf")
    reserved: list[tuple[int, int, float]] = field(default_factory=list)

    def reserve(self, calls: int, tokens: int, usd: float) -> None:
        self.reserved.append((calls, tokens, usd))
        if len(self.reserved) == 2:
            self.good_until = float("inf")


def test_calls_of_one_moment_share_a_transaction() -> None:
    payer = Counting()

    async def ask() -> None:
        permits = Permits(payer)
        await asyncio.gather(*(permits.ask(10, 0.5) for _ in range(50)))

    asyncio.run(ask())
    assert payer.reserved == [(50, 500, 25.0)]


def test_an_answer_that_came_before_the_process_was_stopped_is_asked_for_again() -> None:
    payer = Counting(good_until=0.0)
    asyncio.run(Permits(payer).ask(10, 0.5))
    assert payer.reserved == [(1, 10, 0.5), (1, 0, 0.0)]


def test_a_permit_from_before_the_machine_slept_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    payer, real = Counting(good_until=since_boot() + 60), time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + 100 * (clock == time.CLOCK_BOOTTIME))
    asyncio.run(Permits(payer).ask(10, 0.5))
    assert payer.reserved == [(1, 10, 0.5), (1, 0, 0.0)]


def test_a_call_that_is_not_permitted_gives_its_money_back() -> None:
    class Refusing:
        good_until = 0.0

        def reserve(self, calls: int, tokens: int, usd: float) -> None:
            raise StoreError("not yours any more")

    async def ask() -> None:
        version = ModelVersion(name="v", provider="scripted", model="m", max_tokens_total=100_000)
        budget = Budget(version, permits=Permits(Refusing()), today=lambda: DAY)
        with pytest.raises(StoreError, match="not yours"):
            await budget.reserve(make_call())
        assert budget._reserved_tokens == budget.tokens == 0

    asyncio.run(ask())


@pytest.mark.parametrize("text", ["x", "0", "-5", "1e9"])
def test_a_time_that_is_none_is_refused(text: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEASE_S, text)
    with pytest.raises(UsageError, match=f"{LEASE_S} is '{text}'; expected seconds"):
        open_leases()


def test_a_worker_has_no_address_of_a_database(database_url: str, lab: Lab) -> None:
    assert "EVAL_DATABASE_URL" in workers.told(str(lab.home.root), str(lab.home.data))["keys"]


def test_who_was_cut_off_from_the_database_lets_others_renew_first(
    database_url: str, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, other, clock = host(), host(), SimpleNamespace(monotonic=time.monotonic)
    lease = holder.take("place")
    assert lease is not None and other.take("place") is None
    let_expire(other)
    monkeypatch.setattr(module, "time", clock)
    now = time.monotonic()
    clock.monotonic = lambda: now + 0.9 * LIFE_S
    break_connections(database_url)
    assert other.take("place") is None
    assert other.is_held("place") and list(other.held("pla")) == ["place"] and not other.end_expired("place")
    lease.reserve(1, 1, 0.0)
    let_expire(other)
    assert other.take("place") is None
    clock.monotonic = lambda: time.monotonic() + 1.1 * LIFE_S
    assert when_free(other, "place").fence > lease.fence


def test_a_renewal_that_failed_is_tried_again_soon(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AGAIN_S", 0.01)
    leases, pauses, renewed = (
        PostgresLeases(DatabaseAddress(database_url, "the test's"), 8.0),
        list[float](),
        threading.Event(),
    )

    class Short(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            return super().wait(0.001)

    def renew(_: object) -> None:
        if len(pauses) < 3:
            raise StoreError("away")
        renewed.set()

    monkeypatch.setattr(leases, "_renew", renew)
    monkeypatch.setattr(leases, "_ended", Short())
    try:
        assert leases.take("place") is not None
        assert renewed.wait(20)
        assert pauses[:3] == [8.0 / module._RENEWALS, 0.01, 0.01]
    finally:
        leases.close()


def test_runs_of_one_home_take_turns_with_and_without_the_database(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("runs", "suite=small", "asking")
    with held(tmp_path, place, 0) as lease:
        assert lease is not None
        with monkeypatch.context() as without:
            without.delenv(DATABASE_URL)
            with pytest.raises(LockedError), held(tmp_path, place, 0):
                pass
    monkeypatch.delenv(DATABASE_URL)
    with held(tmp_path, place, 0) as lease:
        assert lease is None
        monkeypatch.setenv(DATABASE_URL, database_url)
        with pytest.raises(LockedError), held(tmp_path, place, 0):
            pass


def test_a_holder_that_stops_within_a_transaction_does_not_stop_the_others(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "IDLE_S", 1)
    address = DatabaseAddress(database_url, "the test's")
    locks, times = threading.Event(), list[int]()
    awake = threading.Event()

    def work(connection: "psycopg.Connection") -> int:
        times.append(1)
        with connection.transaction():
            connection.execute("LOCK TABLE eval_pipeline.batches IN EXCLUSIVE MODE")
            locks.set()
            if len(times) == 1:
                assert awake.wait(20)
            return connection.execute("SELECT 1").rowcount

    with closing(Session(address)) as stopped, closing(Session(address)) as other, ThreadPoolExecutor(1) as thread:
        done = thread.submit(stopped.run, work)
        try:
            assert locks.wait(10)
            PostgresBatchTable(other).write(lambda rows: rows.all())
        finally:
            awake.set()
        assert done.result(20) == 1
    assert len(times) == 2, "the work of the one that stopped was undone, and is done again"


def test_the_server_notices_soon_that_a_host_has_vanished(database_url: str) -> None:
    with closing(Session(DatabaseAddress(database_url, "the test's"))) as opened:
        query = "SELECT name, setting::int FROM pg_settings WHERE name LIKE 'tcp%'"
        found = dict(opened.run(lambda connection: connection.execute(query).fetchall()))
    silent = found["tcp_keepalives_idle"] + found["tcp_keepalives_count"] * found["tcp_keepalives_interval"]
    assert 0 < silent < 60 and 0 < found["tcp_user_timeout"] < 60_000


def test_hosts_share_the_limit_of_a_night_and_wait_for_the_living_only(database_url: str) -> None:
    limit, home = CostLimit("night x", 1.0), NOWHERE
    purses = [Purse(state_place().ledger(home), limit, name) for name in ("here", "there")]
    assert asyncio.run(purses[0].claim(0.7))
    gone = Hold("elsewhere@machine 1 2 x", "gone", 0.2, in_flight=1)
    with closing(state_place().ledger(home)) as ledger:
        ledger.put(limit.account, gone)
        assert ledger.claim(limit.account, 1.0, Hold("a 1 2 b"), Hold("a 1 2 b", "", 0.2, 1)) is Claim.LATER
    asyncio.run(settled(purses[0], 0.7, 0.1))
    assert not asyncio.run(purses[1].claim(0.8)), "nobody is alive who could leave more"
    assert asyncio.run(purses[1].claim(0.7))
    for purse in purses:
        purse.refuse()
        purse.close()
    spent = state_place().spent_under(home, limit.account)
    assert spent.usd == pytest.approx(1.0)
    assert spent.refused == {"here": 1, "there": 1}


async def settled(purse: Purse, claimed: float, cost: float) -> None:
    purse.settle(claimed, cost)
    await asyncio.sleep(0)
