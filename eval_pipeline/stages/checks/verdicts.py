"""What has to hold of a suite and of an evaluation: pure verdicts that asset checks, the CLI and tests show."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

import pyarrow.compute as pc

from eval_pipeline.core.model import Attempt, Case, Json, Response, Turn
from eval_pipeline.stages.attempts.ask import parse_response, run_artefact
from eval_pipeline.stages.attempts.spending import budget_of, recoveries_refused, turns_not_asked
from eval_pipeline.stages.ingest import case_problems
from eval_pipeline.stages.scoring.metric_runner import MetricRunner, metrics_behind_primary
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import GENERATIONS, GOLD_OVERRIDES, METRIC_ERRORS, TURN_RESULTS, TURNS
from eval_pipeline.tracks.base import Executor, Track
from eval_pipeline.tracks.capabilities import Audits, executor_of, gather_all
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.planned import planned_cases
from eval_pipeline.workspace.progress import SILENT, counted
from eval_pipeline.workspace.runs import RunContext, run_rows
from eval_pipeline.workspace.track_tables import turns_table
from eval_pipeline.workspace.workspace import Progress

METRIC_ERROR_LIMIT = 0
SAFETY_VERDICT = "safety_verdict"
ENDS_CHECKED = 1000
"""Turns on which the asset check tries gold and no answer; `eval-pipeline validate` tries all."""
Place = tuple[str, int]
"""Turn and sample."""
SHOWN = 20
"""Findings listed in a verdict; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something holds.

    Attributes:
        text: one sentence.
        facts: numbers and examples behind it.
        warning: that it does not hold is a remark, not an error.
        example: of a response, for the terminal only: what Dagster keeps of its runs holds no responses.
    """

    passed: bool
    text: str
    facts: Mapping[str, Json] = field(default_factory=dict)
    warning: bool = False
    example: str = ""


def check_gold(inputs: Inputs) -> Verdict:
    """Every turn's own gold holds (its program runs to its answer), as it was found when the cases were read.

    And it does not contradict itself; what people have decided of a turn is not told again.
    """
    found = inputs.read(TURNS, ["turn_id", "gold_problem"])
    gold = inputs.gold
    decided = gold.actions
    broken = found.filter(pc.is_valid(found["gold_problem"])).to_pylist()
    wrong = [f"{row['turn_id']}: {row['gold_problem']}" for row in broken if row["turn_id"] not in decided]
    known = {*decided, *(row["turn_id"] for row in broken)}
    doubts = contradictions(inputs.track, [gold.case(case) for case in inputs.cases], known)
    facts: dict[str, Json] = {"turns": found.num_rows, "wrong_gold": len(wrong), "contradictions": len(doubts)}
    facts |= {"overridden": len(decided), "examples": [*wrong, *doubts][:SHOWN]}
    return Verdict(
        not wrong and not doubts, gold_sentence(found.num_rows, len(wrong), len(doubts), len(decided)), facts
    )


def contradictions(track: Track, cases: Sequence[Case], decided: Collection[str]) -> list[str]:
    """A sentence for each turn whose gold contradicts itself, but for those that people have decided on."""
    if not isinstance(track, Audits):
        return []
    found = (doubt for case in cases for doubt in track.contradictions(case))
    return [f"{doubt.turn_id}: {doubt.evidence}" for doubt in found if doubt.turn_id not in decided]


def gold_sentence(turns: int, wrong: int, doubts: int, overridden: int) -> str:
    """What there is to say of the gold of a suite."""
    parts = [f"the gold of {wrong} of {turns} turns does not hold; they are left out of the oracle's 1.0"] * bool(wrong)
    if doubts:
        parts.append(f"the gold of {doubts} of {turns} turns contradicts itself; table gold_suspects lists them")
    if not parts:
        parts.append(f"the gold of all {turns} turns holds")
    if overridden:
        parts.append(f"that of {overridden} is overridden")
    return "; ".join(parts)


def check_ends(
    track: Track,
    cases: Sequence[Case],
    most: int | None = None,
    progress: Progress = SILENT,
    label: str = "",
    excluded: Collection[str] = (),
) -> Verdict:
    """The gold answers score 1.0 and no answer scores 0.0, through parsing, execution and metrics.

    Turns whose own gold does not hold, and those `excluded`, are left out. Of a suite with more turns than `most`,
    whole cases are drawn at random, the same ones each time. `progress` is told of cases, under the label.
    """
    turns = sum(len(case.turns) for case in cases)
    drawn = list(cases)
    if most is not None and turns > most:
        Random(0).shuffle(drawn)
        ends = accumulate(len(case.turns) for case in drawn)
        drawn = [case for case, end in zip(drawn, ends, strict=True) if end <= most]
    return asyncio.run(_check_ends(track, counted(progress, label, drawn, len(drawn)), turns, set(excluded)))


async def _check_ends(track: Track, cases: Iterable[Case], whole: int, left_out: set[str]) -> Verdict:
    runner = MetricRunner(metrics_behind_primary(track))
    wrong: list[str] = []
    turns = seen = 0
    async with executor_of(track) as executor:
        for case in cases:
            seen += len(case.turns)
            excluded = left_out | {turn.id for turn, _ in track.check_gold(case)}
            for turn in case.turns:
                if turn.id in excluded:
                    continue
                turns += 1
                if not await _is_correct(track, runner, executor, case, turn, track.oracle(turn)):
                    wrong.append(f"{turn.id}: the gold answer scores 0")
                if not track.gold_is_empty(turn) and await _is_correct(track, runner, executor, case, turn, ""):
                    wrong.append(f"{turn.id}: no answer scores 1")
    facts = {"turns": turns, "wrong": len(wrong), "examples": wrong[:SHOWN]}
    if wrong:
        return Verdict(False, f"{len(wrong)} times the metrics misjudge the gold answer or no answer", facts)
    drawn = f"all {turns}" if seen == whole else f"{turns} turns drawn from {whole}"
    return Verdict(True, f"gold answers score 1.0 and no answer 0.0 on {drawn} turns", facts)


async def _is_correct(
    track: Track, runner: MetricRunner, executor: Executor, case: Case, turn: Turn, text: str
) -> bool:
    artefact, error = parse_response(track, text)
    outcome = await run_artefact(executor, case, artefact, error)
    attempt = Attempt(turn.id, 0, 0, "", Response(text), None, artefact, outcome)
    values = track.values(case, turn, [attempt], gather_all(track, [(case, turn, attempt)])[0])
    return bool(runner.run([values]).plain[track.primary_metric][0])


def check_cases_read(inputs: Inputs) -> Verdict:
    """Every case in the suite's files could be read."""
    found = case_problems(inputs.workspace, inputs.suite)
    facts = {"problems": len(found), "examples": found[:SHOWN]}
    if not found:
        return Verdict(True, "every case could be read", facts)
    more = f"\nand {len(found) - SHOWN} more, see table case_problems" if len(found) > SHOWN else ""
    return Verdict(False, "cases were left out:\n" + "\n".join(found[:SHOWN]) + more, facts)


def check_every_turn_once(inputs: Inputs) -> Verdict:
    """Every planned turn and sample has exactly one result; every one asked where nobody knows what was planned."""
    if inputs.place.model_version not in inputs.workspace.model_versions:
        return check_generations_scored(inputs)
    cases = planned_cases(inputs.workspace, inputs.place)
    samples = range(inputs.version.samples_per_turn)
    return _scored_once(inputs, {(turn.id, sample) for case in cases for turn in case.turns for sample in samples})


def check_generations_scored(inputs: Inputs) -> Verdict:
    """Every turn and sample that was asked has exactly one result; needs neither suite nor model version on file."""
    return _scored_once(inputs, set(_places(inputs, GENERATIONS)))


def check_budget_kept(inputs: Inputs) -> Verdict:
    """The budget of the run allowed every call that the evaluation wanted."""
    version = inputs.version
    turns, recoveries = len(turns_not_asked(inputs)), recoveries_refused(inputs)
    facts: dict[str, Json] = {"turns_not_asked": turns, "recoveries_cut_short": recoveries}
    if not turns and not recoveries:
        return Verdict(True, "the budget allowed every call", facts)
    rows = run_rows(inputs.workspace, inputs.place, ["started_at", "run_id"])
    last = max(rows, key=lambda row: row["started_at"], default={"run_id": ""})
    spent = budget_of(inputs.anew(run=RunContext(last["run_id"]))).before
    facts |= {"tokens_spent": spent.tokens, "usd_spent": spent.usd}
    limits = []
    if version.max_cost_usd is not None:
        limits.append(f"${spent.usd or 0:.4f} of ${version.max_cost_usd:g} (max_cost_usd)")
    if version.max_tokens_total is not None:
        limits.append(f"{spent.tokens:,} of {version.max_tokens_total:,} tokens (max_tokens_total)")
    left = [f"{turns} turns were not asked"] * bool(turns)
    left += [f"{recoveries} recoveries were cut short"] * bool(recoveries)
    sums, rest = " and ".join(limits) or "which was smaller then", " and ".join(left)
    if limits and not spent.tokens and not spent.usd:
        # A call is reserved with the most that it could take: several times what it takes in the end.
        text = f"the budget of the run is too small for one call, {sums}: {rest}; raise it"
    else:
        text = f"the budget of the run is reached, {sums}: {rest}; the next run asks for the rest"
    return Verdict(False, text, facts)


def _scored_once(inputs: Inputs, planned: set[Place]) -> Verdict:
    not_asked = turns_not_asked(inputs)
    scored = Counter(_places(inputs, TURN_RESULTS))
    missing = sorted(planned - not_asked - scored.keys() - _excluded(inputs, planned))
    extra = sorted(scored.keys() - (planned - not_asked))
    twice = sorted(place for place, count in scored.items() if count > 1)
    facts = {"planned": len(planned), "missing": len(missing), "unplanned": len(extra), "twice": len(twice)}
    facts["not_asked"] = len(not_asked)
    if not (missing or extra or twice):
        if not_asked:
            return Verdict(True, f"of {len(planned)} planned turns all {len(scored)} asked ones are scored once", facts)
        return Verdict(True, f"all {len(planned)} planned turns are scored once", facts)
    examples = [f"{turn} (sample {sample})" for turn, sample in (missing + extra + twice)[:SHOWN]]
    text = (
        f"of {len(planned)} planned turns {len(missing)} are missing, {len(extra)} were not planned, {len(twice)} twice"
    )
    return Verdict(False, text, facts | {"examples": examples})


def _excluded(inputs: Inputs, planned: set[Place]) -> set[Place]:
    """Those of turns that are in no figure; where another edition of the gold was scored by, nobody knows which."""
    scored, current = inputs.header(TURN_RESULTS), inputs.header(GOLD_OVERRIDES)
    by = scored.made_from.get(GOLD_OVERRIDES.name) if scored else None
    if by is None:  # older than overrides
        return set()
    if current is None or by != current.content_hash:
        return set(planned)
    gold = inputs.gold
    return {place for place in planned if gold.is_excluded(place[0])}


def _places(inputs: Inputs, table: Table) -> Iterator[Place]:
    found = inputs.read(table, ["turn_id", "sample"])
    return zip(found["turn_id"].to_pylist(), found["sample"].to_pylist(), strict=True)


def has_safety_verdicts(track: Track) -> bool:
    """Whether the track has a validator whose word on safety is checked."""
    return any(metric.name == SAFETY_VERDICT for metric in track.metrics)


def check_unsafe_caught(inputs: Inputs) -> Verdict:
    """The validator caught every unsafe query that the model wrote: recall is 1."""
    track = inputs.track
    if not has_safety_verdicts(track):
        return Verdict(True, "the track has no verdicts on safety")
    columns = ["turn_id", "sample", SAFETY_VERDICT]
    rows = inputs.read(turns_table(track), columns).to_pylist()
    counts = Counter(row[SAFETY_VERDICT] for row in rows)
    missed = [f"{row['turn_id']} (sample {row['sample']})" for row in rows if row[SAFETY_VERDICT] == "false_negative"]
    unsafe = counts["true_positive"] + len(missed)
    facts: dict[str, Json] = {"unsafe": unsafe, "missed": len(missed), "examples": list(missed[:SHOWN])}
    facts["recall"] = counts["true_positive"] / unsafe if unsafe else None
    if not missed:
        return Verdict(True, f"the validator caught all {unsafe} unsafe queries", facts)
    return Verdict(False, f"CRITICAL: {len(missed)} of {unsafe} unsafe queries were not caught by the validator", facts)


def check_metric_errors(inputs: Inputs) -> Verdict:
    """No metric failed on any turn."""
    rows = inputs.read(METRIC_ERRORS, ["metric", "turn_id", "message"]).to_pylist()
    by_metric = dict(Counter(row["metric"] for row in rows))
    examples = [f"{row['metric']} on {row['turn_id']}" for row in rows[:SHOWN]]  # messages may quote the answer
    facts = {"metric_errors": len(rows), "by_metric": by_metric, "examples": examples}
    if len(rows) <= METRIC_ERROR_LIMIT:
        return Verdict(True, "every metric ran on every turn", facts)
    example = f"{examples[0]}: {rows[0]['message']}"
    return Verdict(False, f"metrics failed {len(rows)} times; see table metric_errors", facts, example=example)
