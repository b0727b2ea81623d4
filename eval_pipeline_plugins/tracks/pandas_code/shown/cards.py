"""Makes the cards that show a turn: results and code next to the expected ones, and what is wrong."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from eval_pipeline.core.model import Attempt, Evidence, Failed, Json, Ran
from eval_pipeline.core.shown import rate
from eval_pipeline.table_comparison.contracts import NONE
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
)
from eval_pipeline.tracks.shown.results_beside import ShownResult, beside
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasContext, PandasGold
from eval_pipeline_plugins.tracks.pandas_code.cases.expected import known_result
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code
from eval_pipeline_plugins.tracks.pandas_code.results.reading import cell_text, columns_of, result_text
from eval_pipeline_plugins.tracks.pandas_code.running.evidence import MATCH, QUALITY, RESULT, VARIANTS, of_kind
from eval_pipeline_plugins.tracks.pandas_code.running.execute import answer_text

_MOST_TEXT, _MOST_FINDINGS = 1000, 30
_LINE = re.compile(r"\(line (\d{1,6})\)\s*\Z")

PandasSeen = Seen[PandasContext, PandasGold, Code]


def turn_cards(seen: PandasSeen) -> list[Card]:
    """Returns the cards of a turn; if there is no attempt, the reference code."""
    return [*_cards(seen, seen.attempts[-1] if seen.attempts else None)]


def both_results(seen: PandasSeen) -> BesideCard:
    """Returns the results of the gold and of the answer, without marks."""
    final = seen.attempts[-1] if seen.attempts else None
    told = final.outcome.value if final is not None and isinstance(final.outcome, Ran) else None
    expected = known_result(seen.turn.gold) if seen.turn.gold.tests is None else None
    cards = [] if expected is None else [CodeCard("Gold", result_text(expected))]
    if told is None:
        message = final.outcome.message if final is not None and isinstance(final.outcome, Failed) else "no result"
        cards.append(CodeCard("Answer", message[:_MOST_TEXT]))
    else:
        cards.append(CodeCard("Answer", answer_text(told)))
    return BesideCard("Results", cards)


def _cards(seen: PandasSeen, final: Attempt[Code] | None) -> Iterator[Card]:
    gold = seen.turn.gold
    if facts := [*_facts(seen, final)]:
        yield FactsCard("Verdict", facts)
    if gold.answers:
        yield _closed(seen)
    else:
        yield from _results(gold, final)
    if facts := [*_explained(seen)]:
        yield FactsCard("Variants of the tables", facts)
    yield from _counterexample(seen)
    yield from _codes(gold, final)
    if gold.tests is not None:
        yield CodeCard("Tests that decide", gold.tests, "python")
    yield from _findings(seen)


def _facts(seen: PandasSeen, final: Attempt[Code] | None) -> Iterator[tuple[str, Text]]:
    found = of_kind(seen.evidence, RESULT)
    if found is not None:
        yield from _result_facts(seen, found)
    elif final is not None and isinstance(final.outcome, Failed):
        yield "no code", CardCell(final.outcome.message[:_MOST_TEXT], Mark.WRONG)
    if final is not None and final.artefact is not None and final.artefact.notes:
        yield "read from the response", "; ".join(final.artefact.notes)[:_MOST_TEXT]
    if seen.turn.gold.ordered:
        keys = ", ".join(seen.turn.gold.order_keys)
        yield "order of rows", f"counts, by {keys}" if keys else "counts"
    if mode := seen.metrics.get("failure_mode"):
        yield "failure mode", str(mode).replace("_", " ")


def _result_facts(seen: PandasSeen, found: Evidence) -> Iterator[tuple[str, Text]]:
    mark = Mark.RIGHT if found.verdict == MATCH else Mark.WRONG
    word = {"match": "the expected one", "different": "another one", "error": "none", "no_gold": "not compared"}
    yield "result", CardCell(word.get(found.verdict, found.verdict), None if found.verdict == "no_gold" else mark)
    if (needs := seen.metrics.get("relaxations")) not in (None, NONE):
        yield "right if one overlooks", str(needs).replace("_", " ").replace(" | ", ", or ")
    if message := str(found.details.get("message") or ""):
        yield "because", message[:_MOST_TEXT]
    if told := found.details.get("versions"):
        yield "run with", ", ".join(f"{name} {number}" for name, number in told.items())
    for name in ("precision", "recall"):
        if found.verdict == "different" and (share := found.details.get(name)) is not None:
            what = "its cells that are expected" if name == "precision" else "expected cells that it has"
            yield what, rate(share)


def _explained(seen: PandasSeen) -> Iterator[tuple[str, Text]]:
    """Returns a card on the mistakes that explain an answer, as shown by its results on variants of the tables."""
    found = of_kind(seen.evidence, VARIANTS)
    if found is None:
        return
    right, count = found.details["right"], found.details["variants"]
    if count:
        yield (
            "right on",
            CardCell(f"{right} of {count}", Mark.RIGHT if right == count else Mark.WRONG),
        )
    met = found.details["met"]
    if met is not None and met["words"]:
        yield "mistakes", "; ".join(met["words"])[:_MOST_TEXT]


def _closed(seen: PandasSeen) -> TableCard:
    """Returns the closed answers by name."""
    found = of_kind(seen.evidence, RESULT)
    details: Mapping[str, Any] = found.details if found is not None else {}
    given, right = details.get("given", {}), details.get("right", {})
    rows: list[list[Text]] = []
    for name, wanted in seen.turn.gold.answers.items():
        mark = Mark.RIGHT if right.get(name) else Mark.WRONG if name in given else Mark.MISSING
        rows.append([name[:_MOST_TEXT], wanted[:_MOST_TEXT], CardCell(str(given.get(name, "none"))[:_MOST_TEXT], mark)])
    return TableCard("Answers", ["name", "expected", "given"], rows, row_headers=True)


def _results(gold: PandasGold, final: Attempt[Code] | None) -> Iterator[Card]:
    """Yields both results, or the one that is known.

    Of results that were too large for the record, only the first rows are shown.
    """
    expected = known_result(gold) if gold.tests is None else None
    told = final.outcome.value if final is not None and isinstance(final.outcome, Ran) else None
    if told is None:
        if expected is not None:
            yield CodeCard("Expected result", result_text(expected))
        return
    returned = told.get("result")
    if expected is not None and returned is not None:
        yield beside("Results", _shown(expected), _shown(returned), cell_text, ("Expected", "Result"))
        return
    known = str(told["shown"]) if returned is None else result_text(returned)
    cards = [] if expected is None else [CodeCard("Expected", result_text(expected))]
    remark = "The result was too large to be kept: its first rows, without marks." if returned is None else ""
    yield BesideCard("Results", [*cards, CodeCard("Result", known)], remark)


def _counterexample(seen: PandasSeen) -> Iterator[Card]:
    """Yields small tables on which the answer's code gives another result than the reference code."""
    found = of_kind(seen.evidence, VARIANTS)
    told: Mapping[str, Any] | None = found.details.get("counterexample") if found is not None else None
    if found is None or told is None:
        return
    wrong = int(found.details["variants"]) - int(found.details["right"])
    is_input = seen.turn.gold.tests is not None
    cards = [CodeCard("Input" if is_input else f"Table {name}", str(text)) for name, text in told["tables"].items()]
    cards += [CodeCard("Expected", str(told["expected"])), CodeCard("Returned", str(told["returned"]))]
    remark = f"The code is wrong on {wrong} of {found.details['variants']} variants of the tables. The smallest found:"
    if is_input:
        remark = "The code is wrong on an input that the tests do not have:"
    yield BesideCard("Counterexample", cards, remark)


def _shown(result: Json) -> ShownResult:
    """Returns a result as columns and rows; a result that is no such data is shown as text."""
    try:
        names, columns = columns_of(result)
        rows: list[tuple[Hashable, ...]] = list(zip(*columns, strict=True))
    except (LookupError, TypeError, ValueError):
        return ShownResult(["result"], [(str(result)[:_MOST_TEXT],)], 1)
    return ShownResult(names, rows, len(rows))


def _codes(gold: PandasGold, final: Attempt[Code] | None) -> Iterator[Card]:
    code = final.artefact.code if final is not None and final.artefact is not None else ""
    failed = final.outcome if final is not None and isinstance(final.outcome, Failed) else None
    if code and failed is not None and (match := _LINE.search(failed.message)):
        line = int(match[1])
        remark = f"Line {line:,} fails: {failed.message}"[:_MOST_TEXT]
        yield CodeCard("Where it fails", code, "python", remark, {line: Mark.WRONG})
    if code and gold.code is not None:
        yield DifferenceCard("Code", "Reference", gold.code, "Answer", code)
    elif code or gold.code is not None:
        yield CodeCard("Code of the answer" if code else "Reference code", code or gold.code or "", "python")


def _findings(seen: PandasSeen) -> Iterator[Card]:
    found = of_kind(seen.evidence, QUALITY)
    findings: Sequence[Mapping[str, Any]] = found.details.get("findings", []) if found is not None else []
    if findings:
        rows = [[str(one["line"]), str(one["rule"]), str(one["message"])[:_MOST_TEXT]] for one in findings]
        left_out = max(len(rows) - _MOST_FINDINGS, 0)
        columns = ["line", "rule", "finding"]
        yield TableCard("What a linter finds", columns, rows[:_MOST_FINDINGS], row_headers=True, left_out=left_out)
