"""Turns of several evaluations side by side, as SQL that a page runs and shows."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.datastructures import QueryParams

from eval_pipeline.core.coverage import ITS_OWN_DOING
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import CALL_ERROR
from eval_pipeline.store.ddl import text
from eval_pipeline.view.comparing import agreement
from eval_pipeline.view.comparing.agreement import NO_ANSWER, RIGHT, UNSCORED, WRONG
from eval_pipeline.view.evaluation import Evaluation
from eval_pipeline.view.filtering.sql import of_evaluation

PLACE = ("case_id", "turn_index", "sample")
_MOST = 1_000


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the common turns: of a group, with a tag, with a text in question, answers or responses."""

    group: str = ""
    tag: str = ""
    text: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        """What an address says of it."""
        return {"group": self.group, "tag": self.tag, "q": self.text}


class Position(NamedTuple):
    """Where a turn stands: regressions first, then group by group in the suite's order."""

    rank: int
    code: str
    case_id: str
    turn_index: int
    sample: int


def choice_of(query: QueryParams, sides: int) -> Choice:
    """The choice in an address. Raises UsageError where there is no such group."""
    found = Choice(*(query.get(name, "").strip() for name in ("group", "tag", "q")))
    if any(len(value) > _MOST or "\0" in value for value in (found.group, found.tag, found.text)):
        raise UsageError("what is filtered by is too long, or no text")
    if found.group and not agreement.is_code(found.group, sides):
        raise UsageError(f"there is no group '{found.group}' of {sides} model versions")
    return found


def groups_sql(sides: Sequence[Evaluation], choice: Choice) -> str:
    """The query for groups with how many turns each has; by tag and text, whatever the group."""
    return f"{_grouped(sides, choice)}\nSELECT code, count(*) AS turns FROM grouped\nGROUP BY code ORDER BY code"


def turns_sql(
    sides: Sequence[Evaluation], choice: Choice, codes: Sequence[str], beyond: Position | None, *, backwards: bool,
    limit: int,
) -> str:  # fmt: skip
    """The query for a page of turns: after a position, or before it; `codes` are all groups that there are."""
    down = "DESC" if backwards else "ASC"
    wanted = [code for code in codes if agreement.is_chosen(code, choice.group)]
    names = ", ".join(("rank", "code", *PLACE))
    conditions = [f"code IN ({', '.join(map(text, wanted))})" if wanted else "false"]
    if beyond is not None:
        place = f"({beyond.rank}, {text(beyond.code)}, {text(beyond.case_id)}, {beyond.turn_index}, {beyond.sample})"
        conditions.append(f"({names}) {'<' if backwards else '>'} {place}")
    ranks = " ".join(f"WHEN {text(code)} THEN {agreement.rank(code)}" for code in codes) or "WHEN '' THEN 0"
    return "\n".join([
        _grouped(sides, choice),
        f"SELECT CASE code {ranks} END AS rank, *",
        f"FROM grouped WHERE {' AND '.join(conditions)}",
        f"ORDER BY {', '.join(f'{name} {down}' for name in ('rank', 'code', *PLACE))}",
        f"LIMIT {limit}",
    ])  # fmt: skip


def tags_sql(sides: Sequence[Evaluation], most: int) -> str:
    """The query for tags of the turns of the first, the most frequent first."""
    return f"""SELECT value, count(*) AS turns FROM (
        SELECT unnest(CAST(r.tags AS VARCHAR[])) AS value FROM turn_results AS r WHERE {of_evaluation(sides[0], "r")})
        GROUP BY value ORDER BY turns DESC, value LIMIT {most}"""


def left_out_sql(sides: Sequence[Evaluation]) -> str:
    """The query for turns that all have, and those that were asked or are to be answered otherwise by one of them."""
    joined = "\n".join(_join(side, number, alike=False) for number, side in enumerate(sides) if number)
    alike = " AND ".join(_alike(number) for number in range(1, len(sides)))
    return f"SELECT count(*) AS turns, count(*) FILTER (NOT ({alike})) AS otherwise\n{_first(sides)}\n{joined}"


def _grouped(sides: Sequence[Evaluation], choice: Choice) -> str:
    """The common turns that are chosen, each with the group that it belongs to."""
    states = [_state(side, number) for number, side in enumerate(sides)]
    conditions = " AND ".join([*_conditions(sides, choice)]) or "true"
    joins = "\n  ".join(_join(side, number, alike=True) for number, side in enumerate(sides) if number)
    pattern, count = " || ".join(f"s{number}" for number in range(len(sides))), len(sides)
    same = " AND ".join(f"answer_0 = answer_{number}" for number in range(1, count))
    code = (
        f"CASE WHEN contains({pattern}, '{UNSCORED}') THEN '{agreement.NOT_SCORED}'\n"
        f"    WHEN contains({pattern}, '{NO_ANSWER}') THEN '{agreement.NOT_ANSWERED}'\n"
        f"    WHEN {pattern} = '{RIGHT * count}' THEN '{agreement.ALL_RIGHT}'\n"
        f"    WHEN {pattern} <> '{WRONG * count}' THEN {pattern}\n"
        f"    WHEN {same} THEN '{agreement.ALIKE}' ELSE '{agreement.DIFFERENTLY}' END AS code"
    )
    answers = ", ".join(f"t{number}.answer AS answer_{number}" for number in range(count))
    return (
        f"WITH compared AS (\n  SELECT t0.turn_id, t0.case_id, t0.turn_index, t0.sample, {answers},\n"
        + ",\n".join(f"    {state} AS s{number}" for number, state in enumerate(states))
        + f"\n  {_first(sides)}\n  {joins}\n  WHERE {conditions}\n), grouped AS (\n"
        f"  SELECT turn_id, case_id, turn_index, sample, {code}\n  FROM compared\n)"
    )


def _first(sides: Sequence[Evaluation]) -> str:
    return f"FROM (FROM turn_results AS r WHERE {of_evaluation(sides[0], 'r')}) AS t0"


def _join(side: Evaluation, number: int, *, alike: bool) -> str:
    """Only what was asked alike, and has the same gold, says something of the models."""
    same = f"\n    AND {_alike(number)}" if alike else ""
    return (
        f"JOIN (FROM turn_results AS r WHERE {of_evaluation(side, 'r')}) AS t{number}\n"
        f"    ON t{number}.turn_id = t0.turn_id AND t{number}.sample = t0.sample{same}"
    )


def _alike(number: int) -> str:
    names = ("question", "expected")
    return " AND ".join(f"t{number}.{name} IS NOT DISTINCT FROM t0.{name}" for name in names)


def _state(side: Evaluation, number: int) -> str:
    """A turn that is answered in no attempt is told apart from one that is answered wrongly (docs/statistics.md)."""
    own = ", ".join(map(text, sorted(ITS_OWN_DOING)))
    answered = (
        f"(t{number}.turn_id, t{number}.sample) IN (SELECT (a.turn_id, a.sample) FROM attempts AS a\n"
        f"      WHERE {of_evaluation(side, 'a')} AND (a.stop_reason IS NOT NULL OR a.call_error IN ({own})))"
    )
    return (
        f"CASE WHEN t{number}.correct IS NULL THEN '{UNSCORED}'\n"
        f"      WHEN t{number}.outcome = {text(CALL_ERROR)} AND NOT {answered} THEN '{NO_ANSWER}'\n"
        f"      WHEN t{number}.correct THEN '{RIGHT}' ELSE '{WRONG}' END"
    )


def _conditions(sides: Sequence[Evaluation], choice: Choice) -> Iterator[str]:
    if choice.tag:
        yield f"json_contains(t0.tags, {text(json.dumps(choice.tag, ensure_ascii=False))})"
    if choice.text:
        yield _has_text(sides, choice.text)


def _has_text(sides: Sequence[Evaluation], wanted: str) -> str:
    """Question or id, an answer or a response of any side has the text."""
    names = ["t0.turn_id", "t0.question", *(f"t{number}.answer" for number in range(len(sides)))]
    shown = " OR ".join(_contains(name, wanted) for name in names)
    of_any = " OR ".join(f"({of_evaluation(side, 'a')})" for side in sides)
    return (
        f"({shown}\n    OR (t0.turn_id, t0.sample) IN (SELECT (a.turn_id, a.sample) FROM attempts AS a\n"
        f"      WHERE ({of_any})\n      AND ({_contains('a.response', wanted)})))"
    )


def _contains(sql: str, wanted: str) -> str:
    return f"contains(lower({sql}), {text(wanted.lower())})"


def position_text(position: Position) -> str:
    """A position for an address."""
    return json.dumps(position, separators=(",", ":"))


def position_from(found: str) -> Position:
    """The position that an address names. Raises UsageError where it is none."""
    try:
        rank, code, case_id, turn_index, sample = json.loads(found)
        return Position(int(rank), str(code), str(case_id), int(turn_index), int(sample))
    except (TypeError, ValueError) as error:
        raise UsageError("the address names no place among the turns") from error
