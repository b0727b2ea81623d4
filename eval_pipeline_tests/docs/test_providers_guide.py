"""The guide of providers: its entries are read as they stand, its tables name every setting."""

import re
from pathlib import Path

import pytest
import yaml

from eval_pipeline.providers.anthropic.settings import AnthropicSampling, AnthropicSettings
from eval_pipeline.providers.application.provider import CALL_FIELDS, TASK_FIELDS, ApplicationSettings
from eval_pipeline.providers.local.provider import LocalSampling, LocalSettings
from eval_pipeline.providers.model_versions import load_model_versions
from eval_pipeline.providers.openai.provider import OpenAISampling, OpenAISettings
from eval_pipeline.providers.registry import PROVIDERS
from eval_pipeline.providers.validation import Settings

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
    assert len(load_model_versions([file])) == 1


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
    assert set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()[2:]))) == set(PROVIDERS)
