"""Makes the cards that show a turn: expected and returned rows, both queries, the database that tells them apart."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Attempt, Evidence, Failed, Json, Ran
from eval_pipeline.table_comparison.contracts import NONE, contract_line, excess, ways_of
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.shown.cards import (
    BesideCard,
    Card,
    CardCell,
    CodeCard,
    DifferenceCard,
    FactsCard,
    Mark,
    TableCard,
    Text,
    TextCard,
)
from eval_pipeline.tracks.shown.results_beside import ShownResult, beside
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlContext, SqlGold
from eval_pipeline_plugins.tracks.sql.metrics.verdict import FORM
from eval_pipeline_plugins.tracks.sql.responses.artefact import SqlAnswer
from eval_pipeline_plugins.tracks.sql.responses.evidence import EQUIVALENCE, EXECUTION, VALIDATION, details_of, of_kind
from eval_pipeline_plugins.tracks.sql.responses.structure import differences

_MOST_CELL, _MOST_TABLES, _MOST_ROWS, _MOST_COLUMNS, _MOST_MESSAGE = 200, 12, 20, 20, 1000
_Words = Mapping[str, tuple[str, Mark | None]]
_OUTCOMES: _Words = {
    "match": ("the expected rows", Mark.RIGHT),
    "different": ("other rows than expected", Mark.WRONG),
    "error": ("no rows", Mark.WRONG),
    "no_data": ("the suite ships no data to run it on", None),
}
_DECIDED: _Words = {
    "identical": ("the queries are the same text", Mark.RIGHT),
    "proved": ("proved to mean the same", Mark.RIGHT),
    "refuted": ("refuted", Mark.WRONG),
    "agreed": ("the same on every database tried, which is no proof", Mark.RIGHT),
    "weakly_agreed": ("the same on every database tried, which tell little", None),
    "undecided": ("undecided", None),
}

_IN_FORM: _Words = {
    "different": ("the expected rows in another form", None),
    "refuted": ("refuted, if nothing is overlooked", None),
}
"""Instead of the words above, where something has to be overlooked."""

_REASONS: _Words = {
    "different_on_data": ("another result on the suite's database", Mark.WRONG),
    "different_in_form": ("the same but for its form, which the contract does not overlook", Mark.WRONG),
    "overlooked": ("the same but for what the contract overlooks", Mark.RIGHT),
    "refuted_on_fitting_database": ("another result on a generated database", Mark.WRONG),
    "refuted_on_unusual_database": (
        "another result on generated databases only that do not fit the data (empty tables, NULL, values never seen)",
        None,
    ),
    "undecided_without_data": ("without data nothing shows that it is right", Mark.WRONG),
    "not_refuted": ("no database tried speaks against it", Mark.RIGHT),
}

_DECIMAL = re.compile(r"-?\d{1,40}\.\d{1,40}")

SqlSeen = Seen[SqlContext, SqlGold, SqlAnswer]


def turn_cards(seen: SqlSeen) -> list[Card]:
    """Returns the cards of a turn; if there is no attempt, only the gold query."""
    return [*_cards(seen, seen.attempts[-1] if seen.attempts else None)]


def both_results(seen: SqlSeen) -> BesideCard:
    """Returns the rows of the gold and those of the answer on the suite's database, without marks, in their order."""
    final = seen.attempts[-1] if seen.attempts else None
    told = final.outcome.value if final is not None and isinstance(final.outcome, Ran) else {}
    cards: list[Card] = [] if seen.expected_result is None else [_rows("Gold", seen.expected_result)]
    if told.get("rows") is not None:
        cards.append(_rows("Answer", told))
    else:
        message = details_of(seen.evidence, EXECUTION).get("message") or "no rows"
        cards.append(TextCard("Answer", [str(message)[:_MOST_MESSAGE]]))
    return BesideCard("Rows on the suite's database", cards)


def _cards(seen: SqlSeen, final: Attempt[SqlAnswer] | None) -> Iterator[Card]:
    gold, dialect = seen.turn.gold, seen.case.context.database.dialect
    sql = final.artefact.sql if final is not None and final.artefact is not None else None
    accepted = details_of(seen.evidence, EXECUTION).get("accepted", gold.accepted[0] if gold.accepted else None)
    if facts := [*_facts(seen, final, sql, accepted)]:
        yield FactsCard("Verdict", facts)
    counterexample = details_of(seen.evidence, EQUIVALENCE).get("counterexample")
    yield from _results(seen, final, counterexample)
    if sql is not None and accepted is not None:
        yield DifferenceCard("Queries", "Gold", accepted, "Answer", sql)
    elif sql is not None:
        yield CodeCard("Query of the answer; a refusal was right", sql, dialect)
    elif accepted is not None:
        yield CodeCard("Gold query", accepted, dialect)
    if counterexample is not None and not _is_shipped(counterexample):
        yield from _generated(counterexample)
    for place, other in enumerate(other for other in gold.accepted if other != accepted):
        yield CodeCard(f"Also accepted ({place + 1})", other, dialect)


def _facts(
    seen: SqlSeen, final: Attempt[SqlAnswer] | None, sql: str | None, accepted: str | None
) -> Iterator[tuple[str, Text]]:
    if final is not None and final.artefact is not None and final.artefact.declined:
        mark = Mark.WRONG if seen.turn.gold.should_pass else Mark.RIGHT
        yield "declined", CardCell(final.artefact.reason[:_MOST_MESSAGE] or "without a reason", mark)
    elif not seen.turn.gold.should_pass:
        yield "expected", "a refusal"
    execution = of_kind(seen.evidence, EXECUTION)
    in_form = _IN_FORM if seen.metrics.get("relaxations") not in (None, NONE) else {}
    if execution is not None:
        yield "returned", _said({**_OUTCOMES, **in_form}, execution.verdict)
        rejected = details_of(seen.evidence, VALIDATION).get("errors")
        if (message := execution.details.get("message")) and not rejected:
            yield "because", str(message)[:_MOST_MESSAGE]
    elif final is not None and isinstance(final.outcome, Failed):
        yield (
            str(final.outcome.error_class).replace("_", " "),
            CardCell(final.outcome.message[:_MOST_MESSAGE], Mark.WRONG),
        )
    yield from _ladder(of_kind(seen.evidence, EQUIVALENCE), execution, {**_DECIDED, **in_form})
    if sql is not None and accepted is not None:
        database = seen.case.context.database
        differing = differences(sql, accepted, database.dialect, database.schema).values()
        if differing:
            yield "the queries differ in", "; ".join(differing)[:_MOST_MESSAGE]
    yield from _validator(seen.evidence, blocked_is_right=not seen.turn.gold.should_pass)
    if told := _REASONS.get(str(seen.metrics.get("outcome_reason"))):
        yield f"by the headline {seen.turn.gold.options.headline}".replace("_", " "), CardCell(*told)
    yield from _contract(seen)
    if mode := seen.metrics.get("failure_mode"):
        yield "failure mode", str(mode).replace("_", " ")


def _contract(seen: SqlSeen) -> Iterator[tuple[str, Text]]:
    """Yields what must be overlooked for the answer to be right, and the line of a contract that would do so."""
    relaxations, insisted = (str(seen.metrics.get(name) or NONE) for name in ("relaxations", "insisted"))
    if insisted != NONE:
        yield "the question insists on", _spaced(insisted)
    if relaxations == NONE:
        return
    overlooked = seen.turn.gold.contract.overlooked([Relaxation(one) for one in insisted.split(", ") if one != NONE])
    missing = excess(ways_of(relaxations), overlooked)
    yield (
        "right if one overlooks",
        CardCell(_spaced(relaxations).replace(" | ", ", or "), None if missing else Mark.RIGHT),
    )
    if missing and seen.metrics.get("wrong_in") == FORM:
        yield "a contract that does", contract_line(missing)


def _spaced(label: str) -> str:
    return label.replace("_", " ")


def _ladder(found: Evidence | None, execution: Evidence | None, words: _Words) -> Iterator[tuple[str, Text]]:
    """Yields what decided whether the queries are equivalent, and on how many databases they were tested."""
    if found is None:
        return
    yield "do they mean the same", _said(words, str(found.details.get("rung")))
    message = str(found.details.get("message") or "")
    counterexample = found.details.get("counterexample")
    if counterexample is not None and _is_shipped(counterexample):  # the name of its file is a hash
        message = message.replace(str(counterexample["database"]), "the suite's database")
    if message and (execution is None or message != execution.details.get("message")):
        yield "reason", message[:_MOST_MESSAGE]
    if count := found.details.get("databases"):
        yield "generated databases tried", f"{count:,}"


def _is_shipped(counterexample: Json) -> bool:
    """Returns whether the counterexample is a database of the suite, for which only the results are stored."""
    return counterexample is not None and "tables" not in counterexample


def _said(words: _Words, word: str) -> CardCell:
    text, mark = words.get(word, (word, None))
    return CardCell(text, mark)


def _validator(evidence: Sequence[Evidence], *, blocked_is_right: bool) -> Iterator[tuple[str, Text]]:
    for error in details_of(evidence, VALIDATION).get("errors", [])[:3]:
        told = f"{error['category']}: {error['message']}"[:_MOST_MESSAGE]
        yield "the validator rejects it", CardCell(told, Mark.RIGHT if blocked_is_right else Mark.WRONG)


def _results(seen: SqlSeen, final: Attempt[SqlAnswer] | None, counterexample: Json) -> Iterator[BesideCard | TableCard]:
    """Yields both results on the suite's database if they differ; only the gold's rows if no rows were returned."""
    told = final.outcome.value if final is not None and isinstance(final.outcome, Ran) else {}
    execution = of_kind(seen.evidence, EXECUTION)
    verdict = execution.verdict if execution is not None else None
    expected = seen.expected_result
    if told.get("rows") is None:
        if expected is not None:
            yield _rows("Rows expected", expected)
    elif execution is not None and verdict == "different" and _is_shipped(counterexample):
        yield _on_shipped(counterexample, execution.details)
    elif verdict == "match":
        yield _rows("Rows returned, the same as expected", told)
    elif expected is not None:
        yield beside("Rows on the suite's database", _result(expected), _result(told), cell_text, as_compared=as_number)
    else:
        yield _rows("Rows returned", told)


def _rows(title: str, result: Mapping[str, Any]) -> TableCard:
    rows = [[cell_text(cell) for cell in row[:_MOST_COLUMNS]] for row in result["rows"][:_MOST_ROWS]]
    columns = [str(name)[:_MOST_CELL] for name in result["columns"][:_MOST_COLUMNS]]
    return TableCard(title, columns, rows, left_out=result["row_count"] - len(rows))


def _on_shipped(counterexample: Json, details: Mapping[str, Any]) -> BesideCard:
    """Returns both results; of long ones, the rows that only one has, as found when all rows were compared."""
    expected, returned = _result(counterexample["expected"]), _result(counterexample["generated"])
    title, remark = "Rows on the suite's database", ""
    if missing := details.get("missing"):
        extra = details["extra"]
        if missing["count"] or extra["count"]:
            expected, returned = _only(expected, missing), _only(returned, extra)
            remark = (
                f"Only rows that differ are shown: {missing['count']:,} of {expected.count:,} expected rows were not "
                f"returned as they should be, {extra['count']:,} of {returned.count:,} returned rows are not expected."
            )
        else:
            remark = "The same rows in another order."
    return beside(title, expected, returned, cell_text, remark=remark, as_compared=as_number)


def _only(result: ShownResult, kept: Mapping[str, Any]) -> ShownResult:
    rows = [tuple(map(_hashable, row)) for row in kept["rows"]]
    return ShownResult(result.columns, rows, result.count, kept["places"])


def _generated(counterexample: Json) -> Iterator[Card]:
    """Yields the generated database that tells the queries apart, and the results of both on it."""
    both = _result(counterexample["expected"]), _result(counterexample["generated"])
    yield beside("Rows on the counterexample below", *both, cell_text, as_compared=as_number)
    tables = counterexample["tables"]
    filled = {name: table for name, table in tables.items() if table["rows"]}
    cards = [_table(name, table) for name, table in [*filled.items()][:_MOST_TABLES]]
    further = len(filled) - len(cards)
    remarks = [f"{len(cards)} of {len(filled):,} tables with rows shown."] if further else []
    if empty := [name for name in tables if name not in filled]:
        remarks.append(f"Without rows: {', '.join(empty[:_MOST_TABLES])}{', …' if len(empty) > _MOST_TABLES else ''}.")
    remark = " ".join(["It keeps every constraint of the schema.", *remarks])
    yield BesideCard("The counterexample: a small database on which the queries differ", cards, remark)


def _table(name: str, table: Mapping[str, Any]) -> TableCard:
    rows = [[cell_text(cell) for cell in row[:_MOST_COLUMNS]] for row in table["rows"][:_MOST_ROWS]]
    cut = len(table["columns"]) > _MOST_COLUMNS
    remark = f"{_MOST_COLUMNS} of {len(table['columns']):,} columns shown." if cut else ""
    columns = [str(column)[:_MOST_CELL] for column in table["columns"][:_MOST_COLUMNS]]
    return TableCard(name[:_MOST_CELL], columns, rows, remark, left_out=len(table["rows"]) - len(rows))


def _result(told: Mapping[str, Any]) -> ShownResult:
    rows = [tuple(map(_hashable, row)) for row in told["rows"]]
    return ShownResult([str(name)[:_MOST_CELL] for name in told["columns"]], rows, told["row_count"])


def _hashable(cell: Json) -> Hashable:
    return json_text(cell) if isinstance(cell, list | dict) else cell


def as_number(cell: Hashable) -> Hashable:
    """Returns a decimal, which is stored as text, as the number that it is."""
    return Decimal(cell) if isinstance(cell, str) and _DECIMAL.fullmatch(cell) else cell


def cell_text(cell: Any) -> str:
    """Returns a cell in the form that SQL tools use."""
    if cell is None:
        return "NULL"
    if isinstance(cell, bool):
        return str(cell).lower()
    text = cell if isinstance(cell, str) else json_text(cell)
    return text if len(text) <= _MOST_CELL else f"{text[:_MOST_CELL]}…"
