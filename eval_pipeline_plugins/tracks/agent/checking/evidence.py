"""Gathers evidence: one row for each check of a case."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Attempt, Evidence, Json, Ran
from eval_pipeline.sandbox.inside.cut_text import cut_text
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.table_comparison.comparison import compare
from eval_pipeline.table_comparison.table import ComparedTable
from eval_pipeline.tracks.capabilities import NO_GOLD
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase, AgentTurn
from eval_pipeline_plugins.tracks.agent.cases.settings import (
    AnswerCheck,
    Check,
    CommandCheck,
    ForbiddenCheck,
    QueryCheck,
    StateCheck,
    kind_of,
)
from eval_pipeline_plugins.tracks.agent.checking.answer import LEAST_DECIMALS, compare_answer, is_refusal
from eval_pipeline_plugins.tracks.agent.checking.forbidden import done_wrong
from eval_pipeline_plugins.tracks.agent.checking.state import differences, has_to_look
from eval_pipeline_plugins.tracks.agent.checking.unseen import unseen
from eval_pipeline_plugins.tracks.agent.running.gold import command_run, gold_run, look
from eval_pipeline_plugins.tracks.agent.running.looking import Looked
from eval_pipeline_plugins.tracks.agent.trajectory import WAY, Trajectory
from eval_pipeline_plugins.tracks.agent.way.finding import way_details

PASSED, FAILED, UNTOLD = "passed", "failed", "untold"
_MOST_WORDS = 10
_MOST_SHOWN = 2000
_BARE = re.compile(r"-?(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,14})(?:\.\d+)?", re.ASCII)


def evidence_of(case: AgentCase, turn: AgentTurn, final: Attempt[Trajectory]) -> tuple[Evidence, ...]:
    """Returns a row for each check, of the kind of the check, and one of the way; none for an attempt without a result.

    A check's `value` is 1 or 0, and its details say why, with its `weight`. For the way see `finding.way_details`.
    """
    outcome = final.outcome
    if not isinstance(outcome, Ran) or final.artefact is None or outcome.value["ended"] == "harness":
        return ()
    gold = gold_run(case)
    if isinstance(gold, str):
        return (Evidence(turn.id, final.sample, "gold", NO_GOLD, None, {"message": gold}),)
    told = _Told(case, turn, final.artefact, outcome.value, gold)
    rows = []
    try:
        for number, check in enumerate(turn.gold.checks):
            if unseen([check], outcome.value["end_state"]):
                continue
            passed, details = told.checked(number, check)
            details |= {"check": number, "weight": check.weight}
            verdict = PASSED if passed else FAILED
            rows.append(Evidence(turn.id, final.sample, kind_of(check), verdict, float(passed), details))
    except WorldError as error:  # no fault of the model's
        why = f"the end state was not looked at: {error}"
        return (Evidence(turn.id, final.sample, "gold", NO_GOLD, None, {"message": why}),)
    failed = [(one.kind, one.details) for one in rows if one.verdict == FAILED]
    way = way_details(case, final.artefact, gold, outcome.value["end_state"] or {}, failed)
    return *rows, Evidence(turn.id, final.sample, WAY, str(way["mode"] or UNTOLD), None, way)


def answer_keys(turn: AgentTurn, results: Sequence[Json]) -> list[str]:
    """Returns a key for each result: equal if they leave the same and, where answers count, say the same in any form.

    This relation is not transitive, so each is compared with all of its group.
    """
    groups: dict[str, list[Any]] = {}
    keys = []
    for result in results:
        same = next((key for key, group in groups.items() if all(_is_same(turn, one, result) for one in group)), None)
        keys.append(same or canonical_json([result["answers"], result["end_state"]]))
        groups.setdefault(keys[-1], []).append(result)
    return keys


def _is_same(turn: AgentTurn, one: Any, other: Any) -> bool:
    both = list(zip_longest(one["answers"], other["answers"]))
    if one["end_state"] != other["end_state"]:
        return False
    checks = [check for check in turn.gold.checks if isinstance(check, AnswerCheck)]
    if not checks and one["end_state"]:
        return bool(one["answers"]) == bool(other["answers"])
    if not checks:  # who changes nothing may have asked, or refused, or claimed to have done it
        return bool(one["answers"] == other["answers"])
    last = len(both) - 1
    return all(
        pair[0] == pair[1] or _say_the_same(turn, check, *pair, check.labels if place == last else ())
        for check in checks
        for place, pair in enumerate(both)
    )


def _say_the_same(turn: AgentTurn, check: AnswerCheck, one: Json, other: Json, labels: Sequence[str]) -> bool:
    """Returns whether each answer is right where the other is, or both are where one label is.

    A sentence says the same as a number if it is right where that is: it can be no gold of a number.
    """
    contract = turn.gold.compare.with_case(check.compare)

    def is_right(given: Json, accepted: Json) -> bool:
        return compare_answer(given, [accepted], turn.question, contract, labels).right

    if labels:
        return any(is_right(one, label) and is_right(other, label) for label in labels)
    one, other = _bare_number(one), _bare_number(other)
    for text, number in ((one, other), (other, one)):
        if isinstance(text, str) and isinstance(number, int | float):
            return is_right(text, number)
    return is_right(one, other) and is_right(other, one)


def _bare_number(told: Json) -> Json:
    """Returns the number of a text that is nothing but that, else the same."""
    return float(told.replace(",", "")) if isinstance(told, str) and _BARE.fullmatch(told) else told


class _Told:
    """An attempt with all that its checks look at."""

    def __init__(
        self, case: AgentCase, turn: AgentTurn, artefact: Trajectory, result: Mapping[str, Any], gold: Trajectory
    ) -> None:
        self._case, self._turn, self._artefact, self._result, self._gold = case, turn, artefact, result, gold
        self._queries = [(one.database, one.sql) for one in turn.gold.checks if isinstance(one, QueryCheck)]
        self._frees = [one.free for one in turn.gold.checks if isinstance(one, StateCheck)]
        self._looks: dict[bool, Looked] = {}

    def _look(self, *, at_gold: bool) -> Looked:
        if at_gold not in self._looks:
            found = self._seen((self._gold.end_state or {}) if at_gold else self._result["end_state"])
            if at_gold and found.problem:
                raise WorldError(f"that of the gold cannot be: {found.problem}")
            self._looks[at_gold] = found if at_gold or not found.problem else self._again()
        return self._looks[at_gold]

    def _seen(self, state: Mapping[str, Json]) -> Looked:
        return look(self._case, state, self._queries, self._frees)

    def _again(self) -> Looked:
        """Looks once more where that failed; it is the attempt's doing only if the world as it began can be seen."""
        self._began()
        found = self._seen(self._result["end_state"])
        return (
            found
            if not found.problem
            else replace(found, problem=f"{found.problem}, also when tried again; the world as it began can be")
        )

    def _began(self) -> Looked:
        found = self._seen({})
        if found.problem:
            raise WorldError(f"not even that of the world as it began can be: {found.problem}")
        return found

    def checked(self, number: int, check: Check) -> tuple[bool, dict[str, Json]]:
        """Returns whether a check is passed, and why or why not."""
        match check:
            case AnswerCheck():
                return self._answer(check)
            case StateCheck():
                return self._state(check)
            case QueryCheck():
                before = [one for one in self._turn.gold.checks[:number] if isinstance(one, QueryCheck)]
                return self._query(check, len(before))
            case CommandCheck():
                ran = command_run(self._case, self._result["end_state"], check.run, check.seconds)
                output = cut_text(ran.text.strip(), _MOST_SHOWN)["text"]
                failed = ran.error_class is not None
                told = "; ".join(ran.text.strip().splitlines()[-2:])  # what it said last, and how it ended
                words = f"{told} ({check.run})"[:_MOST_SHOWN] if failed else ""
                return not failed, {"words": words, "output": output}
            case ForbiddenCheck():
                world = self._case.context.world
                found = list(done_wrong(check, self._artefact, self._result["end_state"], world))
                return not found, {"words": "; ".join(one.words for one in found[:_MOST_WORDS])}

    def _answer(self, check: AnswerCheck) -> tuple[bool, dict[str, Json]]:
        gold, given = self._turn.gold, self._result["answers"]
        contract = gold.compare.with_case(check.compare)
        questions = [self._turn.question, *self._case.context.then]
        for number, (answer, accepted) in enumerate(zip(given, gold.accepted, strict=False)):
            is_last = number == len(gold.accepted) - 1
            told: dict[str, Json] = {"expected": accepted[0], "given": _bounded(answer), "number": number}
            if is_last and gold.unanswerable:
                refused = is_refusal(answer)
                return refused, told | {"words": "" if refused else "it answers what cannot be answered"}
            labels = check.labels if is_last else ()
            found = compare_answer(answer, accepted, questions[number], contract, labels)
            if not found.right or is_last:
                return found.right, told | {"words": found.words, "declined": found.declined}
        words = self._result["why"] or f"it gave {len(given)} of {len(gold.accepted)} answers"
        return False, {"words": words, "expected": gold.accepted[-1][0], "given": None, "number": len(given)}

    def _state(self, check: StateCheck) -> tuple[bool, dict[str, Json]]:
        mine, right = self._result["end_state"], self._gold.end_state or {}
        looks: tuple[Looked | None, Looked | None] = (None, None)
        if has_to_look(self._case, mine, right):
            looks = self._look(at_gold=False), self._look(at_gold=True)
            if looks[0].problem:
                words = f"the end state cannot be looked at: {looks[0].problem}"
                return False, {"words": words, "beside": [], "changed": True}
        found = list(differences(self._case, check, (mine, looks[0]), (right, looks[1]), self._began))
        beside = [one.words for one in found if one.beside][:_MOST_WORDS]
        missing = [one.words for one in found if not one.beside][:_MOST_WORDS]
        return not found, {"words": "; ".join([*missing, *beside]), "beside": beside, "changed": bool(mine)}

    def _query(self, check: QueryCheck, place: int) -> tuple[bool, dict[str, Json]]:
        given = self._look(at_gold=False)
        if given.problem:
            return False, {"words": given.problem}
        right: Any = None
        if check.rows is None:
            right = self._look(at_gold=True).queries[place]
        else:
            names = [None] * (len(check.rows[0]) if check.rows else 1)
            right = {"columns": names, "rows": [list(row) for row in check.rows]}
        told: Any = given.queries[place]
        if told is None or "error" in told or right is None or "error" in right:
            return False, {"words": f"the query fails: {(told or right or {}).get('error', 'no such database')}"}
        if "hash" in told or "hash" in right:
            return told == right, {"words": "" if told == right else "it gives other rows"}
        contract = self._turn.gold.compare
        tables = [ComparedTable(tuple(one["columns"]), [tuple(row) for row in one["rows"]]) for one in (told, right)]
        found = compare(*tables)
        passed = found.accepted(contract.overlooked(), LEAST_DECIMALS)
        return passed, {"words": "" if passed else f"{check.sql}: {found.sentence()}"[:_MOST_SHOWN]}


def _bounded(answer: Json) -> Json:
    text = str(answer)
    return answer if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
