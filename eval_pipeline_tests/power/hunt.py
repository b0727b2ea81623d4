"""Finds out which mutants the tests find; a plug-in of pytest that `python -m eval_pipeline_tests.power` loads.

One run of the tests shows which of them come by which switch. Then this process, which has collected them, is forked
for each mutant and runs those, the nearest and cheapest first, until one fails. A test that fails without a mutant
counts for nothing.
"""

import builtins
import itertools
import json
import math
import os
import re
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest

from eval_pipeline_tests import workers
from eval_pipeline_tests.support import Lab

_FOLDER = Path(os.environ["MUTANTS"])
_NONE = -1
"""The number of no mutant."""
_PATIENCE_S = 180.0
"""For one test, by the clock: a loop that does not end is found, too."""

Tests = Sequence[pytest.Item]


@contextmanager
def _shared(place: str) -> Iterator[None]:
    """What comes by a switch meanwhile does so for all tests of a place."""
    with patch.object(builtins._mutant, "place", f"={place}"):  # type: ignore[attr-defined]
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    if fixturedef.scope == "function":
        return (yield)
    with _shared(fixturedef.baseid):
        return (yield)


def _made_once(lab: Lab, kept: Path, make: Callable[[Lab], object], own: Callable[..., Lab] = Lab.made_once) -> Lab:
    with _shared(os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]):
        return own(lab, kept, make)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Hunt(), "hunt")


class _Hunt:
    """Tries the mutants in the place of a plain run."""

    def __init__(self) -> None:
        self._names: list[str] = json.loads((_FOLDER / "mutants.json").read_text())
        self._bad: set[str] = set()
        self._found: dict[int, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._bad.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        kept = Path(os.environ.get("MUTANTS_FOUND", os.devnull))
        before = json.loads(kept.read_text() or "{}") if kept.exists() else {}
        tests = {one.nodeid: one for one in session.items}
        again = {n: [tests[test]] for n, name in enumerate(self._names) if (test := before.get(name)) in tests}
        self._try(session, again)
        reached = self._reached(session)
        self._try(session, reached)
        kept.write_text(json.dumps({self._names[n]: test for n, test in sorted(self._found.items())}, indent=1))
        print(f"\n{len(self._found)} of {len(self._names)} mutants are found; these are not:")
        for number, name in enumerate(self._names):
            if number not in self._found:
                print(f"  {name}{'' if number in reached else ' (no test comes by)'}")
        print(f"tests that fail without a mutant: {', '.join(sorted(self._bad)) or 'none'}", flush=True)
        return True

    def _reached(self, session: pytest.Session) -> dict[int, Tests]:
        """For each mutant not found yet the tests that come by: those called alike first, of these the cheapest."""
        tests = session.items
        (_FOLDER / "reach").touch()
        with patch.object(Lab, "made_once", _made_once), suppress(session.Failed):
            workers._Run(session, len(os.sched_getaffinity(0))).run()
        costs = session.config.stash[workers.COSTS]
        places = defaultdict[int, set[str]](set)
        for line in (_FOLDER / "reach").read_text().splitlines():
            number, _, place = line.partition(" ")
            places[int(number)].add(place)

        def comes_by(test: pytest.Item, found: set[str]) -> bool:
            whole = tuple(place.removeprefix("=") for place in found if place.startswith("="))
            return test.nodeid in found or test.nodeid.startswith(whole)

        def order(test: pytest.Item, file: str) -> tuple[int, int]:
            return -len(_words(test.nodeid) & _words(file)), math.ceil(math.log2(costs[test.nodeid] + 0.002))

        return {
            number: sorted(
                (one for one in tests if comes_by(one, found)), key=lambda one: order(one, self._names[number])
            )
            for number, found in sorted(places.items())
            if number not in self._found
        }

    def _try(self, session: pytest.Session, chosen: Mapping[int, Tests]) -> None:
        """Finds mutants, until no test fails without one that has found some."""
        left = dict(chosen)
        while left:
            good = {number: [one for one in tests if one.nodeid not in self._bad] for number, tests in left.items()}
            found = {number: failed[0] for number, failed in _tried(session, good).items() if failed}
            own = [one for one in session.items if one.nodeid in set(found.values())]
            self._bad.update(_tried(session, {_NONE: own})[_NONE])
            self._found |= {number: test for number, test in found.items() if test not in self._bad}
            left = {number: left[number] for number, test in found.items() if test in self._bad}


@cache
def _words(place: str) -> frozenset[str]:
    """The words of a path, but for those of many."""
    path = re.split("::| ", place, maxsplit=1)[0]
    return frozenset(re.split(r"[/_.]", path)) - {"eval", "pipeline", "plugins", "py", "test", "tests"}


def _tried(session: pytest.Session, chosen: Mapping[int, Tests]) -> dict[int, list[str]]:
    """For each mutant the first test that fails; for none all that do."""
    waiting, running, found = [*chosen], dict[int, int](), dict[int, list[str]]()
    while waiting or running:
        while waiting and len(running) < len(os.sched_getaffinity(0)):
            number = waiting.pop(0)
            running[_forked(session, number, chosen[number])] = number
        time.sleep(0.05)
        for pid, number in [*running.items()]:
            log = _log(number)
            late = time.time() - log.stat().st_mtime > _PATIENCE_S
            if late or os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)  # what it has started, too
                os.waitpid(pid, 0)
                del running[pid]
                found[number] = _failed(log.read_text().splitlines())
                shutil.rmtree(_temporary(session, number), ignore_errors=True)
    return found


def _failed(told: Sequence[str]) -> list[str]:
    """What a log tells: each test that began, `!` if it failed, `.` at the end. Who ended in a test has failed it."""
    failed = [test for test, after in itertools.pairwise(told) if after == "!"]
    return failed if told[-1:] == ["."] else [*failed, *told[-1:]]


def _log(number: int) -> Path:
    return _FOLDER / f"{number}.log"


def _temporary(session: pytest.Session, number: int) -> Path:
    return Path(session.config._tmp_path_factory.getbasetemp()) / f"m{number}"  # type: ignore[attr-defined]


def _forked(session: pytest.Session, number: int, tests: Tests) -> int:
    """Starts a process that runs tests with a mutant on."""
    _temporary(session, number).mkdir()
    _log(number).write_text("")
    if pid := os.fork():
        return pid
    try:
        os.setpgid(0, 0)
        os.environ |= {"MUTANT": str(number), workers.WORKER: "w0"}
        events = workers._settled(session.config, f"m{number}/w0")
        with _log(number).open("a", buffering=1) as log:
            for item, following in itertools.zip_longest(tests, tests[1:]):
                log.write(f"{item.nodeid}\n")
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                failed = any(name == "report" and told["outcome"] == "failed" for name, told in events)
                events.clear()
                if failed:
                    log.write("!\n")
                if failed and number != _NONE:
                    break
            log.write(".\n")
        with suppress(BaseException):
            session._setupstate.teardown_exact(None)
    finally:
        os._exit(0)
