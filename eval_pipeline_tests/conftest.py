"""Fixtures of the tests that run the pipeline."""

import atexit
import gc
import importlib
import os
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

# As the command does, for children too: nothing here needs several threads, which use CPU time while they wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Images of containers often ask for no bytecode; then each run would rewrite the assertions of all tests anew, and each
# child would compile what it imports.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from eval_pipeline.core.hashing import kept
from eval_pipeline.core.reading import arms_length
from eval_pipeline.core.system.interrupts import INTERRUPTS, handlers_kept
from eval_pipeline.providers import registry
from eval_pipeline.store.published import publish as publishing
from eval_pipeline_tests import services
from eval_pipeline_tests.forked import run_at_arms_length
from eval_pipeline_tests.pictures import sketches
from eval_pipeline_tests.support import Lab, Puppet

if TYPE_CHECKING:
    from eval_pipeline_tests.servers import StatePostgres

# Examples of a test of hypothesis, as a multiple of what it has otherwise; the Makefile sets it for each target.
FACTOR = float(os.environ.get("HYPOTHESIS_FACTOR", "1"))
# No test is timed: on a busy machine any may take long. Campaigns draw other examples each time, tests the same.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=FACTOR <= 1)
settings.register_profile("untimed", UNTIMED)
settings.load_profile("untimed")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Scales the examples of a test of hypothesis, once for all its parameters."""
    test = getattr(item, "function", None)
    if FACTOR != 1 and is_hypothesis_test(test) and not hasattr(test, "scaled"):
        own = getattr(test, "_hypothesis_internal_use_settings", None) or settings.default
        test._hypothesis_internal_use_settings = settings(own, max_examples=max(1, round(own.max_examples * FACTOR)))
        test.scaled = True


def pytest_configure(config: pytest.Config) -> None:
    """Adds the rule that services are marked."""
    config.pluginmanager.register(services, "services")


# What `pytest_collection` has set aside is let go when the process ends, else some libraries complain then; not before,
# as pytest looks for garbage five times after its last test.
atexit.register(gc.unfreeze)


# Code imports them where it uses them, which takes seconds; with many tests each worker would.
USED_BY_MANY = ("anthropic", "openai", "scipy.stats")
MANY = 1000


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Imports and collection leave next to no garbage, and looking for it among all that they make takes a sixth.

    Looking among it again and again while the tests run would take a twelfth of their time.
    """
    gc.disable()
    try:
        found = yield
        for name in USED_BY_MANY if len(session.items) > MANY else ():
            with suppress(ImportError):
                importlib.import_module(name)
        return found
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        gc.enable()


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """Fails the test that leaves a handler changed: a server that a later one starts might ignore SIGTERM."""
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    with handlers_kept():
        yield
        after = {number: signal.getsignal(number) for number in INTERRUPTS}
    assert after == before


@pytest.fixture(scope="session", autouse=True)
def kept_apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests keep, an empty store for instance, later runs do not find: a test may have broken its making."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "_FOLDER", tmp_path_factory.mktemp("kept"))
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_arms_length() -> Iterator[None]:
    """Foreign files are read in forked children: an interpreter takes ten times as long to start."""
    with patch.object(arms_length, "_run", run_at_arms_length):
        yield


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what the tests of a module share."""
    return tmp_path_factory.mktemp("module")


@pytest.fixture
def same_folder(module_folder: Path) -> Path:
    """At one place for all tests of a module, and empty for each of them."""
    shutil.rmtree(module_folder / "lab", ignore_errors=True)
    (module_folder / "lab").mkdir()
    return module_folder / "lab"


@pytest.fixture
def lab_folder(tmp_path: Path) -> Path:
    """Where `lab` is. Where tests begin with the same home, it is `same_folder`; see `Lab.made_once`."""
    return tmp_path


@pytest.fixture
def lab(lab_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """An empty home with no suite; fsync, which only a power failure would miss, and rehearsals are left out."""
    made = Lab.at(lab_folder)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    # `prepare` sets it for the process; the next test has another home.
    monkeypatch.setenv("DAGSTER_HOME", str(made.home.dagster))
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr("eval_pipeline.suites.cases.rehearse", lambda source: None)
    return made


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The stores that were written while the test lasts, one entry for each time."""
    written: list[Path] = []
    real = publishing.replace_durably

    def counting(temporary: Path, target: Path) -> None:
        real(temporary, target)
        written.append(target)

    monkeypatch.setattr(publishing, "replace_durably", counting)
    return written


@pytest.fixture(scope="session", autouse=True)
def few_pictures() -> Iterator[None]:
    """Reports that are made in this process have sketches of their charts; see `pictures.sketches`."""
    with sketches():
        yield


@pytest.fixture(scope="session")
def state_server() -> "Iterator[StatePostgres]":
    """A Postgres of this process's own."""
    from eval_pipeline_tests.servers import state_postgres

    with state_postgres() as server:
        yield server


@pytest.fixture
def puppet(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Puppet]]:
    """The provider `puppet`, known to the registry while the test lasts."""
    monkeypatch.setitem(registry.PROVIDERS, "puppet", "eval_pipeline_tests.support:Puppet")
    Puppet.reset()
    yield Puppet
    Puppet.reset()


@pytest.fixture
def small(lab: Lab, puppet: type[Puppet]) -> Lab:
    """A home with the suite `small` and the model version `puppet`."""
    lab.suite()
    lab.versions({"name": "puppet", "provider": "puppet"})
    return lab
