"""The stage `turn_metrics`: runs every metric of the track on every turn and records values and errors."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.model import Attempt, Case, Evidence, Json, Turn
from eval_pipeline.core.provenance import history_shown
from eval_pipeline.stages.attempts.rows import Made, attempted_turns
from eval_pipeline.stages.evidence import load_evidence
from eval_pipeline.stages.judged.judging import load_judgements
from eval_pipeline.stages.scoring.gold import drifted, gold_failure, gold_problems, recorded_results
from eval_pipeline.stages.scoring.metric_runner import UNSCORED, MetricRunner, joined
from eval_pipeline.stages.scoring.turn_rows import (
    AttemptedTurn,
    ScoredTurns,
    error_rows,
    metric_columns,
    metric_error_rows,
    result_columns,
    spent_on,
    wide_columns,
)
from eval_pipeline.store.tables import (
    ERRORS,
    GENERATIONS,
    METRIC_ERRORS,
    METRICS,
    MODEL_VERSIONS,
    RECOVERY_ATTEMPTS,
    TURN_RESULTS,
)
from eval_pipeline.tracks.abilities import conversations_of
from eval_pipeline.tracks.base import Metric
from eval_pipeline.tracks.capabilities import Tabulates
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.runs import now
from eval_pipeline.workspace.tabled.columns import CollectedColumns
from eval_pipeline.workspace.tabled.track_tables import turns_table

BLOCK = 1000
"""Number of turns written together, fewer if answers are long: limits memory use without being slow."""
_AT_ONCE = 250
"""Number of turns that metrics are run on at once: who watches sees them counted, and can end the run between them."""

Rows = CollectedColumns[Mapping[str, Any]]


class _Told(NamedTuple):
    """A turn with its attempts, the values that its conversation provides to metrics, and what was found about it."""

    case: Case
    turn: Turn
    sample: int
    made: Made
    attempts: list[Attempt]
    of_conversation: Mapping[str, Any]
    evidence: Sequence[Evidence]
    judgements: Sequence[Evidence]


def score(inputs: Inputs, outputs: Outputs) -> None:
    """Scores every turn of the partition into `metrics`, the per-turn tables, `errors` and `metric_errors`."""
    track = inputs.track
    metrics, wide, results = (outputs.writer(table) for table in (METRICS, turns_table(track), TURN_RESULTS))
    failed_turns, failed_metrics = outputs.rows(ERRORS), outputs.rows(METRIC_ERRORS)
    further = [outputs.rows(table) for table in track.turn_tables]
    versions = {metric.name: scorer_version(inputs, metric) for metric in track.metrics}
    for block, evidence in _scored_blocks(inputs):
        metrics.write(metric_columns(block, versions))
        wide.write(wide_columns(block))
        results.write(result_columns(block))
        failed_turns.extend(error_rows(block, inputs.place.model_version))
        failed_metrics.extend(metric_error_rows(block, now()))
        _add_further_rows(further, block, evidence)


def scorer_version(inputs: Inputs, metric: Metric) -> str:
    """Returns the version that a metric declares, or else the fingerprint of its function."""
    return str(metric.version) if metric.version else inputs.workspace.fingerprints.of(metric.function).code


def score_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the number of turns, the share of right ones (None without turns), and the number of metric errors."""
    correct, failed = inputs.read(TURN_RESULTS, ["correct"])["correct"], inputs.header(METRIC_ERRORS)
    accuracy = pc.mean(correct).as_py() if len(correct) else None
    return {"turns": len(correct), "accuracy": accuracy, "metric_errors": failed.rows if failed else 0}


def _scored_blocks(inputs: Inputs) -> Iterator[tuple[ScoredTurns, Sequence[Sequence[Evidence]]]]:
    """Yields scored turns, each block with the evidence on each of its turns."""
    track, priced = inputs.track, _is_priced(inputs)
    runner, problems, known = MetricRunner(track.metrics), gold_problems(inputs), recorded_results(inputs)
    answers = inputs.header(GENERATIONS)
    told_turns = chain.from_iterable(_told_turns(part) for part in inputs.parts())
    waiting = inputs.counted("scoring", told_turns, answers.rows if answers else 0)
    block, at_once = inputs.together(BLOCK), inputs.together(_AT_ONCE)
    while piece := list(islice(waiting, at_once)):
        turns, evidence, said, unscored = list[AttemptedTurn](), [], [], dict[int, str]()
        while piece:
            values = []
            for case, turn, _, made, attempts, told, found, judged in piece:
                rows = [row for row, _ in made]
                spent = spent_on(rows, priced=priced)
                moved = drifted(turn.id, found, known)
                if why := problems.get(turn.id) or gold_failure(found):
                    unscored[len(turns)] = f"{UNSCORED}{why}"
                turns.append(AttemptedTurn(case, turn, attempts, spent, bool(rows[0]["simulated"]), moved))
                values.append(track.values(case, turn, attempts, (*found, *judged)))
                values[-1].update(told)
                evidence.append(found)
            said.append(runner.run(values))
            piece = list(islice(waiting, at_once)) if len(turns) < block else []
        yield ScoredTurns(track, turns, joined(said).without(unscored)), evidence


def _is_priced(inputs: Inputs) -> bool:
    """Whether the price of any attempt at a scored turn is known."""
    excluded = pa.array([turn for turn in inputs.gold.actions if inputs.gold.is_excluded(turn)], pa.string())
    for table in (GENERATIONS, RECOVERY_ATTEMPTS):
        for group in inputs.rows_within(table, ["turn_id", "usd"]):
            known = group.filter(pc.is_valid(group["usd"]))
            if known.num_rows and not pc.all(pc.is_in(known["turn_id"], excluded)).as_py():
                return True
    return False


def _told_turns(part: Inputs) -> Iterator[_Told]:
    """Yields the turns of a range of cases with their attempts, and all that is known about them."""
    evidence, judgements = load_evidence(part), load_judgements(part)
    history = cache(lambda: _history(part))
    for _, of_case in groupby(attempted_turns(part), key=lambda made: made[0].id):
        asked = [(*made_turn, [attempt for _, attempt in made_turn[3]]) for made_turn in of_case]
        said = [(turn, sample, attempts) for _, turn, sample, _, attempts in asked]
        told = conversations_of(part.track, asked[0][0], said, history)
        for made_turn in asked:
            place = made_turn[1].id, made_turn[2]
            yield _Told(*made_turn, told.get(place, {}), evidence.get(place, ()), judgements.get(place, ()))


def _history(inputs: Inputs) -> str:
    """Returns whose answers the model was shown, from its recorded settings, as its file entry may no longer exist."""
    row = inputs.read(MODEL_VERSIONS, ["settings", "recorded"]).to_pylist()[0]
    return history_shown(json.loads(row["settings"]), inputs.suite, recorded=bool(row["recorded"]))


def _add_further_rows(further: Sequence[Rows], block: ScoredTurns, evidence: Sequence[Sequence[Evidence]]) -> None:
    """Adds rows of scored turns to the track's further tables, in the order of `turn_tables`."""
    track = block.track
    if not isinstance(track, Tabulates):
        return
    for item, found, correct in zip(block.turns, evidence, block.said["correct"], strict=True):
        if correct is None:
            continue
        place = {"turn_id": item.turn.id, "case_id": item.case.id, "turn_index": item.turn.index}
        place["sample"] = item.final.sample
        rows = track.table_rows(item.case, item.turn, item.attempts, found)
        for table, columns in zip(track.turn_tables, further, strict=True):
            columns.extend(place | dict(row) for row in rows[table.name])
