"""What `doctor` costs: homes have more files than the headers that are kept."""

import shutil
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

import pytest

from eval_pipeline.chain.wholeness import gate
from eval_pipeline.operations.upkeep import doctor
from eval_pipeline.stages.publishing import publish_all
from eval_pipeline.store.parquet import reading
from eval_pipeline_tests.chains import compared, with_other_code
from eval_pipeline_tests.fakes.openai_server import KEY, OpenAIServer
from eval_pipeline_tests.support import DAY, Lab


@pytest.fixture
def nights(small: Lab, module_folder: Path) -> Lab:
    def make(lab: Lab) -> None:
        for night in range(4):
            lab.evaluate(day=DAY + timedelta(days=night))

    return small.made_once(module_folder / "nights", make)


def test_each_header_is_read_about_once_however_many_there_are(nights: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[Path]()
    original = reading._header.__wrapped__

    def counted(path: Path, inode: int, size: int, changed: int) -> reading.Header:
        read.append(path)
        return original(path, inode, size, changed)

    # Room for one evaluation and its suite, a third of what is there.
    monkeypatch.setattr(reading, "_header", lru_cache(maxsize=40)(counted))
    found = [one for one in doctor.examine(nights.home) if one.topic in ("record", "figures")]
    assert [one.topic for one in found] == ["record", "figures"]
    assert found[1].text.startswith("0 of 4 evaluations")
    assert len(set(read)) > 80
    assert len(read) < 1.2 * len(set(read))


def test_evaluations_that_other_code_scored_are_counted(nights: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with_other_code(monkeypatch, "scoring_code")
    (figures,) = (one for one in doctor.examine(nights.home) if one.topic == "figures")
    assert figures.text.startswith("4 of 4 evaluations") and "rescore --dry-run" in figures.text


def test_what_only_store_or_record_holds_is_named_and_publishing_mends_it(small: Lab) -> None:
    small.evaluate()
    compared(small.workspace(), "small")
    small.stage("published")
    small.evaluate(day=DAY + timedelta(days=1))
    for path in small.home.record.rglob(f"eval_date={DAY}"):
        shutil.rmtree(path)
    told = [one.text for one in doctor.examine(small.home) if one.topic == "store" and not one.fine]
    assert [text.partition(":")[0] for text in told] == ["it holds what is not on record", "it lacks what is on record"]
    assert [str(DAY + timedelta(days=day)) in text for day, text in enumerate(told)] == [True, True]
    compared(small.workspace(), "small")
    publish_all(small.workspace(), gate(small.workspace()), full=False)
    assert all(one.fine for one in doctor.examine(small.home) if one.topic == "store")


def test_a_file_that_cannot_be_read_is_told_once(small: Lab) -> None:
    (small.home.data / "model_versions.yaml").write_text("nonsense: [")
    found = {one.topic: one.text for one in doctor.examine(small.home) if not one.fine}
    assert [topic for topic, text in found.items() if "model_versions.yaml" in text] == ["model versions"]
    assert found["models"] == "not looked at, for what is said of model versions"


@pytest.mark.always
def test_models_that_are_not_there_are_told_where_the_provider_tells_it_for_nothing(
    small: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with OpenAIServer() as server:
        openai, claude = {"base_url": f"{server.url}/v1"}, {"base_url": server.url}
        asked = {
            "there": ("openai", "m", openai),
            "typo": ("openai", "m-larg", openai),
            "elsewhere": ("openai", "m", {"base_url": f"{server.url}/v2"}),  # without a list
            "claude": ("anthropic", "m", claude),
            "other-claude": ("anthropic", "m-larg", claude),
            "no-key": ("openai", "m", openai | {"api_key_env": "NO_SUCH_KEY"}),
            "nobody": ("openai", "m", {"base_url": "http://127.0.0.1:9/v1"}),
        }
        entries = [
            {"name": name, "provider": kind, "model": model, "options": at} for name, (kind, model, at) in asked.items()
        ]
        small.versions(
            *entries, {**entries[1], "name": "inactive", "active": False}, {"name": "o", "provider": "oracle"}
        )
        told = {one.topic.removeprefix("model of "): one for one in doctor._models(small.workspace())}
    assert {name for name, one in told.items() if one.fine} == {"there", "elsewhere", "claude"}
    assert told["typo"].text == "'m-larg' is not among the 2 models that the endpoint lists, such as m-large"
    assert told["other-claude"].text == "'m-larg' is unknown to the API"
    assert told["nobody"].text.startswith("'m' cannot be looked up: the endpoint: ")
    assert told.keys() == asked.keys() - {"no-key"}
    assert not server.asked


def test_a_provider_that_lacks_nothing_can_run_here(small: Lab) -> None:
    assert {found.text for found in doctor._providers(small.workspace())} >= {"can run here"}
