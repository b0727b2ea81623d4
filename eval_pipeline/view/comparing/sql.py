"""The SQL queries for turns of several evaluations side by side; the page shows what it runs."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from starlette.datastructures import QueryParams

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import without_surrogates
from eval_pipeline.core.model import CALL_ERROR
from eval_pipeline.reports.queries import KIND
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.comparing import agreement
from eval_pipeline.view.comparing.agreement import NO_ANSWER, RIGHT, UNSCORED, WRONG
from eval_pipeline.view.evaluation import StoredEvaluation
from eval_pipeline.view.filtering.only import answered, of_evaluation

PLACE = ("case_id", "turn_index", "sample")
_MOST = 1_000


@dataclass(frozen=True, slots=True)
class Choice:
    """Which common turns to show.

    The text is in question, answers or responses.

    Attributes:
        kind: how one of the evaluations at least gets them wrong: a failure mode, or else an error class.
    """

    group: str = ""
    tag: str = ""
    text: str = ""
    kind: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments for the address."""
        return {"group": self.group, "tag": self.tag, "q": self.text, "kind": self.kind}


class CommonPosition(NamedTuple):
    """The position of a turn: regressions first, then group by group in the suite's order.

    Attributes:
        rank, code: of its group, see `agreement.rank`.
    """

    rank: int
    code: str
    case_id: str
    turn_index: int
    sample: int


def choice_of(query: QueryParams, sides: int) -> Choice:
    """Reads the choice from an address. Raises a UsageError if there is no such group."""
    found = Choice(*(query.get(name, "").strip() for name in ("group", "tag", "q", "kind")))
    if any(len(value) > _MOST or "\0" in value for value in found.arguments.values()):
        raise UsageError("the text to filter by is too long, or not a text")
    if found.group and not agreement.is_code(found.group, sides):
        raise UsageError(f"there is no group '{found.group}' of {sides} model versions")
    return found


def turns_sql(sides: Sequence[StoredEvaluation], choice: Choice, silent: Collection[int]) -> str:
    """Returns the query for the chosen common turns, regressions first, each with its group.

    Args:
        sides: the evaluations.
        choice: which turns to include.
        silent: indexes of the evaluations with failed calls; only these need `attempts` to tell which turns were
            answered.
    """
    conditions = " AND ".join([*_alike_in_all(sides), *_conditions(sides, choice)])
    states = ",\n  ".join(f"{_state(side, number, number in silent)} AS s{number}" for number, side in enumerate(sides))
    joins = "\n  ".join(_join(side, number) for number, side in enumerate(sides) if number)
    same = " AND ".join(f"t0.answer = t{number}.answer" for number in range(1, len(sides)))
    place = ", ".join(f"t0.{name}" for name in ("turn_id", *PLACE))
    chosen = f"WHERE {_of_group(choice.group)}\n" if choice.group else ""
    return (
        f"WITH compared AS (\n  SELECT {place},\n  coalesce({same}, false) AS same,\n  {states}\n  {_first(sides)}\n"
        f"  {joins}\n  WHERE {conditions}\n), grouped AS (\n  SELECT turn_id, case_id, turn_index, sample, "
        f"{_code(len(sides))}\n  FROM compared\n)\n"
        f"SELECT {RANK} AS rank, code, case_id, turn_index, sample, turn_id\nFROM grouped\n{chosen}ORDER BY ALL"
    )


def tags_sql(sides: Sequence[StoredEvaluation], most: int) -> str:
    """Returns the query for the tags of the first evaluation's turns, the most frequent first."""
    return f"""SELECT value, count(*) AS turns FROM (
        SELECT unnest(CAST(r.tags AS VARCHAR[])) AS value {_turns(sides[0])})
        GROUP BY value ORDER BY turns DESC, value LIMIT {most}"""


def by_tag_sql(sides: Sequence[StoredEvaluation], choice: Choice, silent: Collection[int], most: int) -> str:
    """Returns the query for the tags of turns on which the evaluations differ, and how; see `turns_sql`."""
    chosen = turns_sql(sides, replace(choice, group="", tag=""), silent)
    tags = f"SELECT r.turn_id, r.sample, unnest(list_distinct(CAST(r.tags AS VARCHAR[]))) AS tag {_turns(sides[0])}"
    lost, won = (f"count(*) FILTER (c.code LIKE '{state}%')" for state in (RIGHT, WRONG))
    return (
        f"SELECT u.tag, count(*) AS turns, {lost} AS lost, {won} AS won\n"
        f"FROM ({chosen}) AS c JOIN ({tags}) AS u USING (turn_id, sample)\n"
        f"GROUP BY u.tag HAVING lost + won > 0 ORDER BY lost DESC, won, u.tag LIMIT {most}"
    )


def otherwise_sql(sides: Sequence[StoredEvaluation]) -> str:
    """Returns the query that counts turns that all have, but whose question or gold differs in one of them."""
    joined = "\n".join(_join(side, number) for number, side in enumerate(sides) if number)
    return f"SELECT count(*) AS turns\n{_first(sides)}\n{joined}\nWHERE NOT ({' AND '.join(_alike_in_all(sides))})"


def silent_sql(side: StoredEvaluation) -> str:
    """Returns the query that counts an evaluation's turns whose last call failed."""
    failed = f"r.outcome = {text(CALL_ERROR)}"
    return f"SELECT count(*) AS turns {_turns(side)} AND {failed}"


_NAMED_RANKS = " ".join(f"WHEN {text(code)} THEN {place}" for code, place in agreement.AFTER_PATTERNS.items())
RANK = (
    f"CASE code {_NAMED_RANKS}\n  ELSE if(code LIKE '{RIGHT}%', {agreement.REGRESSED}, {agreement.OTHERS})"
    f" + length(replace(code, '{WRONG}', '')) END"
)
"""The rank of a group: those that only the first got right come first, those that all got right last."""


def _of_group(group: str) -> str:
    if group != agreement.REGRESSIONS:
        return f"code = {text(group)}"
    return f"code LIKE '{RIGHT}%' AND code NOT IN ({', '.join(map(text, agreement.AFTER_PATTERNS))})"


def _code(count: int) -> str:
    pattern = " || ".join(f"s{number}" for number in range(count))
    return (
        f"CASE WHEN contains({pattern}, '{UNSCORED}') THEN '{agreement.NOT_SCORED}'\n"
        f"    WHEN contains({pattern}, '{NO_ANSWER}') THEN '{agreement.NOT_ANSWERED}'\n"
        f"    WHEN {pattern} = '{RIGHT * count}' THEN '{agreement.ALL_RIGHT}'\n"
        f"    WHEN {pattern} <> '{WRONG * count}' THEN {pattern}\n"
        f"    WHEN same THEN '{agreement.ALIKE}' ELSE '{agreement.DIFFERENTLY}' END AS code"
    )


def _turns(side: StoredEvaluation) -> str:
    return f"FROM {side.table('turn_results')} AS r WHERE {of_evaluation(side, 'r')}"


def _first(sides: Sequence[StoredEvaluation]) -> str:
    return f"FROM ({_turns(sides[0])}) AS t0"


def _join(side: StoredEvaluation, number: int) -> str:
    return f"JOIN ({_turns(side)}) AS t{number}\n    ON t{number}.turn_id = t0.turn_id AND t{number}.sample = t0.sample"


def _alike_in_all(sides: Sequence[StoredEvaluation]) -> list[str]:
    """Returns conditions for turns with the same question and gold in all.

    Only those say something about the models.
    """
    others = range(1, len(sides))
    return [f"t{n}.{name} IS NOT DISTINCT FROM t0.{name}" for n in others for name in ("question", "expected")]


def _state(side: StoredEvaluation, number: int, silent: bool) -> str:
    """Returns the SQL for a turn's state.

    A turn without any answer is distinct from a wrong one (docs/statistics.md).
    """
    any_answer = (
        f"(t{number}.turn_id, t{number}.sample) IN (SELECT (a.turn_id, a.sample) FROM {side.table('attempts')} AS a\n"
        f"      WHERE {of_evaluation(side, 'a')} AND {answered('a')})"
    )
    failed = f"t{number}.outcome = {text(CALL_ERROR)}"
    unanswered = f"\n      WHEN {failed} AND NOT {any_answer} THEN '{NO_ANSWER}'" if silent else ""
    return (
        f"CASE WHEN t{number}.correct IS NULL THEN '{UNSCORED}'{unanswered}\n"
        f"      WHEN t{number}.correct THEN '{RIGHT}' ELSE '{WRONG}' END"
    )


def _conditions(sides: Sequence[StoredEvaluation], choice: Choice) -> Iterator[str]:
    if choice.tag:
        yield f"json_contains(t0.tags, {text(json.dumps(choice.tag, ensure_ascii=False))})"
    if choice.text:
        yield _has_text(sides, choice.text)
    if choice.kind:
        errors = "\n      UNION ALL ".join(
            f"SELECT (e.turn_id, e.sample) FROM {table} AS e WHERE ({of_any}) AND {KIND} = {text(choice.kind)}"
            for table, of_any in _of_any(sides, "turn_errors", "e").items()
        )
        yield f"(t0.turn_id, t0.sample) IN ({errors})"


def _has_text(sides: Sequence[StoredEvaluation], wanted: str) -> str:
    """Returns the condition that the question, the id, or an answer or response of any side contains the text."""
    names = ["t0.turn_id", "t0.question", *(f"t{number}.answer" for number in range(len(sides)))]
    shown = " OR ".join(_contains(name, wanted) for name in names)
    said = "\n      UNION ALL ".join(
        f"SELECT (a.turn_id, a.sample) FROM {table} AS a WHERE ({of_any}) AND ({_contains('a.response', wanted)})"
        for table, of_any in _of_any(sides, "attempts", "a").items()
    )
    return f"({shown}\n    OR (t0.turn_id, t0.sample) IN ({said}))"


def _of_any(sides: Sequence[StoredEvaluation], name: str, alias: str) -> dict[str, str]:
    """Returns the condition that a row is of one of the evaluations, by the table of that name with their rows."""
    found: dict[str, list[str]] = {}
    for side in sides:
        found.setdefault(side.table(name), []).append(f"({of_evaluation(side, alias)})")
    return {table: " OR ".join(conditions) for table, conditions in found.items()}


def _contains(sql: str, wanted: str) -> str:
    return f"contains(lower({sql}), {text(wanted.lower())})"


def position_text(position: CommonPosition) -> str:
    """Encodes a position for an address."""
    return json.dumps(position, separators=(",", ":"))


def position_from(found: str) -> CommonPosition:
    """Decodes the position in an address. Raises a UsageError if it is invalid."""
    try:
        rank, code, case_id, turn_index, sample = without_surrogates(json.loads(found))
        return CommonPosition(int(rank), str(code), str(case_id), int(turn_index), int(sample))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError("the address contains an invalid position") from error
