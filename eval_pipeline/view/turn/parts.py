"""The sections of the page about a turn, in order. To add one, add its values and a line in `PARTS`."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.links import compare_arguments
from eval_pipeline.stages.scoring.metric_runner import UNSCORED
from eval_pipeline.tracks.abilities import cards_of
from eval_pipeline.tracks.capabilities import Acts
from eval_pipeline.tracks.registry import manifests, usable_track
from eval_pipeline.view.addresses import turn_address
from eval_pipeline.view.evaluation import StoredEvaluation
from eval_pipeline.view.turn import beside, prompts, review
from eval_pipeline.view.turn.seen import PageSection, TurnSeen, by_track

_MOST_OF_HISTORY = 200
_TELLING = ("label", "reason", "details", "error")
"""Columns that explain the value."""


def _cards(seen: TurnSeen) -> Mapping[str, Any] | None:
    cards, missing = by_track(seen, cards_of)
    return {"cards": cards or (), "missing": missing} if cards or missing else None


def _attempts(seen: TurnSeen) -> Mapping[str, Any]:
    checked: dict[int, list[dict[str, Any]]] = {}
    for row in seen.rows("validation", "number"):
        checked.setdefault(row["number"], []).append({**row, "errors": parse_json(row["errors"])})
    return {"checked": checked, "folded": has_steps(seen.evaluation)}


def has_steps(evaluation: StoredEvaluation) -> bool:
    """Returns whether responses are trajectories, which a card of the turn shows step by step."""
    return isinstance(usable_track(evaluation.track), Acts)


def _metrics(seen: TurnSeen) -> Mapping[str, Any]:
    ours = [track for track in manifests() if track.name == seen.evaluation.track]
    apart = {metric.name for track in ours for metric in track.metrics if metric.apart}
    rows = [row for row in seen.rows("metrics", "metric") if row["metric"] not in apart]
    unscored = [row for row in rows if (row["reason"] or "").startswith(UNSCORED)]
    found = [row for row in rows if row not in unscored]
    told = [row for row in found if any(row[name] is not None for name in _TELLING)]
    plain = [row for row in found if row not in told]
    return {"unscored": unscored, "told": told, "plain": plain, "evidence": seen.rows("evidence", "kind")}


def _judgement(seen: TurnSeen) -> Mapping[str, Any] | None:
    judgements = seen.rows("judgements", "model")
    repeats = seen.rows("judge_repeats", "repeat")
    return {"judgements": judgements, "repeats": repeats} if judgements or repeats else None


def _history(seen: TurnSeen) -> Mapping[str, Any]:
    rows = seen.look.rows(
        f"""SELECT model_version, eval_date, sample, correct, answer, error_class, tokens, usd, question, expected
        FROM turn_results WHERE suite = ? AND case_id = ? AND turn_id = ?
        ORDER BY eval_date DESC, model_version, sample LIMIT {_MOST_OF_HISTORY}""",
        [seen.evaluation.partition.suite, seen.result["case_id"], seen.turn_id],
    )
    here, with_steps = seen.evaluation.partition, has_steps(seen.evaluation)
    lines = []
    for row in rows:
        there = Partition(here.suite, row["model_version"], row["eval_date"])
        told = {
            "partition": there,
            "is_this": (there, row["sample"]) == (here, seen.sample),
            "beside": _beside(seen, row) if with_steps else None,
            "asked_otherwise": any(row[name] != seen.result[name] for name in ("question", "expected")),
        }
        lines.append(row | told)
    return {"lines": lines}


def _beside(seen: TurnSeen, row: Mapping[str, Any]) -> str | None:
    """Returns the address of this attempt's steps beside those of another one."""
    here = seen.evaluation.partition
    there = Partition(here.suite, row["model_version"], row["eval_date"])
    if (there, row["sample"]) == (here, seen.sample):
        return None
    named = {} if there == here else compare_arguments([here, there])
    other = {} if row["sample"] == seen.sample else {beside.OTHER_SAMPLE: str(row["sample"])}
    return f"{turn_address(here, seen.turn_id, seen.sample, {**named, **other})}#{beside.PART.name}"


PARTS = (
    PageSection("cards", "Question and answer, seen by the track", "parts/cards.html.j2", _cards, exported=True),
    beside.PART,
    review.PART,
    PageSection("attempts", "Attempts", "parts/attempts.html.j2", _attempts, exported=True),
    PageSection("metrics", "What the metrics say", "parts/metrics.html.j2", _metrics, exported=True),
    PageSection("judgement", "What the judge says", "parts/judgement.html.j2", _judgement, exported=True),
    prompts.DIFFERENCES,
    prompts.CONVERSATION,
    PageSection("history", "This turn, over model versions and dates", "parts/history.html.j2", _history),
)


def sections_of(seen: TurnSeen, *, exported: bool = False) -> list[tuple[PageSection, Mapping[str, Any]]]:
    """Returns the sections that a turn has, with their values; those of exported folders only, if asked for."""
    found = ((part, part.values(seen)) for part in PARTS if part.exported or not exported)
    return [(part, values) for part, values in found if values is not None]
