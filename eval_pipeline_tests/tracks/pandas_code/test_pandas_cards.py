"""Cards: result beside expected result, code beside the reference, the line that fails."""

from typing import Any

import pytest

from eval_pipeline.core.model import Attempt, Case, Evidence, Ran
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline_plugins.tracks.pandas_code.cases import expected
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code
from eval_pipeline_plugins.tracks.pandas_code.running.evidence import QUALITY, RESULT
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.card_lines import card_lines
from eval_pipeline_tests.tracks.pandas_code.helpers import CASES, answer, attempt, needs_sandbox, read, unmeasured

GOLDEN = {case["name"]: case for case in golden("pandas_cards.yaml")}
RAW = {raw["id"]: raw for raw in CASES}


def case_of(name: str, gold: dict[str, Any] | None, found: PandasShared) -> Case:
    raw = RAW[name]
    turns = [gold, *raw["turns"][1:]] if gold else raw["turns"]
    return read({**raw, "turns": turns}, found)


def seen_turn(case: Case, text: str) -> Seen:
    """The turn with what the metrics say, as the workbench hands it to the track."""
    turn = case.turns[0]
    tried = attempt(case, text)
    with unmeasured():
        evidence = TRACK.gather(case, turn, tried)
    scored = MetricRunner(TRACK.metrics).run([TRACK.values(case, turn, [tried], evidence)])
    return Seen(case, turn, [tried], evidence, metrics={name: found[0] for name, found in scored.plain.items()})


@needs_sandbox
@pytest.mark.parametrize("name", GOLDEN)
def test_cards_of_a_turn(name: str, stall: PandasShared) -> None:
    told = GOLDEN[name]
    case = case_of(told["case"], told.get("gold"), stall)
    expected.expected_result(case.turns[0].gold)  # as validating a suite leaves it
    found = card_lines(TRACK.cards(seen_turn(case, answer(told["code"]))))
    assert {title: found.get(title) for title in told["cards"]} == told["cards"]
    if "facts" in told:
        assert found["Verdict"] == told["facts"]


def _made(case: Case, code: str, outcome: Any, evidence: tuple[Evidence, ...] = ()) -> dict[str, list[str]]:
    tried = Attempt(case.turns[0].id, 0, 0, "", None, None, Code(code), Ran(outcome))
    return card_lines(TRACK.cards(Seen(case, case.turns[0], [tried], evidence)))


def test_looking_runs_nothing(stall: PandasShared, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference result that is not known is left out."""
    monkeypatch.setattr(expected, "sandbox", lambda: pytest.fail("it was run"))
    gold = {"question": "How many?", "code": "result = len(sold) + 40"}
    found = _made(case_of("talk", gold, stall), "result = 6", {"result": {"kind": "value", "value": 6}})
    assert found["Results: Result"] == ["6"]
    assert "Results: Expected" not in found


def test_a_result_that_was_too_large_to_be_kept_is_not_marked(stall: PandasShared) -> None:
    gold = {"question": "Which?", "expected": [1, 2]}
    found = _made(case_of("talk", gold, stall), "result = 6", {"shown": "n\n1\n… 9,000 rows", "cut": True})
    assert found["Results"] == ["(The result was too large to be kept: its first rows, without marks.)"]
    assert found["Results: Result"] == ["n", "1", "… 9,000 rows"]


def test_findings_of_the_linter_have_their_lines(stall: PandasShared) -> None:
    case = case_of("talk", None, stall)
    findings = [{"rule": f"E{n}", "line": n, "message": "<b>odd"} for n in range(1, 50)]
    evidence = (
        Evidence(case.turns[0].id, 0, RESULT, "match", 1.0, {"message": ""}),
        Evidence(case.turns[0].id, 0, QUALITY, "findings", None, {"findings": findings}),
    )
    found = _made(case, "result = 3", {"result": {"kind": "value", "value": 3}}, evidence)
    assert found["What a linter finds"][:2] == ["line | rule | finding", "1 | E1 | <b>odd"]
    assert found["What a linter finds"][-1] == "and 19"
    assert found["Verdict"] == ["result: the expected one{right}"]


@pytest.mark.parametrize(
    "result",
    [
        {"kind": "frame", "columns": [{"name": "a", "dtype": "x", "values": [1]}], "index": []},
        {"kind": "frame", "columns": 7, "index": []},
        {"kind": "odd"},
        {},
        {"kind": "series", "values": {"name": None, "values": [[1], {"t": "list", "v": [2]}]}, "index": []},
        {"kind": "frame", "columns": [{"name": 1, "values": [1]}, {"name": 2, "values": []}], "index": []},
    ],
)
def test_a_result_that_a_snippet_made_up_is_shown_somehow(result: dict, stall: PandasShared) -> None:
    """The sandbox's form is checked when results are compared; a card must not fail over it."""
    found = _made(case_of("talk", {"question": "Which?", "expected": [1]}, stall), "x", {"result": result})
    assert any(title.startswith("Results: Result, ") for title in found)


def test_without_an_attempt_there_is_the_reference_code(stall: PandasShared) -> None:
    case = case_of("talk", None, stall)
    found = card_lines(TRACK.cards(Seen(case, case.turns[0], (), ())))
    assert found["Reference code"] == ['result = int((sold["city"] == "Oslo").sum())']
