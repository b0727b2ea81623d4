"""Assigns the entries of a log to turns of the suite."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.core.ids import turn_id
from eval_pipeline.core.model import Case, Json
from eval_pipeline.operations.recorded.entries import Entry
from eval_pipeline.operations.recorded.mapping import TURN_ID, is_there, nearest, value_at

CASE_PATHS: tuple[str, ...] = (
    "turn_id",
    "case_id",
    "metadata.turn_id",
    "metadata.case_id",
    "vars.turn_id",
    "vars.case_id",
)
CASE_PATHS += ("doc.turn_id", "doc.case_id", "id", "doc.id", "vars.id", "metadata.id", "doc_id")
"""Paths where a log may name the turn or case; the first value known to the suite counts."""
QUESTIONS = "questions"
"""Field of an entry with the first question of its conversation, perhaps in several wordings, for logs without ids."""
INDEX_PATHS = ("turn_index", "metadata.turn_index", "vars.turn_index", "doc.turn_index")


class PlacingError(ValueError):
    """An entry does not belong to a turn of the suite; `field` is the field concerned."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class TurnPlaces:
    """The turns of a suite, by all their names.

    Attributes:
        suite: the suite's name.
        cases: the cases by id.
        turns: case id and turn index by id of the turn, and by `CASE#INDEX`.
        first_questions: id of the case by its first question; None if several cases begin with it.
    """

    suite: str
    cases: Mapping[str, Case]
    turns: Mapping[str, tuple[str, int]]
    first_questions: Mapping[str, str | None]

    @classmethod
    def of(cls, suite: str, cases: Sequence[Case]) -> "TurnPlaces":
        """Creates it from a suite and its cases."""
        turns = {}
        for case in cases:
            for turn in case.turns:
                turns[turn_id(suite, case.id, turn.index)] = turns[f"{case.id}#{turn.index}"] = (case.id, turn.index)
        questions: dict[str, str | None] = {}
        for case in cases:
            if case.turns:
                question = _one_line(case.turns[0].question)
                questions[question] = None if question in questions else case.id
        return cls(suite, {case.id: case for case in cases}, turns, questions)

    def check(self, case_id: str, index: int) -> None:
        """Raises PlacingError if the suite has no such turn."""
        if case_id not in self.cases:
            raise PlacingError("case_id", f"the suite has no case '{case_id}'{nearest(case_id, self.cases)}")
        count = len(self.cases[case_id].turns)
        if index >= count:
            what = f"case '{case_id}' has {count} turns, found index {index} (from 0)"
            raise PlacingError("turn_index", what)


def placed(row: dict[str, Json], entry: Entry, places: TurnPlaces) -> Iterator[dict[str, Json]]:
    """Yields the rows of an entry, each with case id and turn index: one row, or one per turn of a conversation.

    The row's own fields take precedence. If they do not name the turn, the usual places in the log's entry are
    searched.

    Args:
        row: the mapped row; not modified.
        entry: the entry it comes from.
        places: the turns of the suite.

    Raises:
        PlacingError: the suite has no such turn, or the turn cannot be determined.
    """
    row = dict(row)
    named = row.pop(TURN_ID, None)
    if named is not None:
        if str(named) not in places.turns:
            raise PlacingError(TURN_ID, f"the suite has no turn '{named}'{nearest(str(named), places.turns)}")
        row["case_id"], row["turn_index"] = places.turns[str(named)]
    if isinstance(row.get("case_id"), int):
        row["case_id"] = str(row["case_id"])  # many logs use numbers as ids
    if entry.given is not entry.found or entry.conversation:  # else its own fields name the case
        if "case_id" not in row:
            _find_case(row, entry, places)
        if "turn_index" not in row:
            _find_index(row, entry)
    case = places.cases.get(str(row.get("case_id")))
    if "turn_index" in row or case is None:
        yield {"turn_index": 0} | row
    elif len(case.turns) == 1:
        yield row | {"turn_index": 0}
    elif len(entry.conversation) == len(case.turns):
        yield from _turn_by_turn(row, entry.conversation)
    else:
        told = f"case '{case.id}' has {len(case.turns)} turns, and which one this answers is not told"
        raise PlacingError(
            "turn_index", f"{told}: --map turn_index=FIELD, or --map turn_id=FIELD for ids like {case.id}#0"
        )


def _find_case(row: dict[str, Json], entry: Entry, places: TurnPlaces) -> None:
    seen: list[str] = []
    for path in CASE_PATHS:
        if not is_there(value := value_at(entry.found, path)) or isinstance(value, dict | list):
            continue
        if str(value) in places.turns:
            row["case_id"], index = places.turns[str(value)]
            row.setdefault("turn_index", index)
            return
        if str(value) in places.cases:
            row["case_id"] = str(value)
            return
        seen.append(f"{path} '{value}'")
    asked = [str(question) for question in entry.found.get(QUESTIONS) or ()]
    for question in asked:
        if (case_id := places.first_questions.get(_one_line(question))) is not None:
            row["case_id"] = case_id
            return
    seen += [f"question '{question:.60}'" for question in asked[-1:] if question]
    tried = f"the suite knows none of {', '.join(seen[:4])}" if seen else "nothing in it looks like an id"
    raise PlacingError("case_id", f"{tried}: --map case_id=FIELD says which field holds the case's id")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _find_index(row: dict[str, Json], entry: Entry) -> None:
    for path in INDEX_PATHS:
        if is_there(value := value_at(entry.found, path)):
            row["turn_index"] = int(value) if isinstance(value, str) and value.isdecimal() else value
            return


def _turn_by_turn(row: Mapping[str, Json], conversation: Sequence[str]) -> Iterator[dict[str, Json]]:
    """Yields one row per turn, without totals of the conversation and without the prompt, which is the last turn's."""
    whole = {"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "latency_ms", "usd"}
    whole |= {"response", "prompt", "stop_reason"}
    kept = {name: value for name, value in row.items() if name not in whole}
    for index, text in enumerate(conversation):
        yield kept | {"turn_index": index, "response": text}
