"""What a run does for evaluations that are up to date: store and reports are to hold what the record does."""

from datetime import date
from uuid import uuid4

from eval_pipeline.analysis.comparisons.verdicts import check_no_loss
from eval_pipeline.chain.evaluation import chain_of, comparing, evaluating, ingesting
from eval_pipeline.chain.freshness import is_up_to_date
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.chain.stage import Chain
from eval_pipeline.core.errors import EvalError
from eval_pipeline.stages.checks.verdicts import check_cases_read, check_metric_errors
from eval_pipeline.stages.generate import note_generating, prepare_generating
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import RunContext, ending_failed

REPORTS = ("report", "comparison_report")


def evaluation_is_current(inputs: Inputs) -> bool:
    """Whether the record holds everything of an evaluation as it would be made now."""
    try:
        chain = chain_of(inputs.track)
    except EvalError:  # the run says what is wrong with the suite
        return False
    return is_up_to_date((*ingesting(chain), *evaluating(chain)), inputs)


def keep_evaluation(inputs: Inputs, *, with_report: bool) -> list[str]:
    """Notes a run that had nothing to do, and makes sure that store and report hold what the record does.

    Returns:
        A sentence for each check that does not pass.
    """
    own = inputs.anew(run=RunContext(str(uuid4()), inputs.run.epoch))
    with ending_failed(own.workspace, own.place, own.run.run_id):
        note_generating(prepare_generating(own))
        deliver(evaluating(chain_of(own.track)), own, with_report=with_report)
    verdicts = (check_cases_read(own), check_metric_errors(own))
    return [f"{own.suite}, {own.place.model_version}: {found.text}" for found in verdicts if not found.passed]


def keep_comparisons(inputs: Inputs, day: date, *, with_report: bool, told: bool) -> list[str]:
    """Makes sure that the comparisons of a suite are those of its evaluations; a run that ended well has made them.

    Args:
        inputs: of the suite.
        day: evaluation date that was asked for.
        with_report: make the report too.
        told: whether a run has told how the checks on the comparisons came out that are on record.

    Returns:
        A sentence for what fails, and for a check that does not pass: as often as somebody asks for its date.
    """
    try:
        current = compare(inputs)
        deliver(comparing(chain_of(None)), inputs, with_report=with_report)
    except EvalError as error:
        return [f"{inputs.suite}: {error}"]
    verdict = check_no_loss(inputs, day)
    return [] if verdict.passed or (current and told) else [f"{inputs.suite}: {verdict.text}"]


def compare(inputs: Inputs) -> bool:
    """Makes the comparisons of a suite where they are not current; whether they were."""
    chain = [stage for stage in comparing(chain_of(None)) if stage.writes]
    current = is_up_to_date(chain, inputs)
    for stage in () if current else chain:
        run_stage(stage, inputs)
    return current


def deliver(chain: Chain, inputs: Inputs, *, with_report: bool) -> None:
    """Has store and reports hold what the record does."""
    for stage in chain:
        if stage.deliver and (with_report or stage.name not in REPORTS):
            run_stage(stage, inputs)
