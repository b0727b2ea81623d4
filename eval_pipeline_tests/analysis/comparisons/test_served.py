"""Who answered: kept by attempt, shown, and compared night by night."""

from typing import Any

import pytest

from eval_pipeline.analysis.comparisons.served import Served
from eval_pipeline.analysis.comparisons.verdicts import check_served
from eval_pipeline.providers.anthropic.wire import response_of
from eval_pipeline.providers.application.answers import AnswerMapping
from eval_pipeline.providers.openai.wire import ChatAnswer
from eval_pipeline.store.tables import TRENDS
from eval_pipeline_tests.analysis.comparisons.histories import LAST, night, rows
from eval_pipeline_tests.support import Lab, Puppet, command, response

ALIAS, SNAPSHOT, NEXT = "claude-sonnet-4-6", "claude-sonnet-4-6-20250929", "claude-sonnet-4-6-20260115"


def answered(lab: Lab, count: int, *models: str, fingerprint: str = "", **more: Any) -> None:
    """A night, answered by the models in turn; all answers are right."""

    def answer(call: Any) -> Any:
        model = models[call.turn_index % len(models)] if models else ""
        told = {"model": model, "system_fingerprint": fingerprint}
        return response(call.gold.oracle(), metadata={name: value for name, value in told.items() if value})

    Puppet.answer = staticmethod(answer)
    lab.versions({"name": "puppet", "provider": "puppet", "model": ALIAS})
    lab.evaluate(day=night(count), epoch=str(count), run_id=f"run {count}", **{"upto": LAST} | more)


def nights(lab: Lab) -> list[tuple[Any, ...]]:
    found = sorted(rows(lab, TRENDS), key=lambda row: row["eval_date"])
    return [(row["verdict"], row["break_reason"], row["served_change"]) for row in found]


def told(lab: Lab) -> str:
    found = check_served(lab.inputs())
    return "" if found.passed else found.text


def test_it_is_kept_by_attempt_and_shown(small: Lab) -> None:
    answered(small, 0, SNAPSHOT, fingerprint="fp_1", upto="", publish=True)
    assert small.sql("SELECT DISTINCT served_model, system_fingerprint FROM attempts") == [(SNAPSHOT, "fp_1")]
    shown = small.one("SELECT details FROM explain_turn('small/alpha#0', 'puppet') WHERE kind = 'response'")
    assert f'"served_model":"{SNAPSHOT}","system_fingerprint":"fp_1"' in shown
    said = command("run", "--suite", "small", "--model-version", "puppet", "--eval-date", str(night(0)))
    assert f"answered: puppet: by {SNAPSHOT}, fp_1" in said.out
    (page,) = (small.home.reports / "small" / "puppet").glob("*/report.html")
    assert f"{SNAPSHOT}, fingerprint fp_1" in page.read_text()


def test_an_alias_that_means_a_snapshot_and_a_night_that_does_not_tell_are_no_change(small: Lab) -> None:
    for count, models in enumerate(([SNAPSHOT], [SNAPSHOT], [])):
        answered(small, count, *models)
    assert nights(small) == [("start", None, None), *[("no_change", None, None)] * 2]
    assert told(small) == ""


def test_another_model_behind_the_name_breaks_the_series_though_no_figure_moved(small: Lab) -> None:
    for count, model in enumerate((SNAPSHOT, NEXT, NEXT)):
        answered(small, count, model)
        if count == 1:
            rows(small, TRENDS)
            assert told(small) == (
                f"puppet: another model answered than before ({SNAPSHOT} → {NEXT}); its series begins anew"
            )
    assert nights(small) == [
        ("start", None, None), ("break", "served", f"{SNAPSHOT} → {NEXT}"), ("no_change", None, None),
    ]  # fmt: skip
    assert told(small) == "", "it is told on the night of the change"


def test_several_models_within_one_run_are_told_and_fail_no_run(small: Lab) -> None:
    answered(small, 0, SNAPSHOT, NEXT)
    rows(small, TRENDS)
    assert told(small) == f"puppet: several models answered within one evaluation ({SNAPSHOT}, {NEXT})"
    for count, model in enumerate((SNAPSHOT, NEXT)):
        answered(small, count, model)
    said = command("run", "--suite", "small", "--model-version", "puppet", "--eval-date", str(night(1)), "--no-report")
    assert (said.code, "warning: small: puppet: another model answered" in said.err) == (0, True), said.text


def test_a_change_over_nights_that_do_not_tell_is_told(small: Lab) -> None:
    for count, models in enumerate(([SNAPSHOT], [], [], [NEXT])):
        answered(small, count, *models)
    assert nights(small)[1:] == [
        ("no_change", None, None), ("no_change", None, None), ("break", "served", f"{SNAPSHOT} → {NEXT}"),
    ]  # fmt: skip
    assert f"({SNAPSHOT} → {NEXT})" in told(small)


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        ((("a",), ("f1", "f2")), (("a",), ("f2", "f3")), None),
        ((("a",), ("f1",)), (("a",), ("f3",)), "fingerprint f1 → f3"),
        ((("a",), ("f1",)), (("b",), ("f3",)), "a → b; fingerprint f1 → f3"),
        ((("a",), ()), (("a", "b"), ()), "a → a, b"),
        (((), ("f1",)), (("a",), ()), None),
    ],
)
def test_what_counts_as_a_change(before: Any, now: Any, change: str | None) -> None:
    assert Served(*now).change(Served(*before)) == change


@pytest.mark.parametrize(
    ("part", "model", "fingerprint"),
    [
        ({"model": "gpt-4o-2024-08-06", "system_fingerprint": "fp_44709d6fcb"}, "gpt-4o-2024-08-06", "fp_44709d6fcb"),
        ({"model": "llama3.2:1b", "system_fingerprint": "fp_ollama"}, "llama3.2:1b", "fp_ollama"),
        ({"model": "/models/a.gguf", "system_fingerprint": "b4520-0401a83b"}, "/models/a.gguf", "b4520-0401a83b"),
        ({"model": None, "system_fingerprint": None}, None, None),
        ({"model": 3, "system_fingerprint": {}}, None, None),
    ],
    ids=["openai", "ollama", "llama.cpp", "null", "nonsense"],
)
def test_forms_of_openai_compatible_endpoints(part: dict[str, Any], model: str | None, fingerprint: str | None) -> None:
    answer = ChatAnswer()
    answer.add({**part, "choices": [{"delta": {"content": "x"}}]})
    assert (answer.model, answer.fingerprint) == (model, fingerprint)


def test_anthropic_and_applications_tell_a_model() -> None:
    message = {"content": [], "stop_reason": "end_turn", "usage": {}, "model": SNAPSHOT}
    assert response_of(message).metadata["model"] == SNAPSHOT
    mapping = AnswerMapping("$.answer", model_path="$.meta.model")
    assert mapping.read('{"answer": "1", "meta": {"model": "m-2"}}').served_model == "m-2"
    assert mapping.read('{"answer": "1"}').served_model is None
