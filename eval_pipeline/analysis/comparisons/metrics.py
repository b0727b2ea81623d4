"""The table `metric_comparisons`: paired tests of graded metrics, for tracks that name some (docs/statistics.md)."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation
from eval_pipeline.analysis.comparisons.pairs import Row, why_refused
from eval_pipeline.analysis.comparisons.scored import Further, TurnReader, paired, with_other_gold
from eval_pipeline.analysis.comparisons.two_figures import A_BETTER, B_BETTER, NOT_SIGNIFICANT, SIGNIFICANT
from eval_pipeline.statistics.pairs.paired import CorrectedTest, holm
from eval_pipeline.statistics.pairs.paired_means import PairedMeans, paired_means
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import ComparesMetrics
from eval_pipeline.tracks.scored.turns_table import turns_table


@dataclass(frozen=True, slots=True)
class _Compared:
    """A metric of two evaluations on the turns that both answered."""

    first: CompleteEvaluation
    second: CompleteEvaluation
    metric: str
    found: PairedMeans
    refused: str | None


def metric_rows(
    pairs: Sequence[tuple[CompleteEvaluation, CompleteEvaluation]], reader: TurnReader, track: Track
) -> list[Row]:
    """Returns a row per pair and metric that the track names, corrected for all of them together."""
    names = track.compared_metrics if isinstance(track, ComparesMetrics) else ()
    if not names:
        return []
    further = Further(turns_table(track), names)
    evaluations = {id(found): found for pair in pairs for found in pair}
    scored = {key: reader.read(found, further) for key, found in evaluations.items()}
    compared = []
    for first, second in pairs:
        both = scored[id(first)], scored[id(second)]
        joint = paired(*both)
        joint = joint.where((joint.first["answered"] * joint.second["answered"]) == 1.0)
        refused = why_refused(first, second, both[0].places.size + both[1].places.size, with_other_gold(*both))
        for name in names:
            found = paired_means(joint.first[name], joint.second[name], joint.clusters)
            compared.append(_Compared(first, second, name, found, refused))
    corrected = holm([None if one.refused else one.found.p_decisive for one in compared])
    return [_row(one, correction) for one, correction in zip(compared, corrected, strict=True)]


def _row(one: _Compared, corrected: CorrectedTest | None) -> Row:
    a, b, found = one.first.partition, one.second.partition, one.found
    tested = None if corrected is None else found
    return {
        "model_a": a.model_version,
        "model_b": b.model_version,
        "eval_date_a": a.eval_date,
        "eval_date_b": b.eval_date,
        "metric": one.metric,
        "n": found.n,
        "clusters": found.clusters,
        "mean_a": found.first,
        "mean_b": found.second,
        "difference": None if one.refused else found.difference,
        **{name: None if tested is None else getattr(tested, name) for name in ("se", "low", "high")},
        **{name: None if tested is None else getattr(tested, name) for name in ("p_value", "p_flips")},
        "p_corrected": None if corrected is None else corrected.p_value,
        "verdict": None if corrected is None else _verdict(found, corrected),
        "reason": one.refused or found.reason,
    }


def _verdict(found: PairedMeans, corrected: CorrectedTest) -> str:
    if corrected.p_value >= SIGNIFICANT or not found.difference:
        return NOT_SIGNIFICANT
    return B_BETTER if found.difference > 0 else A_BETTER
