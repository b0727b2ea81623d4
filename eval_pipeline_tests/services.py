"""Services: programs of their own that tests start and talk to. `make test` starts none.

A test that starts one carries `@pytest.mark.services("browser", ...)`; without the mark it fails, so that none is
forgotten. Where a program is not installed, the test is skipped; on CI it has to be there.

Registered by `conftest.py`.
"""

import os
import re
import shutil
import sys
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

MARK = "services"
_WHOLE = re.compile(rf"^pytestmark = \[?pytest\.mark\.{MARK}\(", re.MULTILINE)
_PLACES = (*sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin"))), "/usr/sbin")


@dataclass(frozen=True)
class Service:
    """How a service is told from other children.

    Attributes:
        command: found in the command line that starts it.
        program: what has to be installed, or what does as well; nothing, if it comes with our packages.
    """

    command: re.Pattern[str]
    program: str = ""


SERVICES = {
    "browser": Service(re.compile(r"/playwright/driver/"), "chromium-headless-shell|chromium"),
    "libreoffice": Service(re.compile(r"(^|/)soffice "), "soffice"),
    "postgres": Service(re.compile(r"(^|/)(initdb|postgres) "), "initdb"),
    "mariadb": Service(re.compile(r"(^|/)mariadbd "), "mariadbd"),
    "ui": Service(re.compile(r"eval[-_]pipeline.* (dev|view) --port ")),
    "bucket": Service(re.compile(r" eval_pipeline_tests\.plugins\.bucket\.stores ")),
    "dask": Service(re.compile(r"distributed\.cli\.")),
    "model": Service(re.compile(r" eval_pipeline_plugins\.local_model\.server ")),
}


def no_jail(why_not: str) -> BaseException:
    """What a test raises that needs a jail: it is skipped; on CI it fails, as one has to be there."""
    return (pytest.fail if os.environ.get("CI") else pytest.skip).Exception(why_not)


def program(name: str) -> str | None:
    """Where a program is installed, or the first of several that do the same."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_PLACES])
    return next(filter(None, (shutil.which(one, path=path) for one in name.split("|"))), None)


def services_of(command: str) -> set[str]:
    """The services that a command line starts; none if it only asks for help."""
    if "--help" in command:
        return set()
    return {name for name, service in SERVICES.items() if service.command.search(f"{command} ")}


_started: set[str] = set()
"""Those that this process has started since a test or fixture began."""
_of_fixtures: dict[tuple[str, str, str], set[str]] = {}
"""Those that fixtures have started, by place, name and parameter: who uses such a fixture later uses them too."""


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        told = arguments[1]
        words: Iterable[Any] = [told] if isinstance(told, str | bytes | os.PathLike) else told
        _started.update(services_of(" ".join(os.fsdecode(word) for word in words)))


sys.addaudithook(_hear)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips tests whose services are not installed, but on CI. The longest come first: nothing waits for them then."""
    items.sort(key=lambda item: not any(mark.kwargs.get("longest") for mark in item.iter_markers(MARK)))
    for item in items:
        missing = [name for name in _marked(item) if (needed := SERVICES[name].program) and program(needed) is None]
        if missing and not os.environ.get("CI"):
            item.add_marker(pytest.mark.skip(reason=f"not installed: {', '.join(missing)} (`make debian`)"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files whose tests will not run are not even imported: that takes longest.

    Where only tests with services run, the mark has to be in the file, or in a `conftest.py` with its fixtures; where
    none do, files that are marked as a whole are left out.
    """
    chosen = config.option.markexpr
    if collection_path.suffix != ".py":
        return None
    if f"not {MARK}" in chosen or config.getoption("tier", "all") in ("smoke", "test"):
        return _WHOLE.search(collection_path.read_text()) is not None or None
    if not chosen.startswith(MARK):
        return None
    above = (folder / "conftest.py" for folder in collection_path.parents if folder.is_relative_to(config.rootpath))
    files = [collection_path, *filter(Path.exists, above)]
    return not any(f"mark.{MARK}(" in file.read_text() for file in files) or None


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Notes which fixtures start services."""
    before = set(_started)
    _started.clear()
    try:
        return (yield)
    finally:
        if _started:
            key = fixturedef.baseid, fixturedef.argname, repr(getattr(request, "param", None))
            _of_fixtures[key] = set(_started)
        _started.update(before)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Begins anew: what a fixture starts when it ends is not the next test's."""
    _started.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fails a test that uses a service without the mark."""
    result = yield
    used = _started.union(*(found for key, found in _of_fixtures.items() if _uses(item, *key)))
    if unmarked := used - _marked(item):
        told = ", ".join(f'"{name}"' for name in sorted(unmarked))
        pytest.fail(f"it starts services: mark it with @pytest.mark.{MARK}({told})", pytrace=False)
    return result


def _uses(item: pytest.Item, place: str, fixture: str, parameter: str) -> bool:
    given = item.callspec.params if hasattr(item, "callspec") else {}
    return (
        fixture in getattr(item, "fixturenames", ())
        and item.nodeid.startswith(place)
        and repr(given.get(fixture)) == parameter
    )


def _marked(item: pytest.Item) -> set[str]:
    """The services that the marks of a test name."""
    named = {name for mark in item.iter_markers(MARK) for name in mark.args}
    if unknown := named - SERVICES.keys():
        raise pytest.UsageError(f"{item.nodeid}: unknown services: {', '.join(sorted(unknown))}")
    return named
