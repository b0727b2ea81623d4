"""What the checks of a suite say, and what a response that cannot be read leaves behind."""

import gc

from eval_pipeline.stages.attempts.ask import parse_response
from eval_pipeline.stages.checks.verdicts import check_gold
from eval_pipeline.tracks.finqa.track import TRACK
from eval_pipeline_tests.chains import INGESTING, checked, ran_of_suite
from eval_pipeline_tests.support import BROKEN, Lab, case


def test_turns_whose_gold_does_not_hold_are_told_with_the_reason(lab: Lab) -> None:
    lab.suite("small", [case("alpha", ("50", 50.0), ("add(50, 7)", 58.0)), case("beta", ("divide(1, 0)", 1.0))])
    workspace = lab.workspace()
    ran_of_suite(workspace, "small", *INGESTING)
    verdict = checked(check_gold, workspace, "small")
    assert not verdict.passed
    assert verdict.text.startswith("the gold of 2 of 3 turns does not hold")
    assert (verdict.facts["turns"], verdict.facts["wrong_gold"]) == (3, 2)
    assert verdict.facts["examples"] == [
        "small/alpha#1: the program 'add(50, 7)' gives 57, the answer is 58",
        "small/beta#0: the program 'divide(1, 0)' does not run: step 0: divide divides by zero",
    ]


def test_gold_that_holds_passes(lab: Lab) -> None:
    lab.suite()
    workspace = lab.workspace()
    ran_of_suite(workspace, "small", *INGESTING)
    verdict = checked(check_gold, workspace, "small")
    assert (verdict.passed, verdict.text) == (True, "the gold of all 3 turns holds")


def test_a_response_that_cannot_be_read_leaves_no_cycle() -> None:
    def read() -> bool:
        artefact, error = parse_response(TRACK, BROKEN)
        return artefact is None and error is not None

    gc.collect()
    gc.disable()
    try:
        assert all(read() for _ in range(100))
        assert gc.collect() < 100
    finally:
        gc.enable()
