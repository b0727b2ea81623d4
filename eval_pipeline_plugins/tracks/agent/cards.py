"""Shows a task: what was answered and is expected, the checks, and what was done step by step."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from eval_pipeline.core.model import Ran
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.shown.cards import BesideCard, Card, CardCell, CodeCard, FactsCard, Mark, TableCard, Text
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentContext, AgentGold
from eval_pipeline_plugins.tracks.agent.changes import changes
from eval_pipeline_plugins.tracks.agent.timeline import answer_shown, call_shown, timeline
from eval_pipeline_plugins.tracks.agent.trajectory import Trajectory

AgentSeen: TypeAlias = Seen[AgentContext, AgentGold, Trajectory]
_MOST_TEXT = 1500


def turn_cards(seen: AgentSeen) -> Sequence[Card]:
    """Returns the cards of a task, most informative first."""
    return [*_facts(seen), *_checks(seen), *timeline(seen), *_gold(seen), *changes(seen)]


def work_done(seen: AgentSeen) -> BesideCard | None:
    """Returns what the gold and the attempt did and changed, without a verdict; None if nothing was done."""
    blind = replace(seen, evidence=())
    done = [*timeline(blind)]
    return BesideCard("What was done", [*_gold(blind), *done, *changes(blind)]) if done else None


def _facts(seen: AgentSeen) -> Iterator[Card]:
    bad = Mark.WRONG if seen.metrics.get("task_correct") is not None else None  # else nobody is to blame
    gold, outcome = seen.turn.gold, seen.attempts[-1].outcome if seen.attempts else None
    expected = "that it cannot be answered" if gold.unanswerable else " or ".join(map(answer_shown, gold.accepted[-1]))
    facts: list[tuple[str, Text]] = [("expected", expected[:_MOST_TEXT])]
    if isinstance(outcome, Ran):
        answers, right = outcome.value["answers"], seen.metrics.get("answer_correct")
        mark = None if right is None else Mark.RIGHT if right else Mark.WRONG
        facts.append(("answer", CardCell(answer_shown(answers[-1])[:_MOST_TEXT] if answers else "none", mark)))
        if outcome.value["why"]:
            facts.append(("ended", CardCell(str(outcome.value["why"]), bad)))
    if mode := seen.metrics.get("failure_mode"):
        facts.append(("failure mode", CardCell(str(mode).replace("_", " "), bad)))
    facts.append(("world", seen.case.context.world.name))
    yield FactsCard("Task", facts)


def _checks(seen: AgentSeen) -> Iterator[Card]:
    rows: list[tuple[Text, ...]] = []
    for one in seen.evidence:
        if "check" in one.details:
            passed = one.verdict == "passed"
            mark = CardCell(one.verdict, Mark.RIGHT if passed else Mark.WRONG)
            rows.append((one.kind, mark, str(one.details.get("words") or "")[:_MOST_TEXT]))
    if rows:
        yield TableCard("Checks", ("check", "verdict", "why"), rows, row_headers=True)


def _gold(seen: AgentSeen) -> Iterator[Card]:
    lines = [call_shown(call.name, dict(call.arguments)) for call in seen.turn.gold.script]
    yield CodeCard("A solution", "\n\n".join(lines))
