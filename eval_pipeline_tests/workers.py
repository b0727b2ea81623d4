"""Runs tests in several processes: this one collects them once, then forks workers, which have all imports done.

`-n auto` forks as many as there are processors, `-n 0` none. Workers are handed tests one by one, so that those of a
module, and modules of a folder, mostly stay together: what their fixtures make is made once. Dear modules come first;
at the end the rest of a module is shared. Reports go to this process, which hands them to pytest as if the tests had
run here. In a worker, EVAL_TEST_WORKER has its name, and its folder of temporary files is below the common one.

Nothing may have started a thread before the fork: no module of tests may do so when it is imported.

Loaded by the options of pytest in `pyproject.toml`.
"""

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from warnings import WarningMessage

import pytest

WORKER = "EVAL_TEST_WORKER"
COSTS = pytest.StashKey[Mapping[str, float]]()
"""What tests cost in CPU seconds, by node id, if another plugin has put it into the stash of the configuration."""
_UNKNOWN = 1.0
"""CPU seconds that a test is taken to cost of which nothing is known."""
_FEWEST = 8
"""Fewer tests are run in this process: a fork would not pay."""
_WORTH_SHARING = 2.0
"""What is left of a module is shared if it costs that many seconds: fixtures of the module are then made twice."""
_HARMLESS = ("jemalloc",)
"""How the names of threads begin whose library starts them again after a fork."""

Event = tuple[str, Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `-n`."""
    told = "number of processes that run tests; auto: one per processor; 0: this one does"
    parser.getgroup("workers")._addoption("-n", "--workers", metavar="N", default="0", help=told)


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder for temporary files that all workers see."""
    return factory.getbasetemp().parent if WORKER in os.environ else factory.getbasetemp()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs the tests in workers, unless there are few, or a person debugs them."""
    options = session.config.option
    count = len(os.sched_getaffinity(0)) if options.workers == "auto" else int(options.workers)
    here = options.collectonly or options.usepdb or options.setupshow or session.testsfailed
    if count < 1 or here or len(session.items) < _FEWEST:
        return None
    if threads := _threads():
        told = f"collecting the tests has started threads ({', '.join(threads)}): start them in a fixture, or use -n 0"
        raise pytest.UsageError(told)
    _Run(session, min(count, len(session.items))).run()
    return True


def _threads() -> list[str]:
    """Threads that a fork would lose."""
    named = {thread.native_id: thread.name for thread in threading.enumerate()}
    tasks = {int(task.name): task for task in Path("/proc/self/task").glob("*")}
    names = [
        named.get(task) or (path / "comm").read_text().strip() for task, path in tasks.items() if task != os.getpid()
    ]
    return [name for name in names if not name.startswith(_HARMLESS)]


@dataclass(frozen=True)
class _Module:
    """Tests of one module, in order."""

    items: Sequence[pytest.Item]
    cost: float
    folder: Path
    longest: bool


@dataclass
class _Worker:
    """A process that runs tests.

    Attributes:
        module: the tests it is about to run, in order; `running` and `following` are told to it.
        folders: where the tests are that it has begun.
    """

    name: str
    process: Any
    connection: Connection
    module: list[pytest.Item] = field(default_factory=list)
    running: pytest.Item | None = None
    following: pytest.Item | None = None
    folders: set[Path] = field(default_factory=set)


class _Run:
    """Hands out the tests, and hears what comes of them."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session, self._hook, self._count = session, session.config.hook, count
        self._costs = session.config.stash.get(COSTS, {})
        self._number = {item: number for number, item in enumerate(session.items)}
        modules = groupby(session.items, key=lambda item: (item.path, _is_longest(item)))
        self._modules = [self._module(list(items)) for _, items in modules]
        self._folders: dict[Path, float] = defaultdict(float)
        for module in self._modules:
            self._folders[module.folder] += module.cost
        self._workers: list[_Worker] = []
        self._forked = 0
        self._late: list[str] = []  # what went wrong after the last test of a worker

    def run(self) -> None:
        try:
            for _ in range(self._count):
                self._fork()
            while self._workers:
                # A grandchild may hold the connection of a worker that has died.
                ready = wait([worker.connection for worker in self._workers], timeout=1)
                for worker in tuple(self._workers):
                    if worker.connection in ready or not worker.process.is_alive():
                        self._hear(worker)
        except BaseException:
            self._interrupt()
            raise
        if self._late:
            raise RuntimeError("; ".join(self._late))
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _fork(self) -> None:
        self._session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        ours, theirs = multiprocessing.Pipe()
        name = f"w{self._forked}"
        others = [ours, *(worker.connection for worker in self._workers)]
        arguments = (self._session, name, theirs, others)
        process = multiprocessing.get_context("fork").Process(target=_work, args=arguments, name=name)
        sys.stdout.flush()
        sys.stderr.flush()
        process.start()
        theirs.close()
        self._forked += 1
        worker = _Worker(name, process, ours)
        self._workers.append(worker)
        worker.following = self._next(worker)
        self._tell(worker)

    def _hear(self, worker: _Worker) -> None:
        """Takes what came of a test, and hands out the next."""
        try:
            events: list[Event] | None = worker.connection.recv() if worker.connection.poll() else None
        except (EOFError, OSError):
            events = None
        if events is None:
            self._bury(worker)
        else:
            self._replay(events)
            self._tell(worker)

    def _tell(self, worker: _Worker) -> None:
        """Tells a worker what to run, and which test follows: fixtures that both use are kept between them."""
        stopped = self._session.shouldfail or self._session.shouldstop
        worker.running = None if stopped else worker.following
        worker.following = self._next(worker) if worker.running else None
        told = [None if item is None else self._number[item] for item in (worker.running, worker.following)]
        with suppress(OSError):  # it has died, as will be heard
            worker.connection.send(told)

    def _next(self, worker: _Worker) -> pytest.Item | None:
        """The test that a worker should run after those that it has been told."""
        if not worker.module:
            worker.module = self._free_module(worker) or self._rest_of_another()
        if not worker.module:
            return None
        item = worker.module.pop(0)
        worker.folders.add(item.path.parent)
        return item

    def _module(self, items: Sequence[pytest.Item]) -> _Module:
        return _Module(items, self._cost(items), items[0].path.parent, _is_longest(items[0]))

    def _free_module(self, worker: _Worker) -> list[pytest.Item]:
        """A module of a folder that this worker has begun; else of one that nobody has, the dearest first."""
        begun = {folder for other in self._workers if other is not worker for folder in other.folders}

        def order(module: _Module) -> tuple[Any, ...]:
            folder = module.folder
            dearest = -self._folders[folder], -module.cost
            return not module.longest, folder not in worker.folders, folder in begun, *dearest

        if not self._modules:
            return []
        found = min(self._modules, key=order)
        self._modules.remove(found)
        return list(found.items)

    def _rest_of_another(self) -> list[pytest.Item]:
        """The second half of what another worker has still to do."""
        module = max((worker.module for worker in self._workers), key=self._cost)
        whole, rest = self._cost(module), list[pytest.Item]()
        while module and whole >= _WORTH_SHARING and (not rest or self._cost([*rest, module[-1]]) <= whole / 2):
            rest.insert(0, module.pop())
        return rest

    def _cost(self, items: Sequence[pytest.Item]) -> float:
        return sum(self._costs.get(item.nodeid) or _UNKNOWN for item in items)

    def _replay(self, events: Sequence[Event]) -> None:
        for name, told in events:
            if name == "report":
                report = self._hook.pytest_report_from_serializable(config=self._session.config, data=told)
                self._hook.pytest_runtest_logreport(report=report)
            elif name == "warning":
                message = WarningMessage(told["message"], type(told["category"], (Warning,), {}), *told["place"])
                more = {key: told[key] for key in ("when", "nodeid", "location")}
                self._hook.pytest_warning_recorded.call_historic(kwargs={"warning_message": message, **more})
            elif name == "stopped":
                self._session.shouldstop = told
            elif name == "broken":
                raise RuntimeError(told)
            else:
                getattr(self._hook, name)(**told)

    def _bury(self, worker: _Worker) -> None:
        """A worker has ended: if it should not have, its test has failed, and another one goes on."""
        worker.process.join()
        worker.connection.close()
        self._workers.remove(worker)
        code, item = worker.process.exitcode, worker.running
        if item is None:
            if code:
                self._late.append(f"worker {worker.name} {_ended(code)} after its last test")
            return
        told = f"worker {worker.name} {_ended(code)} while it ran this test"
        self._hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", told, "call")
        self._hook.pytest_runtest_logreport(report=report)
        self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if left := [*filter(None, [worker.following]), *worker.module]:
            self._modules.append(self._module(left))
        if self._modules and not (self._session.shouldfail or self._session.shouldstop):
            self._fork()

    def _interrupt(self) -> None:
        """Ends all workers: they still end their fixtures."""
        if reporter := self._session.config.pluginmanager.getplugin("terminalreporter"):
            for worker in self._workers:
                reporter.write_line(f"{worker.name} is interrupted in {worker.running and worker.running.nodeid}")
        for worker in self._workers:
            if worker.process.is_alive():
                os.kill(worker.process.pid, signal.SIGINT)
        for worker in self._workers:
            worker.process.join(20)
            worker.process.kill()
            worker.process.join()


def _is_longest(item: pytest.Item) -> bool:
    return any(mark.kwargs.get("longest") for mark in item.iter_markers())


def _ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


def _work(session: pytest.Session, name: str, connection: Connection, others: Sequence[Connection]) -> None:
    """What a worker does."""
    for other in others:
        other.close()
    os.environ[WORKER] = name
    events = _settled(session.config, name)
    try:
        for item, following in _told(connection, session.items):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            connection.send(events)
            events.clear()
    except (KeyboardInterrupt, EOFError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it will not end sooner
        with suppress(Exception):  # the handler of signals has changed, for one
            session._setupstate.teardown_exact(None)
        return
    except pytest.exit.Exception as error:
        connection.send([*events, ("stopped", str(error))])
    except BaseException:
        connection.send([*events, ("broken", f"worker {name}:\n{traceback.format_exc()}")])
    session._setupstate.teardown_exact(None)


def _told(connection: Connection, items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """The tests to run, each with the one that follows."""
    while True:
        number, following = connection.recv()
        if number is None:
            return
        yield items[number], None if following is None else items[following]


def _settled(config: pytest.Config, name: str) -> list[Event]:
    """Gives a worker its own output and folder; what its tests tell is appended to the result."""
    plugins: Any = config.pluginmanager
    if capture := plugins.getplugin("capturemanager"):
        capture.read_global_capture()
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    # It tells nothing by itself; assertions ask for its writer, to colour what they say.
    if reporter := plugins.unregister(name="terminalreporter"):
        plugins.register(SimpleNamespace(_tw=reporter._tw, stats={}), "terminalreporter")
    factory = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.getbasetemp() / name
    factory._basetemp.mkdir(mode=0o700)
    events: list[Event] = []
    plugins.register(_Recorder(config, events))
    events.clear()  # pytest tells a new plugin the warnings of before
    return events


class _Recorder:
    """Hears in a worker what the other process is to hear."""

    def __init__(self, config: pytest.Config, events: list[Event]) -> None:
        self._config, self._events = config, events

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._events.append(("pytest_runtest_logstart", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._events.append(("pytest_runtest_logfinish", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._events.append(("report", data))

    def pytest_warning_recorded(self, warning_message: WarningMessage, when: str, nodeid: str, location: Any) -> None:
        said = warning_message
        place = said.filename, said.lineno, None, said.line
        told = {"message": str(said.message), "category": said.category.__name__, "place": place}
        self._events.append(("warning", told | {"when": when, "nodeid": nodeid, "location": location}))
