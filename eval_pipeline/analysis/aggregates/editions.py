"""The aggregate `gold_editions`: figures under each edition of the gold, with and without overrides (docs/gold.md)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from eval_pipeline.analysis.aggregates.base import Floats, Row, Turns
from eval_pipeline.stages.attempts.rows import published_turns
from eval_pipeline.stages.judged.judging import load_judgements
from eval_pipeline.stages.scoring.gold import published_problems
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline.statistics.intervals import Estimate, estimate_mean, estimate_rate
from eval_pipeline.store.tables import (
    STATISTICS,
    SUITE_EDITIONS,
)
from eval_pipeline.tracks.abilities import gather_all

SCORED, PUBLISHED = "scored", "published"
CORRECT = "correct"
_UNIT = (0.0, 1.0)


def edition_rows(turns: Turns) -> list[Row]:
    """Returns one row per edition and metric; a suite without overrides has only the published edition.

    For drawn turns, it has only the figures of `statistics`.
    """
    inputs = turns.inputs
    suite = turns.read(SUITE_EDITIONS).to_pylist()[0]
    gold = inputs.gold
    asked = {turn.id for _, turn, _, _ in published_turns(inputs)} if gold.actions else set[str]()
    counts = {
        "overridden_turns": len(asked & gold.actions.keys()),
        "excluded_turns": sum(gold.is_excluded(turn) for turn in asked),
    }
    shared = {name: suite[name] for name in ("data_edition", "data_hash")} | counts
    of_scored = {"edition": SCORED, "name": suite["gold_edition"], "gold_hash": suite["gold_hash"]}
    rows = [shared | of_scored | row for row in _scored(turns)]
    if counts["overridden_turns"] and turns.draw is None:
        of_published = {"name": suite["published_edition"], "gold_hash": suite["published_hash"]}
        rows += [shared | {"edition": PUBLISHED} | of_published | row for row in _published(turns)]
    return rows


def _rates(turns: Turns) -> Mapping[str, bool]:
    """Returns the metrics in this table → whether each is boolean."""
    kinds = {metric.name: metric.kind for metric in turns.track.metrics if metric.kind in ("boolean", "score")}
    return {CORRECT: True, **{name: kind == "boolean" for name, kind in kinds.items()}}


def _scored(turns: Turns) -> Iterator[Row]:
    """Yields the figures of `statistics`."""
    overall = {row["metric"]: row for row in turns.read(STATISTICS).to_pylist() if row["split"] == "all"}
    for metric in _rates(turns):
        if (row := overall.get(metric)) is not None:
            yield {"metric": metric, **{name: row[name] for name in ("n", "mean", "se", "low", "high")}}


def _published(turns: Turns) -> Iterator[Row]:
    """Yields the figures with overridden turns scored again by the published gold."""
    overridden = turns.inputs.gold.actions
    ids = turns.results["turn_id"].to_pylist()
    kept = np.array([turn not in overridden for turn in ids], dtype=bool)
    clusters, found = _under_published_gold(turns)
    known = dict.fromkeys(turns.results["cluster"].to_pylist())
    codes = {name: code for code, name in enumerate(dict.fromkeys([*known, *clusters]))}
    own = np.array([codes[name] for name in turns.results["cluster"].to_pylist()], dtype=np.int64)
    groups = np.concatenate([own[kept], np.array([codes[name] for name in clusters], dtype=np.int64)])
    for metric, is_rate in _rates(turns).items():
        values = np.concatenate([turns.floats(metric)[kept], found[metric]])
        estimate = estimate_rate(values, groups) if is_rate else estimate_mean(values, groups, _UNIT)
        yield {"metric": metric, **_figures(estimate)}


def _figures(estimate: Estimate) -> Row:
    return {name: getattr(estimate, name) for name in ("n", "mean", "se", "low", "high")}


def _under_published_gold(turns: Turns) -> tuple[list[str], Mapping[str, Floats]]:
    """Returns the overridden turns' clusters, and metric → values of these turns by the published gold.

    Recorded judgements are used if they are about the same answer; no judge is asked.
    """
    inputs, track = turns.inputs, turns.track
    overridden = inputs.gold.actions
    made = [found for found in published_turns(inputs) if found[1].id in overridden]
    judged = load_judgements(inputs)
    evidence = gather_all(track, [(case, turn, attempts[-1][1]) for case, turn, _, attempts in made])
    values = [
        track.values(case, turn, [attempt for _, attempt in attempts], (*found, *judged.get((turn.id, sample), ())))
        for (case, turn, sample, attempts), found in zip(made, evidence, strict=True)
    ]
    problems = published_problems(inputs)
    unscored = {place: problems[turn.id] for place, (_, turn, _, _) in enumerate(made) if turn.id in problems}
    plain = MetricRunner(track.metrics).run(values).without(unscored).plain
    found = {name: _numbers(plain[name]) for name in _rates(turns) if name != CORRECT}
    found[CORRECT] = _numbers(plain[track.primary_metric])
    return [case.cluster for case, *_ in made], found


def _numbers(values: Sequence[Any]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the accuracy under each edition with its interval, and the number of turns in which they differ."""
    told: dict[str, Any] = {
        f"{row['edition']}_{name}": row[column]
        for row in rows
        if row["metric"] == CORRECT
        for name, column in (("accuracy", "mean"), ("low", "low"), ("high", "high"))
    }
    return told | {name: rows[0][name] for name in ("name", "overridden_turns", "excluded_turns")} if rows else told
