"""Reads the draw of an evaluation with the answers that the record has."""

from eval_pipeline.analysis.draws.history import outcomes_of
from eval_pipeline.analysis.draws.looks import Draw, KnownAnswers, Look
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.store.tables import TURN_RESULTS
from eval_pipeline.workspace.asked.draws import design_of, read_design
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs


def answers_of(inputs: Inputs) -> KnownAnswers:
    """Returns the verdicts and costs of an evaluation's scored turns."""
    table = inputs.read(TURN_RESULTS, ["turn_id", "correct", "usd"])
    rows = list(zip(*(table[name].to_pylist() for name in ("turn_id", "correct", "usd")), strict=True))
    scored = {turn: float(correct) for turn, correct, _ in rows if correct is not None}
    return KnownAnswers(scored, {turn: usd for turn, _, usd in rows})


def clusters_of(inputs: Inputs) -> dict[str, str]:
    """Returns the cluster of each case of the suite, by its id."""
    return {case.id: case.cluster for case in inputs.cases}


def draw_of(inputs: Inputs, scope: Scope) -> Draw:
    """Returns the draw of a scope, up to the first batch with unanswered turns.

    Raises:
        UsageError: there is no such draw, it does not fit its answers, or not even its first batch is answered.
    """
    design, answers = design_of(inputs.record, inputs.place, scope), answers_of(inputs)
    whole = len(design.batches)
    while whole and answers.missing(design.first(whole)):
        whole -= 1
    if not whole:
        raise UsageError(
            f"{answers.missing(design.first(1))} turns of the first batch have no verdict, so there is no estimate; "
            "run again to ask them"
        )
    return Draw(design.first(whole), answers, clusters_of(inputs))


def look_at_all(inputs: Inputs, baseline: Partition) -> Look | None:
    """Returns the last look of a comparison that ended with every case asked.

    The looks before are part of its 5%, so that it decides less often than a comparison that never looked before.

    Returns:
        None unless all cases were drawn, to be compared with this evaluation, and the verdicts on both are still those.
    """
    design = read_design(inputs.record, inputs.place)
    if design is None or design.baseline is None or design.left:
        return None
    answers = answers_of(inputs)
    if design.evaluations[design.baseline] != f"{baseline.model_version} {baseline.eval_date}":
        return None
    now, column = outcomes_of(inputs.record, baseline), design.baseline
    looked_at = {
        turn: told[column]
        for candidate in design.candidates
        for turn, told in zip(candidate.turns, candidate.history, strict=True)
    }
    if answers.missing(design) or any(now.get(turn) != told for turn, told in looked_at.items()):
        return None
    try:
        return Draw(design, answers, clusters_of(inputs)).looks[-1]
    except UsageError:  # answers were scored anew
        return None
