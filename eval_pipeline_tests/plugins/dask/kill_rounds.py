"""Rounds of kills: one evaluation with workers, state in Postgres and a model that counts what it is paid for.

Each round has a home, a database and a model of its own. Something is killed at a random moment of the run; runs are
started until one ends well, and then the round is judged.
"""

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import psutil

from eval_pipeline.chain.shards import TURNS_A_SHARD
from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline.workspace.shards.cluster import ADDRESS
from eval_pipeline_tests.fakes.anthropic_messages import Body, question
from eval_pipeline_tests.fakes.anthropic_server import AnthropicServer
from eval_pipeline_tests.forked import Child, forked
from eval_pipeline_tests.plugins.dask.dask_services import Services, waited
from eval_pipeline_tests.plugins.dask.noting import BEGAN, DONE, Note, notes
from eval_pipeline_tests.remote import MODULE, RUN, VERSION, charged
from eval_pipeline_tests.servers import StatePostgres
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.sql.helpers import answer, shop_lab

CITIES = ("Oslo", "Bergen", "Rome", "Ulm")
CONCURRENCY = 4
KEY_NAME = "SHOP_API_KEY"
ENDS_S = 900.0
"""A run that has not ended by then hangs: the longest wait of its own is two minutes, for the database."""
ZOMBIES_S = 10.0
_SETTLE_S = 1.0
"""From a driver's death until the cluster knows of it: what it had submitted may still begin."""
_VARIES = "run_id|latency_ms|first_byte_ms|asked_on|metadata|r_ves|cpu_ms|performance_score"
"""Columns that differ from call to call, or are made of measured times."""
_ROWS = {
    "metrics": "metric NOT IN ('r_ves', 'cpu_ms', 'performance_score')",
    "statistics": "metric NOT IN ('r_ves', 'cpu_ms', 'performance_score') AND metric NOT LIKE 'latency_ms%'",
    "evidence": "kind NOT IN ('efficiency', 'performance')",
}
"""Rows of which the others are made of measured times."""


def cases(count: int) -> list[dict[str, Any]]:
    """Questions to the shop, each with another gold query."""
    return [
        {
            "id": f"c{number:02}",
            "question": f"Who lives in {CITIES[number % 4]} and has a number above {number // 4}?",
            "expected_sql": f"SELECT name FROM customers WHERE city = '{CITIES[number % 4]}' AND id > {number // 4}",
        }
        for number in range(count)
    ]


def answers(body: Body) -> str:
    """The same for the same question: right, without the number, or a column that does not exist at first."""
    asked = question(body)
    city = next(city for city in CITIES if city in json.dumps(body["messages"]))
    kind = crc32(asked.encode()) % 4
    if kind == 0 and "That failed with this error" not in asked:
        return answer(f"SELECT nothing FROM customers WHERE city = '{city}'")
    return answer(f"SELECT name FROM customers WHERE city = '{city}'" + (" AND id > 1" if kind == 1 else ""))


def prepare(lab: Lab, server: AnthropicServer, count: int) -> None:
    """The suite and a model version. Its key has a name of its own, so that no judge is asked."""
    entry = {"name": VERSION, "provider": "anthropic", "model": "claude-fake-1", "max_tokens": 200}
    entry |= {"price": {"input": 1, "output": 2}, "options": {"base_url": server.url, "api_key_env": KEY_NAME}}
    shop_lab(lab, *cases(count)).versions(entry | {"concurrency": CONCURRENCY})


@dataclass
class Told:
    """What came of a round.

    Attributes:
        kinds: what was killed, in this order; the kills that found nothing to kill are left out.
        runs: how many were started until one ended well.
        shards: those that were computed.
        again: those that were begun more than once.
        requests: different ones.
        paid_twice: requests that were paid for again.
        late: shards that were begun after the death of the driver, at any time.
    """

    kinds: list[str] = field(default_factory=list)
    runs: int = 0
    shards: int = 0
    again: int = 0
    requests: int = 0
    paid_twice: int = 0
    late: int = 0


class Round:
    """One evaluation and what happens to it."""

    def __init__(
        self, folder: Path, postgres: StatePostgres, services: Callable[[], Services], count: int, port: int
    ) -> None:
        self.folder, self.postgres, self._services, self.count, self.port = folder, postgres, services, count, port
        self.lab = Lab.at(folder)
        self.url = postgres.new_database()
        self.services = services()
        self.told = Told()
        self.server: AnthropicServer
        self._earlier = len(notes())
        self._others = set(zombies())

    def start(self, **more: str) -> Child:
        """`eval-pipeline run`, with workers and the database."""
        settings = {DATABASE_URL: self.url, ADDRESS: self.services.url, TURNS_A_SHARD: "2", **more}
        self.told.runs += 1
        return forked(f"{MODULE}:main", RUN, self.lab.environment | settings, self.log)

    @property
    def log(self) -> Path:
        return self.folder / "run.log"

    def said(self) -> str:
        return self.log.read_text()[-3000:] if self.log.exists() else ""

    def noted(self) -> list[Note]:
        """What happened to the shards of this round."""
        return notes()[self._earlier :]

    def progress(self) -> int:
        """Requests that have come in, and shards that were begun."""
        return len(self.server.requests()) + sum(note.what == BEGAN for note in self.noted())

    def kill(self, kind: str, driver: Child) -> bool:
        """Kills one of the five by SIGKILL; returns whether it was there."""
        victim = {"worker": self._worker, "child": self._sandbox_child}.get(kind, lambda: None)()
        match kind:
            case "worker" | "child":
                if victim is None:
                    return False
                victim.kill()
            case "driver":
                driver.send_signal(signal.SIGKILL)
            case "scheduler":
                self.services.children[0].kill()
                self.services.children[0].wait()
            case "postgres":
                self.postgres.kill()
        self.told.kinds.append(kind)
        return True

    def mend(self, kind: str, driver: Child, rng: Random) -> bool:
        """Starts again what was killed; returns whether the run goes on."""
        if kind == "postgres":
            time.sleep(rng.random() / 2)
            self.postgres.start()
        if kind == "driver":
            self._nothing_starts_after(driver)
        if kind == "scheduler":
            self._ended_with_a_sentence(driver.wait(ENDS_S))
            self.services.end()
            self.services = self._services()
        return kind in {"worker", "child", "postgres"}

    def _nothing_starts_after(self, driver: Child) -> None:
        killed_at = time.time()
        driver.wait(ENDS_S)
        time.sleep(3 * _SETTLE_S)
        late = [note.at - killed_at for note in self.noted() if note.what == BEGAN and note.at > killed_at]
        assert all(after < _SETTLE_S for after in late), late
        self.told.late += len(late)

    def _ended_with_a_sentence(self, code: int) -> None:
        """Unless it no longer needed the scheduler: it is told in one line that it is gone, and what to do."""
        if code != 0:
            said = [line for line in self.said().splitlines() if "scheduler" in line]
            assert said and "Traceback" not in self.said(), self.said()
            assert all("is gone; what is computed is kept, run again" in line or "no scheduler answers at" in line
                       or "has dropped a shard" in line for line in said), said  # fmt: skip

    def judge(self, whole: dict[str, list[Any]]) -> Told:
        """Compares with what an undisturbed run has left, and counts."""
        found = contents(self.lab)
        assert found.keys() == whole.keys()
        for table, rows in whole.items():
            assert found[table] == rows, table
        assert not self.lab.home.parts.exists()
        noted, told = self.noted(), self.told
        done = [note.shard for note in noted if note.what == DONE]
        for place, note in enumerate(noted):
            before = {one.shard for one in noted[:place] if one.what == DONE}
            assert note.what == DONE or note.shard not in before, "a finished shard was computed again"
        began = Counter(note.shard for note in noted if note.what == BEGAN)
        told.shards, told.again = len(set(done)), sum(count > 1 for count in began.values())
        told.requests = len(charged(self.server))
        told.paid_twice = charged(self.server).total() - told.requests
        waited(lambda: not set(zombies()) - self._others, ZOMBIES_S)
        return told

    def _worker(self) -> "psutil.Process | None":
        """A worker, below its nanny. It is waited for, as the nanny starts it."""
        return self._below(lambda line: "spawn_main" in line)

    def _sandbox_child(self) -> "psutil.Process | None":
        """The child that runs SQL. It is waited for, as it starts with the first query."""
        return self._below(lambda line: "eval_pipeline.sandbox.sql.child" in line)

    def _below(self, is_it: Callable[[str], bool]) -> "psutil.Process | None":
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for child in self.services.children[1:]:
                for one in psutil.Process(child.pid).children(recursive=True):
                    if is_it(_line(one)):
                        return one
            time.sleep(0.05)
        return None


def _line(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def zombies() -> list[int]:
    """Descendants of this process that have ended and that nobody has looked after."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if one.status() == psutil.STATUS_ZOMBIE:
                found.append(one.pid)
    return found


def contents(lab: Lab) -> dict[str, list[Any]]:
    """All that was published, but for what differs from call to call and from run to run, and for measured times."""
    names = [name for (name,) in lab.sql("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'")]
    kept = f"COLUMNS(lambda name: NOT regexp_full_match(name, '{_VARIES}'))"
    return {
        name: lab.sql(f'SELECT {kept} FROM "{name}" WHERE {_ROWS.get(name, "true")} ORDER BY ALL')
        for name in sorted({*names} - {"runs"})
    }


@contextmanager
def serving(one: Round) -> Iterator[None]:
    """The model, while a round lasts."""
    with AnthropicServer(answers, latency_s=0.03, port=one.port) as one.server:
        prepare(one.lab, one.server, one.count)
        yield


def undisturbed(folder: Path, count: int, port: int) -> dict[str, list[Any]]:
    """What a run without workers, database and kills leaves."""
    lab = Lab.at(folder)
    with AnthropicServer(answers, port=port) as server:
        prepare(lab, server, count)
        alone = dict.fromkeys((DATABASE_URL, ADDRESS), "")
        code = forked(f"{MODULE}:main", RUN, lab.environment | alone, folder / "run.log").wait(ENDS_S)
        assert code == 0, (folder / "run.log").read_text()[-3000:]
    return contents(lab)


def steps(count: int) -> int:
    """About how far `Round.progress` gets."""
    return count + count // 4 + count // 2


def disturbed(one: Round, kills: Sequence[tuple[int, str]], rng: Random) -> None:
    """Runs until a run ends well; each kill comes after the progress that it is given with, and after some more."""
    driver = one.start()
    for moment, kind in kills:
        _until(one, max(moment, one.progress() + 2), driver)
        if driver.poll() is None:
            time.sleep(rng.random() / 10)
        if driver.poll() is not None:
            break
        if one.kill(kind, driver) and not one.mend(kind, driver, rng):
            driver = one.start()
    assert driver.wait(ENDS_S) == 0, one.said()


def _until(one: Round, moment: int, driver: Child) -> None:
    give_up = time.monotonic() + ENDS_S
    while one.progress() < moment and driver.poll() is None:
        assert time.monotonic() < give_up, one.said()
        time.sleep(0.02)
