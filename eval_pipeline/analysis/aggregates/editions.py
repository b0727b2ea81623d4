"""The aggregates `gold_editions` and `accuracy_by_contract`: figures under other gold, and under other contracts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from eval_pipeline.analysis.aggregates.base import Codes, Floats, Row, Turns, texts_coded
from eval_pipeline.core.ids import json_text
from eval_pipeline.stages.attempts.rows import published_turns
from eval_pipeline.stages.judged.judging import load_judgements
from eval_pipeline.stages.scoring.gold import published_problems
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline.statistics.intervals import Estimate, estimate_mean, estimate_rate
from eval_pipeline.store.tables import (
    STATISTICS,
    SUITE_EDITIONS,
)
from eval_pipeline.table_comparison.contracts import PRESETS, Contract, Preset, ways_of
from eval_pipeline.table_comparison.relaxations import Relaxation
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


_NEEDS = ("relaxations", "insisted")


def contract_rows(turns: Turns) -> list[Row]:
    """Returns a row for each preset, the strictest first; none if no turn has a verdict."""
    correct = turns.floats("correct")
    scored = ~np.isnan(correct)
    (needed, ways), (minded, asked) = (texts_coded(turns.wide[name]) for name in _NEEDS)
    # Turns are few kinds: what they need, what their questions insist on, and the verdict.
    kinds, kind_of = np.unique(
        np.stack([needed, minded, correct])[:, scored].astype(np.int64), axis=1, return_inverse=True
    )
    told = [(ways[need] or None, asked[ask] or None, bool(right)) for need, ask, right in kinds.T]
    return [_row(preset, told, kind_of.ravel(), turns.clusters[scored]) for preset in PRESETS] if told else []


def owed_to(preset: Preset, relaxations: str | None, insisted: str | None, correct: bool) -> frozenset[str] | None:
    """Returns what a preset must overlook for an answer to be right; None if the answer is wrong under it.

    Args:
        preset: the contract.
        relaxations: the metric, see `contracts.as_label`.
        insisted: the metric; None where no table is expected.
        correct: the verdict of the turn, which counts where no table is expected.
    """
    if insisted is None:
        return frozenset() if correct else None
    overlooked = Contract(preset=preset).overlooked([Relaxation(one) for ways in ways_of(insisted) for one in ways])
    fitting = [way for way in ways_of(relaxations) if way <= overlooked]
    return frozenset.intersection(*fitting) if fitting else None


def _row(preset: Preset, kinds: Sequence[tuple[str | None, str | None, bool]], kind_of: Codes, clusters: Codes) -> Row:
    owed = [owed_to(preset, *kind) for kind in kinds]
    right = np.array([one is not None for one in owed], dtype=np.float64)[kind_of]
    counts: Counter[str] = Counter()
    for one, count in zip(owed, np.bincount(kind_of, minlength=len(kinds)).tolist(), strict=True):
        counts.update(dict.fromkeys(one or (), count))
    estimate = estimate_rate(right, clusters)
    return {
        "contract": preset,
        "overlooks": ", ".join(sorted(PRESETS[preset])),
        "turns": estimate.n,
        "correct": int(right.sum()),
        "accuracy": estimate.mean,
        "low": estimate.low,
        "high": estimate.high,
        "owed_to": json_text(dict(sorted(counts.items()))),
    }


def contract_headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the accuracy under each contract among the rows' numbers."""
    return {row["contract"]: row["accuracy"] for row in rows}
