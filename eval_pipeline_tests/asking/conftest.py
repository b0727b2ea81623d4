import asyncio
from collections.abc import Iterator
from inspect import iscoroutinefunction
from pathlib import Path

import pytest

from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.providers import registry
from eval_pipeline_tests.asking.journals import Journals, emptied


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs the tests that are coroutines."""
    if not iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), 60))
    return True


@pytest.fixture(scope="session")
def _state_database(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue("state_server").new_database()
    return url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services("postgres"))])
def journals(request: pytest.FixtureRequest, tmp_path: Path) -> Journals:
    """A place for a journal, in a file and in a database."""
    if request.param == "sqlite":
        return Journals(str(tmp_path / "j.sqlite"))
    return Journals(emptied(request.getfixturevalue("_state_database")))


@pytest.fixture
def journal(journals: Journals) -> Iterator[Journal]:
    with journals.open() as journal:
        yield journal


@pytest.fixture(autouse=True)
def scripted_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call may cost is looked up by the provider's name, also where a test hands over the provider itself."""
    monkeypatch.setitem(registry.PROVIDERS, "scripted", "eval_pipeline_tests.fakes.scripted:ScriptedProvider")
