"""Compares what an attempt has changed in its world with what the gold has changed."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from eval_pipeline.core.ids import canonical_json, json_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.users_tables import likely_separator
from eval_pipeline.core.values import value
from eval_pipeline.sandbox.world.changes import ChangedFile, changed
from eval_pipeline.table_comparison.comparison import compare
from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.table_comparison.table import ComparedTable
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase
from eval_pipeline_plugins.tracks.agent.cases.settings import StateCheck
from eval_pipeline_plugins.tracks.agent.checking.answer import same_tables
from eval_pipeline_plugins.tracks.agent.checking.readings import plain_cell
from eval_pipeline_plugins.tracks.agent.running.looking import Looked

_OF_TABLES = frozenset({Relaxation.ROW_ORDER, Relaxation.TIE_ORDER, Relaxation.COLUMN_ORDER, Relaxation.TOLERANCE})
_BESIDE = ("-wal", "-shm", "-journal", ".wal", ".tmp")
"""Endings of what a database leaves beside its file."""
_LOOKED_AT = (".parquet", ".xlsx")


@value
class EndDifference:
    """Something that is not as the gold leaves it.

    Attributes:
        words: a sentence.
        beside: whether the gold leaves it as it was; else it is something that had to be done.
    """

    words: str
    beside: bool


def has_to_look(case: AgentCase, *states: Mapping[str, Json]) -> bool:
    """Returns whether end states can only be compared by reading them in a world."""
    files = _database_files(case)
    return any(path in files or path.endswith(_LOOKED_AT) for state in states for path in state)


def differences(
    case: AgentCase,
    check: StateCheck,
    given: tuple[Mapping[str, Json], Looked | None],
    gold: tuple[Mapping[str, Json], Looked | None],
    began: Callable[[], Looked],
) -> Iterator[EndDifference]:
    """Yields in what the end state of an attempt differs from that of the gold.

    Args:
        case: the case.
        check: what may differ.
        given: the attempt's changes by path, and what there is in the end, if that has to be looked at.
        gold: likewise the gold's.
        began: looks at the world as it began.
    """
    state, right = given[0], gold[0]
    yield from _not_written(check, state)
    if canonical_json(dict(state)) == canonical_json(dict(right)):
        return
    there, databases = case.context.world.listing(), _database_files(case)
    for path in sorted({*state, *right}):
        if path in databases or _is_free(path, check):
            continue
        if path not in right:
            if path in there or not check.new_files:
                told = "was removed" if state[path] is None else "was changed" if path in there else "was made"
                yield EndDifference(f"{path} {told}", True)
        elif path not in state:
            yield EndDifference(f"{path} was not {'removed' if right[path] is None else 'written'}", False)
        elif (why := _differs(case, check, path, (state[path], given[1]), (right[path], gold[1]))) is not None:
            yield EndDifference(f"{path}: {why}", False)
    if given[1] is not None and gold[1] is not None:
        compared = _Compared(case, check, _number_of(case, check), began)
        yield from _of_databases(compared, (state, given[1]), (right, gold[1]))


@value
class _Compared:
    """A check with what it needs to compare databases.

    Attributes:
        number: which of the hashes of a large table leaves out what is free.
    """

    case: AgentCase
    check: StateCheck
    number: int
    began: Callable[[], Looked]


def _not_written(check: StateCheck, state: Mapping[str, Json]) -> Iterator[EndDifference]:
    for pattern in check.written:
        if not any(told is not None and fnmatchcase(path, pattern) for path, told in state.items()):
            yield EndDifference(f"{pattern} was not written", False)


def _database_files(case: AgentCase) -> frozenset[str]:
    files = [file for file, _ in case.context.world.files.values()]
    return frozenset(f"{file}{ending}" for file in files for ending in ("", *_BESIDE))


def _is_free(name: str, check: StateCheck) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in check.free)


def _differs(
    case: AgentCase,
    check: StateCheck,
    path: str,
    given: tuple[Json, Looked | None],
    gold: tuple[Json, Looked | None],
) -> str | None:
    """Returns in what a file differs from that of the gold, None if it does not."""
    one, other = _read(given[0]), _read(gold[0])
    if one == other:
        return None
    if one is None or other is None or one.kind != other.kind or one.body is None or other.body is None:
        return f"is {'too large or ' if one is None or one.body is None else ''}not what it should be"
    question, contract = case.turns[0].question, case.turns[0].gold.compare

    def without_free(table: ComparedTable | None) -> ComparedTable | None:
        return None if table is None else _kept(table, lambda name: not _is_free(f"{path}.{name}", check))

    if path.endswith(_LOOKED_AT) and given[1] is not None and gold[1] is not None:
        told, right = given[1].files.get(path), gold[1].files.get(path)
        if (problem := _unreadable(told, right, _number_of(case, check))) is not None:
            return problem
        return _tables_differ(_compared(told or {}), without_free(_compared(right or {})), contract, question)
    try:
        texts = one.body.decode("utf-8-sig"), other.body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "has other bytes"
    if path.lower().endswith((".csv", ".tsv")):
        return _tables_differ(_csv(texts[0]), without_free(_csv(texts[1])), contract, question)
    return _text_differs(path, *texts, contract, question)


def _read(told: Json) -> ChangedFile | None:
    try:
        return changed(told)
    except ValueError:
        return None


def _text_differs(path: str, text: str, right: str, contract: Contract, question: str) -> str | None:
    ending = path.rpartition(".")[2].lower()
    if ending in ("json", "jsonl", "ndjson"):
        try:
            one, other = _json(text, ending), _json(right, ending)
        except ValueError as error:
            return f"is no JSON: {error}"
        if canonical_json(one) == canonical_json(other):
            return None
        found = same_tables(one, other, contract.insisted(question), contract)
        return None if found.right else found.words
    lines, wanted = ([line.rstrip() for line in one.strip().splitlines()] for one in (text, right))
    if lines == wanted:
        return None
    at = next((n for n, pair in enumerate(zip(lines, wanted, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        return f"has {len(lines)} lines, not {len(wanted)}"
    return f"line {at + 1} is {json_text(lines[at][:80])}, not {json_text(wanted[at][:80])}"


def _json(text: str, ending: str) -> Json:
    return json.loads(text) if ending == "json" else [json.loads(line) for line in text.splitlines() if line.strip()]


def _csv(text: str) -> ComparedTable | None:
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=likely_separator(text[:65536])) if row]
    if not rows or len({len(row) for row in rows}) != 1:
        return None
    return ComparedTable(tuple(rows[0]), [tuple(map(plain_cell, row)) for row in rows[1:]])


def _unreadable(told: Any, right: Any, number: int) -> str | None:
    """Returns why tables that were looked at cannot be compared, or None."""
    for one in (told, right):
        if not isinstance(one, Mapping) or "error" in one:
            return f"cannot be read: {one['error'] if isinstance(one, Mapping) else 'it is not there'}"
    return None if _same_hash(told, right, number) is not False else "has other rows"


def _number_of(case: AgentCase, check: StateCheck) -> int:
    """Returns which hash of a large table leaves out what is free in a check; the first leaves out nothing."""
    return [one.free for one in case.turns[0].gold.checks if isinstance(one, StateCheck)].index(check.free) + 1


def _same_hash(told: Any, right: Any, number: int) -> bool | None:
    """Returns whether tables that are too large to be told have the same rows; None if neither is too large."""
    one, other = told.get("hash"), right.get("hash")
    if one is None and other is None:
        return None
    return one is not None and other is not None and bool(one[number] == other[number])


def _kept(table: ComparedTable, counts: Callable[[str], bool]) -> ComparedTable:
    """Returns a table with the columns that count."""
    places = [at for at, name in enumerate(table.columns) if counts(str(name))]
    rows = [tuple(row[at] for at in places) for row in table.rows]
    return ComparedTable(tuple(table.columns[at] for at in places), rows, table.ties, table.shape)


def _tables_differ(
    table: ComparedTable | None, right: ComparedTable | None, contract: Contract, question: str
) -> str | None:
    if table is None or right is None:
        return "is no table"
    insisted = contract.insisted(question)
    if Relaxation.ROW_ORDER in insisted:
        right = ComparedTable(right.columns, right.rows, tuple(range(len(right.rows))), right.shape)
    found = compare(table, right)
    return None if found.accepted(contract.overlooked(insisted)) else found.sentence()


def _compared(told: Mapping[str, Any]) -> ComparedTable:
    return ComparedTable(tuple(told["columns"]), [tuple(map(_cell, row)) for row in told["rows"]])


def _cell(found: Json) -> Any:
    return json_text(found) if isinstance(found, list | dict) else found


def _of_databases(
    compared: _Compared, given: tuple[Mapping[str, Json], Looked], gold: tuple[Mapping[str, Json], Looked]
) -> Iterator[EndDifference]:
    check = compared.check
    for name, (file, _) in compared.case.context.world.files.items():
        one, other = given[1].tables.get(name, {}), gold[1].tables.get(name, {})
        is_worked_on = any(f"{file}{ending}" in gold[0] for ending in ("", *_BESIDE))
        if given[0].get(file) == {"special": True}:
            yield EndDifference(f"{name} cannot be written down; another database of its server can be", False)
            continue
        if "" in one:
            yield EndDifference(f"{name} cannot be read: {one['']['error']}", False)
            continue
        for table in sorted({*one, *other}):
            place = f"{name}.{table}"
            if one.get(table) == other.get(table) or _is_free(place, check):
                continue
            if table not in other:
                if not check.new_files:
                    yield EndDifference(f"the table {place} was made", True)
                continue
            why = _of_table(place, one.get(table), other[table], check, compared.number)
            if why is not None:
                yield EndDifference(f"{place}: {why}", not is_worked_on)
        yield from _of_objects(compared, name, given[1], gold[1], is_worked_on)


def _of_table(place: str, told: Any, right: Any, check: StateCheck, number: int) -> str | None:
    if told is None:
        return "is not there"
    if "error" in told or "error" in right:
        return f"cannot be read: {told.get('error') or right.get('error')}"
    names = told["columns"]
    free = {name for name in {*names, *right["columns"]} if _is_free(f"{place}.{name}", check)}
    if sorted(names) != sorted(right["columns"]):
        return f"has the columns {', '.join(names)}, not {', '.join(right['columns'])}"
    if (same := _same_hash(told, right, number)) is not None:
        counts = "" if told["count"] == right["count"] else f": {told['count']:,}, not {right['count']:,}"
        return None if same else f"has other rows{counts}"
    one, other = (_kept(_compared(found), lambda name: name not in free) for found in (told, right))
    order = [one.columns.index(name) for name in other.columns]
    one = ComparedTable(other.columns, [tuple(row[at] for at in order) for row in one.rows])
    found = compare(one, other)
    return None if found.accepted(_OF_TABLES) else found.sentence()


def _of_objects(
    compared: _Compared, name: str, looked: Looked, right: Looked, is_worked_on: bool
) -> Iterator[EndDifference]:
    """Yields in what a database differs beside its rows: definitions of tables, indexes, triggers, views and others."""
    mine, wanted = _objects(looked, name), _objects(right, name)
    if mine == wanted:
        return
    began = compared.began() if is_worked_on else right
    before, check = _objects(began, name), compared.check
    tables = {of for kind, of in before if kind in _WITH_ROWS}
    for key in sorted({*mine, *wanted}):
        (kind, shown), one, other, first = key, mine.get(key), wanted.get(key), before.get(key)
        of = str((one or other or {}).get("of"))
        if one == other or any(_is_free(f"{name}.{part}", check) for part in (shown, of)):
            continue
        told = f"the {kind} {name}: {shown}"
        if one is None or other is None:
            is_counted = not check.new_files or (kind in _ACTING and of in tables)
            if kind not in _WITH_ROWS:  # of which the comparison of rows says so
                yield from _of_one(told, one, other, first, is_counted)
        elif kind == "table":
            has_rows = right.tables.get(name, {}).get(shown) == began.tables.get(name, {}).get(shown)
            yield from _of_definition(told, one, other, first, has_rows)
        elif other == first:
            yield EndDifference(f"{told} was changed", True)


def _of_one(told: str, one: Any, other: Any, first: Any, is_counted: bool) -> Iterator[EndDifference]:
    """Yields that something is missing, or that it is there and should not be."""
    if one is None:
        yield EndDifference(f"{told} is not there", other == first)
    elif first is not None:
        yield EndDifference(f"{told} is still there", False)
    elif is_counted:
        yield EndDifference(f"{told} was made", True)


_WITH_ROWS = ("table", "view")
_ACTING = ("trigger", "unique index", "rule", "policy")
"""What changes the table that it is made for, although that is as it was."""


def _objects(looked: Looked, database: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {(one["kind"], one["name"]): one for one in looked.objects.get(database, ())}


def _of_definition(
    told: str, one: Mapping[str, Any], other: Mapping[str, Any], first: Mapping[str, Any] | None, is_as_it_was: bool
) -> Iterator[EndDifference]:
    """Yields in what the definition of a table differs, if the world began with it.

    What the gold added has to be there and what it took away must not, but how columns are typed, and what they are by
    default, may differ in new columns, and in tables that the gold has filled anew.
    """
    if first is None:
        return
    mine, wanted, before = ({tuple(fact) for fact in found["told"]} for found in (one, other, first))
    known = {about for kind, about, _ in before if kind == "column"}

    def counts(fact: tuple[str, str, str]) -> bool:
        kind, about, text = fact
        is_type = kind == "column" and text.startswith(("type ", "default "))
        return kind != "column" or (about in known and (is_as_it_was or not is_type))

    for fact in sorted(filter(counts, wanted - mine)):
        yield EndDifference(
            f"{told} has no longer {_fact(fact)}" if fact in before else f"{told} lacks {_fact(fact)}", fact in before
        )
    for fact in sorted(filter(counts, mine - wanted)):
        yield EndDifference(f"{told} has {_fact(fact)}", fact not in before)


def _fact(fact: tuple[str, str, str]) -> str:
    return " ".join(filter(None, fact))
