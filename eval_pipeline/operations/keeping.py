"""What a run does for evaluations that are up to date: store and reports are to hold what the record does."""

from collections.abc import Sequence
from uuid import uuid4

from eval_pipeline.analysis.comparisons.verdicts import Asked, check_no_drift, check_no_loss, check_served
from eval_pipeline.chain.evaluation import chain_of, comparing, evaluating, ingesting
from eval_pipeline.chain.freshness import is_up_to_date
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.chain.stage import Chain
from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.errors import EvalError, StoreError
from eval_pipeline.core.model import Partition
from eval_pipeline.stages.checks.judges import check_judge_family
from eval_pipeline.stages.checks.plausible import check_plausible
from eval_pipeline.stages.checks.readable import check_readable
from eval_pipeline.stages.checks.verdicts import check_cases_read, check_metric_errors
from eval_pipeline.stages.generate import note_generating, prepare_generating
from eval_pipeline.stages.publishing import close_run, publish_together
from eval_pipeline.store.keys import RecordKey
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


def keep_evaluations(found: Sequence[Inputs], *, with_report: bool) -> dict[Partition, list[str] | StoreError]:
    """Notes runs that had nothing to do, and makes sure that store and reports hold what the record does.

    Returns:
        For each evaluation a sentence for each check that does not pass, or what kept it from being published.
    """
    runs, told = [], dict[Partition, list[str] | StoreError]()
    for inputs in found:
        own = inputs.anew(run=RunContext(str(uuid4()), inputs.run.epoch))
        told[own.place] = []
        try:
            with ending_failed(own.workspace, own.place, own.run.run_id):
                note_generating(prepare_generating(own))
                runs.append((own, close_run(own)))
        except StoreError as error:
            told[own.place] = error
    told |= _published(runs)
    for own, _ in runs:
        if isinstance(told[own.place], StoreError):
            continue
        chain = [stage for stage in evaluating(chain_of(own.track)) if stage.name in REPORTS]
        try:
            deliver(chain, own, with_report=with_report)
            verdicts = (check_cases_read(own), check_metric_errors(own), check_readable(own))
            told[own.place] = [
                f"{own.suite}, {own.place.model_version}: {verdict.text}"
                for verdict in verdicts
                if not (verdict.passed or verdict.warning)
            ]
        except StoreError as error:
            told[own.place] = error
    return told


def remarks(inputs: Inputs) -> list[str]:
    """What is odd about the answers of an evaluation and no error, a sentence each."""
    found = (check_readable(inputs), check_plausible(inputs), check_judge_family(inputs))
    place = f"{inputs.suite}, {inputs.place.model_version}"
    odd = [verdict for verdict in found if verdict.warning and not verdict.passed]
    return [f"{place}: {verdict.text}{f' (e.g. {verdict.example})' * bool(verdict.example)}" for verdict in odd]


def _published(runs: Sequence[tuple[Inputs, list[RecordKey]]]) -> dict[Partition, StoreError]:
    """Publishes all together; where one is damaged, each by itself, so that it stops no other."""
    if not runs:
        return {}
    shut = gate(runs[0][0].workspace)
    try:
        publish_together([own for own, _ in runs], [key for _, keys in runs for key in keys], shut)
    except StoreError as error:
        if len(runs) == 1:
            return {runs[0][0].place: error}
        return {place: why for one in runs for place, why in _published([one]).items()}
    return {}


def keep_comparisons(inputs: Inputs, asked: Asked, *, with_report: bool) -> tuple[list[str], list[str]]:
    """Makes sure that the comparisons of a suite are those of its evaluations; a run that ended well has made them.

    Args:
        inputs: of the suite.
        asked: the model versions that were run, and for which date.
        with_report: make the report too.

    Returns:
        A sentence for what fails and for a loss of one of these model versions, and one for each that drifts or
        was answered by another model.
    """
    try:
        compare(inputs)
        deliver(comparing(chain_of(None)), inputs, with_report=with_report)
    except EvalError as error:
        return [f"{inputs.suite}: {error}"], []
    loss = check_no_loss(inputs, asked)
    warnings = (check_no_drift(inputs, asked), check_served(inputs, asked))
    told = [f"{inputs.suite}: {found.text}" for found in warnings if not found.passed]
    return [f"{inputs.suite}: {loss.text}"] * (not loss.passed), told


def compare(inputs: Inputs) -> bool:
    """Makes the comparisons of a suite where they are not current; whether they were."""
    chain = [stage for stage in comparing(chain_of(None)) if stage.writes]
    current = is_up_to_date(chain, inputs)
    for stage in () if current else chain:
        run_stage(stage, inputs)
    return current


def publish_comparisons(inputs: Inputs) -> None:
    """Has the store hold the comparisons of a suite as they are on record."""
    deliver(comparing(chain_of(None)), inputs, with_report=False)


def deliver(chain: Chain, inputs: Inputs, *, with_report: bool) -> None:
    """Has store and reports hold what the record does."""
    for stage in chain:
        if stage.deliver and (with_report or stage.name not in REPORTS):
            run_stage(stage, inputs)
