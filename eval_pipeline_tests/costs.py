"""What each test costs in CPU seconds, its children's included, and the tiers and budgets that follow from it.

`costs.json` names the tests that are dear, and for each module what the others cost together; `--record-costs` writes
it. A test that it does not name is cheap, so that a new one is in `make test`. Seconds are those of a quiet host: each
process times a fixed loop now and then, and divides by it.

A plug-in of pytest, named in `pyproject.toml`.
"""

import json
import os
import resource
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline_tests.workers import COSTS

FILE = Path(__file__).with_name("costs.json")
DEAR = 0.15
"""CPU seconds from which a test is not in `make test`, unless it is marked `always`."""
SMOKE_BUDGET = 10.0
"""CPU seconds of `make smoke`: of the tests that an edit reaches, the cheapest."""
TIER_BUDGET = 300.0
"""CPU seconds of `make test`, collection included."""
ALWAYS = "always"
_TIERS = ("smoke", "test", "ci", "all")
_QUIET_LOOP = 0.195
_LOOP_EVERY = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")
_NODE = Path(__file__).parent.name + "/"

Costs = Mapping[str, Mapping[str, float]]
"""Module → test → CPU seconds; under the empty name what the cheap ones cost together."""


def cpu_seconds() -> float:
    """CPU time of this process and of its children, of those that live on and serve many tests too."""
    found = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in found) + sum(map(_of_process, _children()))


def _children() -> set[str]:
    """The children of each thread; and the fork server, which another process may have begun.

    Called twice a test, in processes with dozens of threads: `pathlib` would take five times as long.
    """
    found = {str(forkserver._forkserver._forkserver_pid or "")}  # type: ignore[attr-defined]
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):
            handle = os.open(f"/proc/self/task/{thread}/children", os.O_RDONLY)
            try:
                while part := os.read(handle, 1 << 16):
                    found.update(part.decode().split())
            finally:
                os.close(handle)
    return found - {""}


def _of_process(pid: str) -> float:
    """What a process and its ended children took; 0 of one that has ended meanwhile."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0


def loop_seconds() -> float:
    """CPU seconds of the fixed loop: 0.18 to 0.21 on a quiet host."""
    started, x = time.process_time(), 0
    for i in range(3_000_000):
        x += i * i
    return time.process_time() - started


@dataclass
class Meter:
    """Measures the tests of one process.

    Attributes:
        slowness: how much longer the fixed loop takes than on a quiet host.
        shared: what several tests use → CPU seconds that making it took here.
    """

    slowness: float = 1.0
    shared: dict[str, float] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    _aside: float = 0.0
    _timed_at: float | None = None
    _began: float = 0.0

    def begin(self) -> None:
        """Begins a test."""
        now = cpu_seconds()
        if self._timed_at is None or now - self._timed_at > _LOOP_EVERY:
            self.slowness = loop_seconds() / _QUIET_LOOP
            now = self._timed_at = cpu_seconds()
        self._began, self._aside, self.used = now, 0.0, set()

    def end(self) -> float:
        """CPU seconds of the test, without what it shares with others."""
        return (cpu_seconds() - self._began - self._aside) / self.slowness

    @contextmanager
    def sharing(self, name: str) -> Iterator[None]:
        """Sets aside what the block costs: several tests use what it makes."""
        began, before = cpu_seconds(), self._aside
        try:
            yield
        finally:
            spent = cpu_seconds() - began
            inner, self._aside = self._aside - before, before + spent
            self.shared[name] = (spent - inner) / self.slowness
            self.used.add(name)


METER = Meter()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    METER.begin()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    if fixturedef.scope == "function":
        return (yield)
    with METER.sharing(_name_of(fixturedef, getattr(request, "param", None))):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        given = item.callspec.params if hasattr(item, "callspec") else {}
        fixtures = [found[-1] for found in item._request._arg2fixturedefs.values()]  # type: ignore[attr-defined]
        names = {_name_of(one, given.get(one.argname)) for one in fixtures if one.scope != "function"}
        used = {name: METER.shared[name] for name in (names | METER.used) & METER.shared.keys()}
        report.user_properties.append(("cpu", [METER.end(), used, METER.slowness]))
    return report


def _name_of(fixturedef: pytest.FixtureDef[Any], parameter: object) -> str:
    return f"{fixturedef.baseid}:{fixturedef.argname}" + (f"[{parameter!r}]" if parameter is not None else "")


def read_costs(file: Path = FILE) -> tuple[str, Costs]:
    """The commit at which every test last passed while it was measured, and what tests cost."""
    if not file.exists():
        return "", {}
    told = json.loads(file.read_text())
    return told["commit"], told["modules"]


def is_dear(costs: Costs, nodeid: str) -> bool:
    """Whether a test costs too much for `make test`."""
    module, name = _place(nodeid)
    return name in costs.get(module, {})


def _place(nodeid: str) -> tuple[str, str]:
    """The module of a test, and its name in there."""
    module, _, name = nodeid.removeprefix(_NODE).partition("::")
    return module, name


def known(costs: Costs, nodeids: Sequence[str]) -> dict[str, float]:
    """What tests are known to cost, by node id; cheap ones of a module are taken as alike."""
    cheap = Counter(_place(nodeid)[0] for nodeid in nodeids if not is_dear(costs, nodeid))
    found = {}
    for nodeid in nodeids:
        module, name = _place(nodeid)
        own = costs.get(module, {})
        found[nodeid] = own[name] if name in own else own.get("", 0.0) / cheap[module]
    return found


def cheapest(costs: Mapping[str, float], budget: float) -> set[str]:
    """The cheapest tests that a budget is enough for."""
    found = set()
    for nodeid, seconds in sorted(costs.items(), key=lambda pair: pair[1]):
        budget -= seconds
        if budget < 0:
            break
        found.add(nodeid)
    return found


def shared_out(measured: Mapping[str, tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """Cost of each test: its own, and its part of what it shares with others.

    What dear tests share, cheap ones have to make without them: it is shared out among those that are left.

    Args:
        measured: for each test its own CPU seconds, and those of what it shares, by name.
    """
    found: dict[str, float] = {}
    left = dict(measured)
    while left:
        users = Counter(name for _, used in left.values() for name in used)
        parts = {t: own + sum(spent / users[name] for name, spent in used.items()) for t, (own, used) in left.items()}
        found |= parts
        cheap = {test: left[test] for test, seconds in parts.items() if seconds < DEAR}
        if len(cheap) == len(left):
            break
        left = cheap
    return found


def by_module(costs: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The form of the file: dear tests by name, and the others of a module together."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for nodeid, seconds in sorted(costs.items()):
        module, name = _place(nodeid)
        own = found[module]
        if seconds >= DEAR:
            own[name] = round(seconds, 2)
        else:
            own[""] = own.get("", 0.0) + seconds
    return {module: {n: round(s, 2) for n, s in sorted(own.items())} for module, own in sorted(found.items())}


def over_budget(spent: Mapping[str, float], costs: Costs, always: Iterable[str]) -> list[str]:
    """A sentence for each module that spends clearly more in `make test` than on record, and one for the whole.

    Args:
        spent: CPU seconds by module; under the empty name those of collection.
        costs: those on record.
        always: dear tests that are in `make test` all the same.
    """
    allowed: dict[str, float] = {module: own.get("", 0.0) for module, own in costs.items()}
    for nodeid in always:
        module, name = _place(nodeid)
        allowed[module] = allowed.get(module, 0.0) + costs.get(module, {}).get(name, 0.0)
    # The first test of a worker that needs Dagster, say, pays for its import: some seconds, whichever test that is.
    found = [
        f"{module}: {seconds:.1f} CPU s in `make test`, {allowed.get(module, 0.0):.1f} on record"
        for module, seconds in spent.items()
        if module and seconds > 2 * allowed.get(module, 0.0) + 6
    ]
    if (whole := sum(spent.values())) > TIER_BUDGET:
        found.append(f"all of `make test`: {whole:.0f} CPU s, the budget is {TIER_BUDGET:.0f}")
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("costs")
    group.addoption("--tier", choices=_TIERS, default="all", help="which tests run, by what they cost")
    group.addoption("--record-costs", action="store_true", help="write what each test costs to costs.json")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{ALWAYS}: in `make test` whatever it costs")
    options = config.option
    some = options.tier != "all" or options.keyword or getattr(options, "changed_since", None)
    if options.record_costs and (some or any("::" in name for name in config.args)):
        raise pytest.UsageError("--record-costs measures whole modules: choose no tests besides")
    config.pluginmanager.register(_Session(config), "costs-session")


class _Session:
    """What tests of one session cost, where the reports arrive."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._tier = config, config.getoption("--tier")
        self._commit, self._costs = read_costs()
        self._always: list[str] = []
        self._collected = 0.0
        self._measured: dict[str, tuple[float, Mapping[str, float]]] = {}
        self._slowness: list[float] = []
        self._over: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keeps the tests of the tier."""
        kept = [item for item in items if self._in_tier(item)]
        if self._tier == "smoke":
            chosen = cheapest(known(self._costs, [item.nodeid for item in kept]), SMOKE_BUDGET)
            kept = [item for item in kept if item.nodeid in chosen]
        dropped = set(items).difference(kept)
        self._always = [item.nodeid for item in kept if item.get_closest_marker(ALWAYS)]
        if dropped:
            items[:] = kept
            self._config.hook.pytest_deselected(items=list(dropped))

    def _in_tier(self, item: pytest.Item) -> bool:
        if self._tier == "all":
            return True
        if item.get_closest_marker("services"):
            return self._tier == "ci"
        always = item.get_closest_marker(ALWAYS) is not None and self._tier != "smoke"
        return always or not is_dear(self._costs, item.nodeid)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._config.stash[COSTS] = known(self._costs, [item.nodeid for item in session.items])
        self._collected = cpu_seconds() / (loop_seconds() / _QUIET_LOOP)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, told in report.user_properties:
            if name == "cpu":
                own, used, slowness = told
                self._measured[report.nodeid] = (own, used)
                self._slowness.append(slowness)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        costs = shared_out(self._measured)
        if self._config.getoption("--record-costs"):
            if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
                self._record(costs, passed=session.exitstatus == pytest.ExitCode.OK)
        elif self._tier == "test":
            spent: dict[str, float] = defaultdict(float, {"": self._collected})
            for nodeid, seconds in costs.items():
                spent[_place(nodeid)[0]] += seconds
            self._over = over_budget(spent, self._costs, self._always)
            if self._over and session.exitstatus == 0:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _record(self, costs: Mapping[str, float], passed: bool) -> None:
        """Writes the file: of the modules that were named on the command line, if any were, else of all.

        The commit is kept if a test has failed: CI takes what was there before it as tested.
        """
        new, commit = by_module(costs), self._commit
        if self._config.args_source == pytest.Config.ArgsSource.ARGS:
            new = {**self._costs, **new}
        elif passed:
            told = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
            commit = told.stdout.strip()
        lines = ",\n".join(f"{json.dumps(module)}: {json.dumps(own)}" for module, own in sorted(new.items()))
        FILE.write_text(f'{{"commit": "{commit}", "modules": {{\n{lines}\n}}}}\n')

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        slowness = sum(self._slowness) / len(self._slowness) if self._slowness else 1.0
        total = sum(shared_out(self._measured).values())
        terminalreporter.write_line(
            f"{total + self._collected:.0f} CPU s of a quiet host, {self._collected:.0f} of them collection; "
            f"this host took {slowness:.2f} times as long"
        )
        for text in self._over:
            terminalreporter.write_line(f"FAILED over budget: {text}", red=True)
