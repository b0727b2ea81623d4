"""Brings store and reports in line with the record for evaluations that are up to date."""

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
from eval_pipeline.operations.runs.publication import Publication
from eval_pipeline.operations.runs.steps import noted_step
from eval_pipeline.stages.attempts.asked import note_generating, prepare_generating
from eval_pipeline.stages.checks.judges import check_judge_family
from eval_pipeline.stages.checks.plausible import check_plausible
from eval_pipeline.stages.checks.readable import check_readable
from eval_pipeline.stages.checks.verdicts import check_cases_read, check_metric_errors
from eval_pipeline.stages.publishing import publish_suites
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command
from eval_pipeline.workspace.runs import RunContext, ending_failed, is_closed

REPORTS = ("report", "comparison_report")


def evaluation_is_current(inputs: Inputs) -> bool:
    """Whether the record holds everything about an evaluation in its current form."""
    try:
        chain = chain_of(inputs.track)
    except EvalError:  # the run reports the problem with the suite
        return False
    return is_up_to_date((*ingesting(chain), *evaluating(chain)), inputs)


def close_evaluations(found: Sequence[Inputs], publication: Publication) -> list[Inputs]:
    """Closes evaluations that are current, so that the store is brought in line with them; returns their inputs.

    In `runs` this is a run only if the last one there, which has made everything, did not come to its end.
    """
    runs = []
    for inputs in found:
        own = inputs.anew(run=RunContext(str(uuid4()), inputs.run.epoch))
        runs.append(own)
        if is_closed(own.workspace, own.place):
            publication.close(own, made=False)
            continue
        try:
            with ending_failed(own.workspace, own.place, own.run.run_id):
                note_generating(prepare_generating(own))
        except StoreError as error:
            publication.outcome[own.place] = error
        else:
            publication.close(own)
    return runs


def keep_evaluations(
    runs: Sequence[Inputs], publication: Publication, *, with_report: bool
) -> dict[Partition, list[str] | StoreError]:
    """Brings the reports of published evaluations in line with the record.

    Returns:
        For each evaluation, a sentence for each failed check, or the error that prevented publishing.
    """
    told = dict[Partition, list[str] | StoreError]()
    for own in runs:
        outcome = publication.outcome[own.place]
        try:
            if isinstance(outcome, StoreError):
                raise outcome
            chain = [stage for stage in evaluating(chain_of(own.track)) if stage.name in REPORTS]
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
    """Returns a sentence for each oddity in the answers of an evaluation, of an error the example alone."""
    found = (check_readable(inputs), check_plausible(inputs), check_judge_family(inputs))
    place = f"{inputs.suite}, {inputs.place.model_version}"
    told = list[str]()
    for verdict in (one for one in found if not one.passed):
        example = f"e.g. {verdict.example}" * bool(verdict.example)
        if verdict.warning:
            told.append(f"{place}: {verdict.text}{f' ({example})' * bool(example)}")
        elif example:
            told.append(f"{place}: {example}")
    return told


def make_comparisons(suites: Sequence[Inputs], command: Command) -> dict[str, EvalError]:
    """Makes the comparisons of suites that are not current; returns errors by suite."""
    failed: dict[str, EvalError] = {}
    for inputs in suites:
        try:
            compare(inputs, command)
        except EvalError as error:
            failed[inputs.suite] = error
    return failed


def keep_comparisons(
    suites: Sequence[tuple[Inputs, Asked]], failed: dict[str, EvalError], command: Command, *, with_report: bool
) -> tuple[list[str], list[str]]:
    """Publishes the comparisons of suites together, and writes their reports.

    Args:
        suites: each suite, with model version → date for those that were run.
        failed: what `make_comparisons` returned.
        command: the note of the command, in which they are compared from now on.
        with_report: make the report, too.

    Returns:
        Errors (a sentence for each failure and for each loss of one of these model versions), and warnings (a sentence
        for each one that drifts or was answered by another model).
    """
    failed = failed | _published_comparisons([inputs for inputs, _ in suites if inputs.suite not in failed])
    errors, warnings = [], []
    for inputs, asked in suites:
        try:
            if inputs.suite in failed:
                raise failed[inputs.suite]
            delivering = [stage for stage in comparing(chain_of(None)) if stage.deliver]
            for stage in delivering if command.noted.runs else [one for one in delivering if one.name in REPORTS]:
                if with_report or stage.name not in REPORTS:
                    noted_step(stage, inputs, command)
        except EvalError as error:
            errors.append(f"{inputs.suite}: {error}")
            continue
        finally:
            if inputs.suite in command.noted.uncompared:
                command.done({"compared": inputs.suite})
        loss = check_no_loss(inputs, asked)
        errors += [f"{inputs.suite}: {loss.text}"] * (not loss.passed)
        found = (check_no_drift(inputs, asked), check_served(inputs, asked))
        warnings += [f"{inputs.suite}: {verdict.text}" for verdict in found if not verdict.passed]
    return errors, warnings


def _published_comparisons(suites: Sequence[Inputs]) -> dict[str, EvalError]:
    """Publishes the comparisons of all suites together, or one by one if that fails; returns errors by suite."""
    if not suites:
        return {}
    try:
        publish_suites(suites, gate(suites[0].workspace))
    except EvalError as error:
        if len(suites) == 1:
            return {suites[0].suite: error}
        return {suite: why for inputs in suites for suite, why in _published_comparisons([inputs]).items()}
    return {}


def compare(inputs: Inputs, command: Command | None = None) -> bool:
    """Makes the comparisons of a suite if they are not current; returns whether they were.

    With a command that runs something, all stages are noted, so that Dagster is told what was compared.
    """
    chain = [stage for stage in comparing(chain_of(None)) if stage.writes]
    current = is_up_to_date(chain, inputs)
    for stage in chain:
        if command is not None and command.noted.runs:
            noted_step(stage, inputs, command)
        elif not current:
            run_stage(stage, inputs)
    return current


def publish_comparisons(inputs: Inputs) -> None:
    """Publishes the recorded comparisons of a suite."""
    deliver(comparing(chain_of(None)), inputs, with_report=False)


def deliver(chain: Chain, inputs: Inputs, *, with_report: bool) -> None:
    """Runs the delivering stages, which bring store and reports in line with the record."""
    for stage in chain:
        if stage.deliver and (with_report or stage.name not in REPORTS):
            run_stage(stage, inputs)
