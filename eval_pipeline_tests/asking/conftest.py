import pytest

from eval_pipeline.providers import registry


@pytest.fixture(autouse=True)
def scripted_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call may cost is looked up by the provider's name, also where a test hands over the provider itself."""
    monkeypatch.setitem(registry.PROVIDERS, "scripted", "eval_pipeline_tests.fakes.scripted:ScriptedProvider")
