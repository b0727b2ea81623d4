"""The guide of providers: its entries are read as they stand, its tables name every setting."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from eval_pipeline.core.model import Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.anthropic.settings import AnthropicSampling, AnthropicSettings
from eval_pipeline.providers.application.provider import CALL_FIELDS, TASK_FIELDS, ApplicationSettings
from eval_pipeline.providers.base import Environment
from eval_pipeline.providers.model_versions import load_model_versions
from eval_pipeline.providers.openai.provider import OpenAIProvider, OpenAISampling, OpenAISettings
from eval_pipeline.providers.registry import PROVIDERS
from eval_pipeline.providers.validation import Settings
from eval_pipeline_plugins.local_model.provider import LocalSampling, LocalSettings
from eval_pipeline_tests.fakes.openai_lab import ask
from eval_pipeline_tests.fakes.openai_server import OpenAIServer, Raw
from eval_pipeline_tests.fakes.scripted import make_call
from eval_pipeline_tests.goldens import golden

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "providers.md").read_text("utf-8")
ENTRIES = re.findall(r"```yaml\n(model_versions:\n.*?)```", GUIDE, re.DOTALL)
SHIPPED = (ROOT / "data" / "model_versions.yaml").read_text("utf-8")


def section(title: str) -> str:
    return GUIDE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def named(title: str, header: str) -> set[str]:
    """What the first column of a table names."""
    table = section(title).split(f"| `{header}` |")[1].split("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: yaml.safe_load(entry)["model_versions"][0]["name"])
def test_every_entry_is_sound(entry: str, tmp_path: Path) -> None:
    file = tmp_path / "model_versions.yaml"
    file.write_text(entry)
    assert len(load_model_versions([file])) == len(yaml.safe_load(entry)["model_versions"])


CLOUDS = {
    entry["name"]: entry
    for block in re.findall(r"```yaml\n(.*?)```", section("An OpenAI-compatible endpoint"), re.DOTALL)
    for entry in yaml.safe_load(block)["model_versions"]
}
TOLD: list[dict[str, Any]] = golden("gateways.yaml")


@pytest.mark.parametrize("told", TOLD, ids=lambda told: told["entry"])
def test_an_entry_of_the_guide_is_answered_by_what_the_gateway_documents(
    told: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = CLOUDS[told["entry"]]
    place = urlsplit(entry["options"]["base_url"])
    for variable in (entry["options"].get("api_key_env"), *entry["options"].get("headers_env", {}).values()):
        if variable:
            monkeypatch.setenv(variable, "secret-0123456789")
    lines = [one if isinstance(one, str) else f"data: {json.dumps(one)}" for one in told["events"]]
    step = Raw("\n\n".join([*lines, "data: [DONE]", ""]).encode(), "text/event-stream")
    with OpenAIServer([step]) as server:
        options = entry["options"] | {"base_url": server.url + place.path}
        [response] = ask(OpenAIProvider(ModelVersion(**{**entry, "options": options}), Environment()), make_call())
    assert (place.netloc, server.asked[0].path) == (told["host"], told["path"])
    assert {name: server.asked[0].headers.get(name) for name in told["headers"]} == told["headers"]
    assert (response.text, response.usage, response.metadata["model"]) == ("42", Usage(*told["usage"]), told["model"])


def test_every_cloud_of_the_guide_was_tried() -> None:
    own = {"gpt-5-mini", "qwen3-8b-vllm"}
    assert CLOUDS.keys() == own | {told["entry"] for told in TOLD}


def test_there_is_an_entry_of_every_provider_that_asks_over_a_network() -> None:
    told = {yaml.safe_load(entry)["model_versions"][0]["provider"] for entry in ENTRIES}
    assert told == {"anthropic", "openai", "http"}


def test_the_examples_in_the_shipped_file_fit_where_they_are_uncommented(tmp_path: Path) -> None:
    file = tmp_path / "model_versions.yaml"
    shipped = {entry["name"] for entry in yaml.safe_load(SHIPPED)["model_versions"]}
    file.write_text(re.sub(r"^  # (?=- name:| {2,}\w)", "  ", SHIPPED, flags=re.MULTILINE))
    versions = load_model_versions([file])
    assert [version.provider for name, version in versions.items() if name not in shipped] == [
        "anthropic", "openai", "openai", "http",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("title", "header", "settings"),
    [
        ("A Claude model", "options", AnthropicSettings),
        ("A Claude model", "sampling", AnthropicSampling),
        ("An OpenAI-compatible endpoint", "options", OpenAISettings),
        ("An OpenAI-compatible endpoint", "sampling", OpenAISampling),
        ("Your own application", "options", ApplicationSettings),
        ("The local model", "options", LocalSettings),
        ("The local model", "sampling", LocalSampling),
    ],
)
def test_the_tables_name_every_setting(title: str, header: str, settings: type[Settings]) -> None:
    assert named(title, header) == set(settings.model_fields)


def test_the_example_of_a_request_has_every_field() -> None:
    told = re.search(r"```json\n(.*?)```", GUIDE, re.DOTALL)
    assert told is not None
    assert list(yaml.safe_load(told[1])) == [*TASK_FIELDS, *CALL_FIELDS]


def test_every_provider_is_listed() -> None:
    table = GUIDE.split("| provider |")[1].split("\n\n")[0]
    named = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()[2:]))
    assert {*named} == {*PROVIDERS, "local"}, "a provider has a row in the table of docs/providers.md"
