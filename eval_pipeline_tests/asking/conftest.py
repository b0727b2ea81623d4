from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline.asking.journal.sqlite import Journal
from eval_pipeline.providers import registry


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "j.sqlite") as journal:
        yield journal


@pytest.fixture(autouse=True)
def scripted_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call may cost is looked up by the provider's name, also where a test hands over the provider itself."""
    monkeypatch.setitem(registry.PROVIDERS, "scripted", "eval_pipeline_tests.fakes.scripted:ScriptedProvider")
