"""A track with nothing but what it must have goes through the whole pipeline: texts are given one of two labels."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from eval_pipeline.core.ids import turn_id
from eval_pipeline.core.model import Attempt, Case, ErrorClass, Evidence, Json, Message, Prompt, Turn
from eval_pipeline.tracks.base import ArtefactError, CaseError, Task
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.registry import ALL_TRACKS
from eval_pipeline_tests.support import Lab, Puppet

LABELS = ("complaint", "praise")


def label_match(said: str | None, gold: str) -> bool:
    return said == gold


def answered(said: str | None) -> bool:
    return said is not None


class LabelTask(Task[str, str, str]):
    """A case is a text; gold and artefact are labels."""

    name = "labels"
    metrics = (
        Metric("label_match", label_match, "boolean", "The label is the right one; never NULL."),
        Metric("answered", answered, "boolean", "One of the labels was given; never NULL."),
    )

    def read_case(
        self, raw: Mapping[str, Json], suite: str, file: str, line: int, shared: None = None
    ) -> Case[str, str]:
        if raw.get("label") not in LABELS:
            raise CaseError([(("label",), f"expected one of {', '.join(LABELS)}")])
        turn = Turn(turn_id(suite, raw["id"], 0), 0, "Complaint or praise?", str(raw["label"]))
        return Case(raw["id"], raw["id"], (), {}, str(raw["text"]), (turn,), file, line)

    def prompt(self, case: Case[str, str], turn: Turn[str], history: Sequence[str], version: str) -> Prompt:
        return Prompt((Message("user", f"{case.context}\n\n{turn.question}"),))

    def parse(self, text: str, *, recorded: bool) -> str:
        if text not in LABELS:
            raise ArtefactError(ErrorClass.VALUE, f"'{text}' is no label")
        return text

    def values(
        self, case: Case[str, str], turn: Turn[str], attempts: Sequence[Attempt[str]], evidence: Sequence[Evidence]
    ) -> dict[str, Any]:
        return {"said": attempts[-1].artefact, "gold": turn.gold}

    def expected_text(self, turn: Turn[str]) -> str:
        return turn.gold

    def answer_text(self, value: Json) -> str:
        return str(value)

    def oracle(self, turn: Turn[str]) -> str:
        return turn.gold


TRACK = LabelTask()


TEXTS = (
    {"id": "broken", "text": "It broke on the first day.", "label": "complaint"},
    {"id": "late", "text": "It came three weeks late.", "label": "complaint"},
    {"id": "lovely", "text": "I would buy it again.", "label": "praise"},
)


@pytest.fixture
def shop(lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setitem(ALL_TRACKS.shipped, "labels", f"{__name__}:TRACK")
    lab.suite("texts", TEXTS, track="labels")
    lab.versions(*({"name": name, "provider": name} for name in ("oracle", "null", "puppet")))
    return lab


def test_it_goes_through_the_whole_pipeline(shop: Lab) -> None:
    answers = {"broken": "complaint", "late": "praise", "lovely": "a compliment"}
    Puppet.answer = staticmethod(lambda call: answers[call.case_id])
    file = shop.home.root.parent / "said.jsonl"
    rows = [{"case_id": text["id"], "turn_index": 0, "answer": "praise"} for text in TEXTS]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = shop.cli("import", "predictions", str(file), "--suite", "texts", "--model-version", "kind")
    assert said.code == 0, said.text
    for version in ("oracle", "null", "kind", "puppet"):
        shop.evaluate("texts", version, publish=version == "puppet")

    # Gold scores one, no answer zero; recorded predictions are read without further work.
    for version, correct in (("oracle", True), ("null", False)):
        rows = f"turn_results WHERE model_version = '{version}'"
        assert shop.sql(f"SELECT correct, score, complexity FROM {rows}") == [(correct, float(correct), 0)] * 3
    assert shop.sql("SELECT case_id FROM turn_results WHERE correct AND model_version = 'kind'") == [("lovely",)]
    said = shop.cli("validate", "--suite", "texts")
    assert said.code == 0, said.text

    # What a model said is in the tables that all tracks have.
    def told(columns: str, table: str) -> list[tuple[Any, ...]]:
        return shop.sql(f"SELECT {columns} FROM {table} WHERE model_version = 'puppet' ORDER BY case_id")

    assert told("case_id, expected, answer, outcome, attempts", "turn_results") == [
        ("broken", "complaint", "complaint", "ran", 1),
        ("late", "complaint", "praise", "ran", 1),
        ("lovely", "praise", None, "failed", 1),
    ]
    assert told("case_id, error_class, error_message, plan_steps", "errors") == [
        ("late", "wrong_answer", "expected complaint, got praise", None),
        ("lovely", "value_error", "'a compliment' is no label", None),
    ]
    assert told("label_match, answered", "labels_turns") == [(True, True), (False, True), (False, False)]
    assert told("verdict", "validation")[2] == ("invalid",)
    assert shop.one("SELECT count(*) FROM evidence") == 0

    shop.stage("report", shop.inputs("texts", "null"))
    (errors,) = shop.home.reports.rglob("errors.csv")
    assert len(errors.read_text().splitlines()) == 1 + len(TEXTS)
