"""Dask behind the port. The only module that imports it, and only where `EVAL_CLUSTER` is set."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from math import inf
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.core.errors import EvalError, MissingExtraError, UsageError
from eval_pipeline.core.installed.plugins import install
from eval_pipeline.core.model import Json
from eval_pipeline.workspace.shards.cluster import ADDRESS, Cluster, Task, Work
from eval_pipeline_plugins.dask.address import Address, cluster_address
from eval_pipeline_plugins.dask.stragglers import TaskLedger

_log = logging.getLogger(__name__)
_CONNECT_S, _WORKERS_S = 30.0, 30.0
_ALIVE_S = 2.0
_FETCH_S, _MUTE_S = 5.0, 900.0
"""A result is asked for again and again, for at most so long: Dask gives up a worker that hangs after five minutes."""
_LOOK_S = 0.5
"""How often stragglers and new workers are looked for."""
_RECENT_S = 10.0
"""Looks that are further apart do not tell whether there were workers in between."""
_DESERTED_S = 300.0
"""After so long without any worker a run ends, instead of holding its leases for nothing."""


def open_dask() -> AbstractContextManager[Cluster]:
    """Returns the cluster that the environment names, to be opened. Raises UsageError and MissingExtraError."""
    return dask_cluster(cluster_address())


@contextmanager
def dask_cluster(address: Address) -> Iterator[Cluster]:
    """Connects to a scheduler; the connection is closed at the end, and with it ends what this process has submitted.

    Raises:
        MissingExtraError: the extra `cluster` is not installed.
        UsageError: no scheduler answers, or it has no workers.
    """
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(f"{ADDRESS} needs Dask; {install('cluster')}") from error
    dask: Any = distributed
    for name in ("distributed", "distributed.client"):
        # Of a scheduler that is gone they would tell with stacks of calls; we do in a sentence.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    security = None
    if address.certificate is not None:
        security = dask.Security(
            tls_ca_file=str(address.ca),
            tls_client_cert=str(address.certificate),
            tls_client_key=str(address.key),
            require_encryption=True,
        )
    try:
        client = dask.Client(address.url, timeout=_CONNECT_S, security=security, set_as_default=False)
    except (OSError, ValueError) as error:  # a refused or silent port, or certificates that do not fit
        raise UsageError(f"no scheduler answers at {ADDRESS}={address.url}: {error}") from error
    try:
        _wait_for_workers(client, address)
        yield DaskCluster(client, address)
    finally:
        with suppress(Exception):  # the scheduler may be gone; what was computed is on the disk
            client.close(timeout=5)


def _wait_for_workers(client: Any, address: Address) -> None:
    try:
        client.wait_for_workers(1, timeout=_WORKERS_S)
    except TimeoutError as error:
        if client.status != "running":
            raise UsageError(f"the scheduler at {address.url} ended while its workers were waited for") from error
        raise UsageError(f"the scheduler at {address.url} has no workers; start one with `dask worker`") from error


async def _in_a_thread(work: Callable[[], Mapping[str, Json]], dask_worker: Any = None) -> Mapping[str, Json]:
    """Runs on a worker, whose event loop must not wait; Dask gives the worker."""
    return {**await asyncio.to_thread(work), "threads": int(dask_worker.state.nthreads)}


class DaskCluster:
    """Keeps as many tasks submitted as there are places, so that none starts after this process has died."""

    def __init__(self, client: Any, address: Address) -> None:
        self._client = client
        self._address = address
        self._threads, self._counted = 0, -inf
        self._deserted: float | None = None

    def map(self, work: Work, tasks: Sequence[Task]) -> Iterator[Mapping[str, Json]]:
        """See `Cluster.map`."""
        ledger, running = TaskLedger(len(tasks)), dict[Any, int]()
        told: dict[int, Mapping[str, Json]] = {}
        following = 0
        try:
            while following < len(tasks):
                self._start(work, tasks, ledger, running)
                first = self._first(self._ended(running, wait=following not in told), ledger, running)
                if all(future.status == "finished" for future in first.values()):
                    # Workers go on before what is done is fetched, and while the caller is busy with it.
                    self._start(work, tasks, ledger, running)
                told |= {task: self._result(future) for task, future in first.items()}
                if following in told:
                    yield told.pop(following)
                    following += 1
        finally:
            self._drop(running)

    async def call(self, work: Work, task: Task) -> Mapping[str, Json]:
        """See `Cluster.call`."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        with self._talking():
            future = self._client.submit(work, dict(task), pure=False)

        def wake(_: Any) -> None:
            with suppress(RuntimeError):  # the loop has ended, so that nobody waits any more
                loop.call_soon_threadsafe(ended.set)

        future.add_done_callback(wake)
        try:
            while not ended.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), _ALIVE_S)
                self._check_alive()
                if not ended.is_set():
                    await asyncio.to_thread(self._places)
            return await asyncio.to_thread(self._result, future)
        finally:
            future.release()  # the scheduler forgets the task, if the caller no longer waits for it

    def everywhere(self, work: Callable[[], Mapping[str, Json]]) -> list[Mapping[str, Json]]:
        """See `Cluster.everywhere`."""
        found: Mapping[str, Mapping[str, Json]] = self._client.run(_in_a_thread, work)
        return list(found.values())

    def _check_alive(self) -> None:
        if self._client.status != "running":
            raise self._gone()

    def _gone(self) -> EvalError:
        return EvalError(f"the scheduler at {self._address.url} is gone; what is computed is kept, run again")

    def _late(self, who: str, error: TimeoutError) -> EvalError:
        """Returns what a TimeoutError means: it is also what Dask raises when a connection has ended."""
        if self._client.status != "running":
            return self._gone()
        place = f"of {self._address.url}" if who == "a worker" else f"at {self._address.url}"
        return EvalError(f"{who} {place} did not answer in time ({error}); what is computed is kept, run again")

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Tells in a sentence that the scheduler has ended since it was looked at, or does not answer in time."""
        from distributed.client import ClosedClientError

        try:
            yield
        except TimeoutError as error:
            raise self._late("the scheduler", error) from error
        except (OSError, ClosedClientError) as error:  # the errors of Dask's connections are OSErrors
            raise self._gone() from error

    def _first(self, ended: Sequence[Any], ledger: TaskLedger, running: dict[Any, int]) -> dict[int, Any]:
        """Returns the copies that ended first, by task, and drops the others of those tasks.

        A copy that failed does not count as long as another one runs: it may have been on a worker that is not fit.
        """
        found = dict[int, Any]()
        for future in sorted(ended, key=lambda one: bool(one.status != "finished")):
            task = running.pop(future, None)  # None of a copy that was dropped here
            if task is None or (future.status != "finished" and task in running.values()):
                continue
            if ledger.ended(task, time.monotonic()):
                found[task] = future
                self._drop(running, task)
        return found

    def _start(self, work: Work, tasks: Sequence[Task], ledger: TaskLedger, running: dict[Any, int]) -> None:
        for _ in range(self._places() - len(running)):
            task = ledger.next(time.monotonic())
            if task is None:
                return
            # `pure=False`: each copy has its own key, and a key that the scheduler still knows is not used again.
            with self._talking():
                running[self._client.submit(work, dict(tasks[task]), pure=False)] = task

    def _places(self) -> int:
        """Returns how many tasks can run at once, counted twice a second: it takes as long as submitting one.

        Raises:
            EvalError: there has been no worker for a long time.
        """
        now = time.monotonic()
        if now - self._counted <= _LOOK_S:
            return self._threads
        recent = now - self._counted <= _RECENT_S
        with self._talking():
            self._threads, self._counted = sum(self._client.nthreads().values()), now
        if self._threads:
            self._deserted = None
        elif self._deserted is None or not recent:
            self._deserted = now
            _log.warning("the scheduler at %s has no worker; waiting for one", self._address.url)
        elif now - self._deserted > _DESERTED_S:
            text = f"the scheduler at {self._address.url} has had no worker for {shown.duration(_DESERTED_S)}"
            raise EvalError(f"{text}; what is computed is kept, start workers and run again")
        return self._threads

    def _ended(self, running: Mapping[Any, int], *, wait: bool) -> list[Any]:
        """Returns what has ended; if asked for, waits a moment until something has."""
        if wait:
            self._wait(running)
        self._check_alive()
        return [future for future in running if future.done()]

    def _wait(self, running: Mapping[Any, int]) -> None:
        import distributed

        dask: Any = distributed
        if not running:  # all workers have left for the moment
            time.sleep(_LOOK_S)
        else:
            # What was cancelled is told of by `_result`. A TimeoutError is an OSError, and is no end of the scheduler.
            with self._talking(), suppress(TimeoutError, dask.CancelledError), self._client.as_current():
                dask.wait(list(running), timeout=_LOOK_S, return_when="FIRST_COMPLETED")

    def _result(self, future: Any) -> Mapping[str, Json]:
        from distributed import CancelledError, KilledWorker
        from distributed.client import ClosedClientError

        try:
            found = self._fetched(future)
        except KilledWorker as error:
            text = "workers die at a shard again and again, mostly for want of memory; the workers' logs say why"
            raise EvalError(text) from error
        except CancelledError as error:
            self._check_alive()
            text = f"the scheduler at {self._address.url} has dropped a shard; what is computed is kept, run again"
            raise EvalError(text) from error
        except (OSError, ClosedClientError) as error:
            if future.status == "error":  # that of the work itself
                raise
            # The result is fetched from the worker that has it.
            raise (self._late("a worker", error) if isinstance(error, TimeoutError) else self._gone()) from error
        future.release()  # a result that the scheduler still holds would be computed again if its worker died
        return found

    def _fetched(self, future: Any) -> Mapping[str, Json]:
        """Returns what a task told; if its worker dies or hangs, another one computes it again, or finds its part."""
        until = time.monotonic() + _MUTE_S
        while True:
            try:
                found: Mapping[str, Json] = future.result(timeout=_FETCH_S)
                return found
            except TimeoutError:
                mute = future.status == "finished" and time.monotonic() > until
                if mute or future.status == "error":  # that of the work itself
                    raise
                self._check_alive()
                self._places()

    def _drop(self, running: dict[Any, int], task: int | None = None) -> None:
        """Cancels the other copies of a task, or all that still runs."""
        dropped = [future for future, of in running.items() if task is None or of == task]
        for future in dropped:
            del running[future]
        if dropped:
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel(dropped)
