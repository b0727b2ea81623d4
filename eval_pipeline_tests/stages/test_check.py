"""What the checks of a suite say, and what a response that cannot be read leaves behind."""

import gc

from eval_pipeline.stages.attempts.ask import parse_response
from eval_pipeline.stages.checks.verdicts import check_gold
from eval_pipeline.tracks.finqa.track import TRACK
from eval_pipeline_tests.chains import INGESTING, checked, ran_of_suite
from eval_pipeline_tests.support import BROKEN, TWO_CASES, Lab, case


def test_turns_whose_gold_does_not_hold_are_told_with_the_reason(lab: Lab) -> None:
    wrong = [case("alpha", ("50", 50.0), ("add(50, 7)", 58.0)), case("beta", ("divide(1, 0)", 1.0))]
    verdicts = []
    for cases in (wrong, TWO_CASES):
        lab.suite("small", cases)
        workspace = lab.workspace()
        ran_of_suite(workspace, "small", *INGESTING)
        verdicts.append(checked(check_gold, workspace, "small"))
    told, held = verdicts
    assert not told.passed
    assert (told.facts["turns"], told.facts["wrong_gold"]) == (3, 2)
    alpha, beta = told.facts["examples"]
    assert alpha.startswith("small/alpha#1: ") and "'add(50, 7)' gives 57" in alpha and "58" in alpha
    assert beta.startswith("small/beta#0: ") and "divides by zero" in beta
    assert held.passed


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
