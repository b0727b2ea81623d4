"""`DaskCluster.map` against a client that follows a script: second copies, failures, and workers that come and go."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline_plugins.dask import cluster as dask
from eval_pipeline_plugins.dask.address import Address
from eval_pipeline_plugins.dask.cluster import DaskCluster
from eval_pipeline_tests.plugins.dask.work import sleep

pytestmark = pytest.mark.services("dask")  # not that it starts one: there, Dask is imported anyway


class Copy:
    """A future of the client: a copy of a task."""

    def __init__(self, client: "Client", name: str) -> None:
        self.client, self.name, self.status = client, name, "pending"
        self.error: Exception | None = None

    def done(self) -> bool:
        return self.status != "pending"

    def result(self, timeout: float | None = None) -> Mapping[str, Any]:
        self.client.said.append(f"fetch {self.name}")
        if self.client.lose_next:  # its worker has died; another one computes it again
            self.client.lose_next, self.status = False, "lost"
            self.client.lost.append(self)
        if self.status == "lost" or self.client.clock < self.client.mute_until:
            self.client.clock += timeout or inf
            raise TimeoutError
        if self.error is not None:
            raise self.error
        return {"host": "far", "name": self.name}

    def release(self) -> None:
        self.client.said.append(f"release {self.name}")


class Client:
    """A client, with the clock of its world; each look for what has ended takes the next step of the script."""

    status = "running"

    def __init__(self, places: int) -> None:
        self.places, self.clock, self.lose_next, self.mute_until = places, 0.0, False, 0.0
        self.copies, self.said = list[Copy](), list[str]()
        self.script, self.lost = list[Callable[[], None]](), list[Copy]()

    def nthreads(self) -> dict[str, int]:
        for copy in self.lost if self.places else ():
            copy.status = "finished"
        return {"all": self.places} if self.places else {}

    def submit(self, work: Any, task: Mapping[str, Any], *, pure: bool) -> Copy:
        assert not pure
        self.copies.append(Copy(self, str(task["name"])))
        self.said.append(f"submit {task['name']}")
        return self.copies[-1]

    def cancel(self, copies: Sequence[Copy]) -> None:
        self.said += [f"cancel {copy.name}" for copy in copies]

    def as_current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def wait(self, *_: Any, **__: Any) -> None:
        self.clock += 1.0
        if self.script:
            self.script.pop(0)()

    def end(self, *names: str, copy: int = 0, error: Exception | None = None) -> None:
        """Ends copies of tasks, by default the first ones."""
        for name in names:
            ended = [one for one in self.copies if one.name == name][copy]
            ended.status, ended.error = ("error" if error else "finished"), error


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    found = Client(places=2)

    def idle(seconds: float) -> None:
        found.clock += seconds
        found.wait()

    monkeypatch.setattr("distributed.wait", found.wait)
    monkeypatch.setattr(dask, "time", SimpleNamespace(monotonic=lambda: found.clock, sleep=idle))
    return found


def mapped(client: Client, count: int) -> Iterator[str]:
    cluster = DaskCluster(client, Address("tcp://127.0.0.1:9"))
    return (str(told["name"]) for told in cluster.map(sleep, [{"name": f"t{place}"} for place in range(count)]))


def straggling(client: Client) -> None:
    """Three tasks of four end, and the last one takes so long that it is begun a second time."""
    client.script += [lambda: client.end("t0", "t1"), lambda: client.end("t2"), *[lambda: None] * 4]


def copies_of(client: Client, name: str) -> list[Copy]:
    return [copy for copy in client.copies if copy.name == name]


def test_the_next_task_is_on_its_way_before_a_result_is_fetched(client: Client) -> None:
    client.script += [lambda: client.end("t0"), lambda: client.end("t1"), lambda: client.end("t2")]
    assert list(mapped(client, 3)) == ["t0", "t1", "t2"]
    assert client.said[:4] == ["submit t0", "submit t1", "submit t2", "fetch t0"]


@pytest.mark.parametrize(("first", "other"), [(0, 1), (1, 0)])
def test_of_a_task_that_takes_long_a_second_copy_is_begun_and_the_first_to_end_counts(
    client: Client, first: int, other: int
) -> None:
    straggling(client)
    client.script.append(lambda: client.end("t3", copy=first))
    assert list(mapped(client, 4)) == ["t0", "t1", "t2", "t3"]
    assert len(copies_of(client, "t3")) == 2
    assert [told for told in client.said if "t3" in told][-3:-1] == ["cancel t3", "fetch t3"]  # its place is free first
    assert not copies_of(client, "t3")[other].done()


def test_two_copies_that_end_at_once_are_told_once(client: Client) -> None:
    straggling(client)
    client.script.append(lambda: [client.end("t3", copy=copy) for copy in (0, 1)] and None)
    assert list(mapped(client, 4)) == ["t0", "t1", "t2", "t3"]
    assert client.said.count("fetch t3") == 1


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("fails", [0, 1])
def test_a_copy_that_fails_on_an_unfit_worker_counts_for_nothing(client: Client, fails: int, together: bool) -> None:
    straggling(client)

    def failing() -> None:
        client.end("t3", copy=fails, error=UsageError("a worker has no sandbox"))
        if together:
            client.end("t3", copy=1 - fails)

    client.script += [failing, lambda: client.end("t3", copy=1 - fails)]
    assert list(mapped(client, 4)) == ["t0", "t1", "t2", "t3"]


@pytest.mark.parametrize("together", [True, False])
def test_a_task_of_which_every_copy_fails_is_told(client: Client, together: bool) -> None:
    straggling(client)
    error = UsageError("t3 fails")

    def both() -> None:
        for copy in (0, 1):
            client.end("t3", copy=copy, error=error)

    apart = [lambda: client.end("t3", copy=0, error=error), lambda: client.end("t3", copy=1, error=error)]
    client.script += [both] if together else apart
    found = mapped(client, 4)
    assert [next(found) for _ in range(3)] == ["t0", "t1", "t2"]
    with pytest.raises(UsageError, match="t3 fails"):
        next(found)


def test_after_a_failure_nothing_more_is_begun_and_what_runs_is_dropped(client: Client) -> None:
    client.script.append(lambda: client.end("t0", error=UsageError("t0 fails")))
    with pytest.raises(UsageError, match="t0 fails"):
        list(mapped(client, 9))
    assert [copy.name for copy in client.copies] == ["t0", "t1"]
    assert client.said[-1] == "cancel t1"


def test_a_result_that_went_with_its_worker_is_computed_again(client: Client) -> None:
    def ended() -> None:
        client.end("t0")
        client.lose_next = True

    client.script += [ended, lambda: client.end("t1")]
    assert list(mapped(client, 2)) == ["t0", "t1"]
    assert client.said.count("fetch t0") == 2


def test_a_result_that_went_with_the_last_worker_is_not_waited_for_without_end(client: Client) -> None:
    def ended() -> None:
        client.end("t0")
        client.lose_next, client.places = True, 0

    client.script.append(ended)
    with pytest.raises(EvalError, match=r"has had no worker for 5 min; what is computed is kept, start workers"):
        list(mapped(client, 2))
    assert 300 < client.clock < 320


@pytest.mark.parametrize("seconds", [300, 890])
def test_a_worker_that_hangs_with_a_result_is_waited_for_until_another_one_has_it(client: Client, seconds: int) -> None:
    def ended() -> None:
        client.end("t0")
        client.mute_until = seconds

    client.script += [ended, lambda: client.end("t1")]
    assert list(mapped(client, 2)) == ["t0", "t1"]
    assert client.clock >= seconds


def test_a_worker_that_never_hands_over_a_result_ends_the_run(client: Client) -> None:
    client.script.append(lambda: client.end("t0"))
    client.mute_until = inf
    with pytest.raises(EvalError, match=r"a worker of tcp://127\.0\.0\.1:9 did not answer in time"):
        list(mapped(client, 2))
    assert 900 < client.clock < 920


def test_workers_go_on_while_the_caller_is_busy_with_what_waited_behind_a_slow_task(client: Client) -> None:
    client.script += [lambda: client.end("t1"), lambda: client.end("t2"), lambda: client.end("t0")]
    found = mapped(client, 9)
    assert next(found) == "t0"
    client.end("t3", "t4")
    client.clock += 1.0
    assert next(found) == "t1"
    assert [copy.name for copy in client.copies] == [f"t{place}" for place in range(7)]


def test_workers_that_come_later_get_tasks(client: Client) -> None:
    def joined() -> None:
        client.places = 4

    client.script += [joined, lambda: None, lambda: client.end("t0", "t1", "t2", "t3")]
    assert list(mapped(client, 4)) == ["t0", "t1", "t2", "t3"]
    assert client.said[:5] == ["submit t0", "submit t1", "submit t2", "submit t3", "fetch t0"]


def test_a_cluster_whose_workers_do_not_come_back_ends_the_run(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    def left() -> None:
        client.places = 0

    client.script.append(left)
    with pytest.raises(
        EvalError, match=r"has had no worker for 5 min; what is computed is kept, start workers and run"
    ):
        list(mapped(client, 4))
    assert 300 < client.clock < 310
    assert caplog.messages == ["the scheduler at tcp://127.0.0.1:9 has no worker; waiting for one"]


def test_looks_that_are_far_apart_do_not_make_an_outage(client: Client) -> None:
    """Calls that end soon do not look for workers at all."""
    cluster = DaskCluster(client, Address("tcp://127.0.0.1:9"))
    client.places = 0
    assert cluster._places() == 0
    client.clock += 400
    assert cluster._places() == 0
    client.clock += 4
    assert cluster._places() == 0


def test_workers_that_come_back_in_time_go_on(client: Client) -> None:
    def places(count: int) -> None:
        client.places = count

    for _ in range(2):
        client.script += [lambda: places(0), *[lambda: None] * 250, lambda: places(2), *[lambda: None] * 5]
    client.script += [lambda: client.end("t0"), lambda: client.end("t1")]
    assert list(mapped(client, 2)) == ["t0", "t1"]
