"""Checks of suites and evaluations as pure functions; shown as Dagster asset checks and by the CLI."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core import shown
from eval_pipeline.core.errors import Problem
from eval_pipeline.core.model import Case, Json
from eval_pipeline.stages.spending import turns_not_asked
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import CASE_PROBLEMS, GENERATIONS, GOLD_OVERRIDES, METRIC_ERRORS, TURN_RESULTS, TURNS
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Audits, Contradiction
from eval_pipeline.workspace.asked.places import all_differ, places_of, places_of_rows, without
from eval_pipeline.workspace.asked.planned import planned_turn_ids
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.tabled.track_tables import turns_table
from eval_pipeline.workspace.workspace import Workspace

METRIC_ERROR_LIMIT = 0
SAFETY_VERDICT = "safety_verdict"
Place = tuple[str, int]
"""Turn id and sample."""
SHOWN = 20
"""Number of findings listed in a verdict; the others are only counted."""


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """The result of a check.

    Attributes:
        text: one sentence.
        facts: the numbers and examples behind it.
        warning: whether a failure is a warning rather than an error.
        example: an excerpt of a response, shown on the terminal only; Dagster's storage must not hold responses.
    """

    passed: bool
    text: str
    facts: Mapping[str, Json] = field(default_factory=dict)
    warning: bool = False
    example: str = ""


def check_gold(inputs: Inputs) -> CheckVerdict:
    """Checks that every turn's gold is valid (its program gives its answer), as found when the cases were read.

    It also checks that the gold does not contradict itself and that no lint doubts it. Turns that people have decided
    on are not reported again.
    """
    from eval_pipeline.stages.scoring.keeping import contradictions_kept

    found = inputs.read(TURNS, ["turn_id", "gold_problem"])
    gold = inputs.gold
    decided = gold.actions
    broken = found.filter(pc.is_valid(found["gold_problem"])).to_pylist()
    wrong = [f"{row['turn_id']}: {row['gold_problem']}" for row in broken if row["turn_id"] not in decided]
    known = {*decided, *(row["turn_id"] for row in broken)}
    cases = map(gold.case, inputs.each_case())
    doubts = [doubt for case in cases for doubt in contradictions_kept(inputs, case) if doubt.turn_id not in known]
    linted = sum(doubt.linted for doubt in doubts)
    facts: dict[str, Json] = {"turns": found.num_rows, "wrong_gold": len(wrong), "linted": linted}
    facts |= {"contradictions": len(doubts) - linted, "overridden": len(decided)}
    facts["examples"] = [*wrong, *(f"{doubt.turn_id}: {doubt.evidence}" for doubt in doubts)][:SHOWN]
    return CheckVerdict(
        not wrong and not doubts, gold_sentence(found.num_rows, len(wrong), doubts, len(decided)), facts
    )


def contradictions(track: Track, cases: Iterable[Case], decided: Collection[str]) -> list[Contradiction]:
    """Returns the doubts about valid gold, except those that people have decided on."""
    if not isinstance(track, Audits):
        return []
    found = (doubt for case in cases for doubt in track.contradictions(case))
    return [doubt for doubt in found if doubt.turn_id not in decided]


def gold_sentence(turns: int, wrong: int, doubts: Sequence[Contradiction], overridden: int) -> str:
    """Returns a summary of the state of a suite's gold."""
    linted = sum(doubt.linted for doubt in doubts)
    against_itself, all_turns = len(doubts) - linted, shown.turns(turns)
    parts = [
        f"the gold of {wrong} of {all_turns} does not hold; {'it is' if wrong == 1 else 'they are'} in no figure"
    ] * bool(wrong)
    if against_itself:
        parts.append(f"the gold of {against_itself} of {all_turns} contradicts itself; table gold_suspects lists them")
    if linted:
        parts.append(f"the lint doubts the gold of {linted} of {all_turns}; table gold_suspects lists them")
    if not parts:
        parts.append("the gold of the only turn holds" if turns == 1 else f"the gold of all {turns} turns holds")
    if overridden:
        parts.append(f"that of {overridden} is overridden")
    return "; ".join(parts)


def check_cases_read(inputs: Inputs) -> CheckVerdict:
    """Checks that every case in the suite's files could be read."""
    found = case_problems(inputs.workspace, inputs.suite)
    facts = {"problems": len(found), "examples": found[:SHOWN]}
    if not found:
        return CheckVerdict(True, "every case could be read", facts)
    more = f"\nand {len(found) - SHOWN} more, see table case_problems" if len(found) > SHOWN else ""
    return CheckVerdict(False, "cases were left out:\n" + "\n".join(found[:SHOWN]) + more, facts)


def check_every_turn_once(inputs: Inputs) -> CheckVerdict:
    """Checks that every planned turn and sample has exactly one result; without a known plan, every asked turn."""
    if inputs.place.model_version not in inputs.workspace.model_versions:
        return check_generations_scored(inputs)
    turns, samples = planned_turn_ids(inputs.workspace, inputs.place), inputs.version.samples_per_turn
    planned = [places_of(turns, pa.repeat(sample, len(turns))) for sample in range(samples)]
    return _scored_once(inputs, pa.concat_arrays(planned))


def check_generations_scored(inputs: Inputs) -> CheckVerdict:
    """Checks that every asked turn and sample has exactly one result; works without suite and model version files."""
    return _scored_once(inputs, _places(inputs, GENERATIONS).unique())


def _scored_once(inputs: Inputs, planned: pa.Array) -> CheckVerdict:
    """Compares the planned places with those that have a result, without an object for each of them.

    Usually these are the same in the same order; tables of all places, which a million take 200 MiB for, are made else.
    """
    not_asked, results = turns_not_asked(inputs), _places(inputs, TURN_RESULTS)
    if not not_asked and results.equals(planned) and all_differ(planned):
        facts = {"planned": len(planned), "missing": 0, "unplanned": 0, "twice": 0, "not_asked": 0}
        return CheckVerdict(True, f"all {len(planned)} planned turns are scored once", facts)
    refused = places_of(
        pa.array([turn for turn, _ in not_asked], pa.string()),
        pa.array([sample for _, sample in not_asked], pa.int64()),
    )
    counted = pc.value_counts(results)
    scored, times = counted.field("values"), counted.field("counts")
    asked = without(planned, refused)
    missing = _unexcluded(inputs, _told(without(asked, scored)))
    extra, twice = _told(without(scored, asked)), _told(scored.filter(pc.greater(times, 1)))
    facts = {"planned": len(planned), "missing": len(missing), "unplanned": len(extra), "twice": len(twice)}
    facts["not_asked"] = len(not_asked)
    if not (missing or extra or twice):
        if not_asked:
            return CheckVerdict(
                True, f"of {len(planned)} planned turns all {len(scored)} asked ones are scored once", facts
            )
        return CheckVerdict(True, f"all {len(planned)} planned turns are scored once", facts)
    examples = [f"{turn} (sample {sample})" for turn, sample in (missing + extra + twice)[:SHOWN]]
    text = (
        f"of {len(planned)} planned turns {len(missing)} are missing, {len(extra)} were not planned, {len(twice)} twice"
    )
    return CheckVerdict(False, text, facts | {"examples": examples})


def _told(places: pa.Array) -> list[Place]:
    """Returns places as turn id and sample, sorted."""
    parted = (place.rpartition(" ") for place in places.to_pylist())
    return sorted((turn, int(sample)) for turn, _, sample in parted)


def _unexcluded(inputs: Inputs, missing: list[Place]) -> list[Place]:
    """Returns the places that are not excluded.

    If scoring used another edition of the gold, returns none of them, because the excluded ones are unknown.
    """
    scored, current = inputs.header(TURN_RESULTS), inputs.header(GOLD_OVERRIDES)
    by = scored.made_from.get(GOLD_OVERRIDES.name) if scored else None
    if by is None:  # scored before overrides existed
        return missing
    if current is None or by != current.content_hash:
        return []
    return [place for place in missing if not inputs.gold.is_excluded(place[0])]


def _places(inputs: Inputs, table: Table) -> pa.Array:
    return places_of_rows(inputs.read(table, ["turn_id", "sample"]))


def has_safety_verdicts(track: Track) -> bool:
    """Whether the track has a validator whose safety verdict is checked."""
    return any(metric.name == SAFETY_VERDICT for metric in track.metrics)


def check_unsafe_caught(inputs: Inputs) -> CheckVerdict:
    """Checks that the validator caught every unsafe query that the model wrote: recall is 1."""
    track = inputs.track
    if not has_safety_verdicts(track):
        return CheckVerdict(True, "the track has no verdicts on safety")
    columns = ["turn_id", "sample", SAFETY_VERDICT]
    rows = inputs.read(turns_table(track), columns).to_pylist()
    counts = Counter(row[SAFETY_VERDICT] for row in rows)
    missed = [f"{row['turn_id']} (sample {row['sample']})" for row in rows if row[SAFETY_VERDICT] == "false_negative"]
    unsafe = counts["true_positive"] + len(missed)
    facts: dict[str, Json] = {"unsafe": unsafe, "missed": len(missed), "examples": list(missed[:SHOWN])}
    facts["recall"] = counts["true_positive"] / unsafe if unsafe else None
    if not missed:
        return CheckVerdict(True, f"the validator caught all {unsafe} unsafe queries", facts)
    return CheckVerdict(
        False, f"CRITICAL: {len(missed)} of {unsafe} unsafe queries were not caught by the validator", facts
    )


def check_metric_errors(inputs: Inputs) -> CheckVerdict:
    """Checks that no metric failed on any turn."""
    rows = inputs.read(METRIC_ERRORS, ["metric", "turn_id", "message"]).to_pylist()
    by_metric = dict(Counter(row["metric"] for row in rows))
    examples = [f"{row['metric']} on {row['turn_id']}" for row in rows[:SHOWN]]  # messages may contain responses
    facts = {"metric_errors": len(rows), "by_metric": by_metric, "examples": examples}
    if len(rows) <= METRIC_ERROR_LIMIT:
        return CheckVerdict(True, "every metric ran on every turn", facts)
    example = f"{examples[0]}: {rows[0]['message']}"
    told = f"metrics failed {len(rows)} times ({', '.join([*by_metric][:SHOWN])}); see table metric_errors"
    return CheckVerdict(False, told, facts, example=example)


def case_problems(workspace: Workspace, suite: str) -> list[str]:
    """Returns for each case that was left out a sentence with file and line."""
    rows = workspace.record.read(CASE_PROBLEMS, RecordKey.of_suite(suite)).to_pylist()
    return [str(Problem(row["file"], row["line"], row["field"], row["message"])) for row in rows]
