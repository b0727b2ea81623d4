"""Writes the data of an exported evaluation's list as a file that the page loads as a script.

A page opened from disk can load scripts but cannot fetch data. As all texts may come from a model, the file is ASCII
without `<`, so that no text can end the script or a line; the page inserts every text as plain text.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.shown import visible_text
from eval_pipeline.reports.places.paths import turn_page
from eval_pipeline.reports.queries import KIND
from eval_pipeline.reports.shown import short
from eval_pipeline.view.evaluation import StoredEvaluation
from eval_pipeline.view.filtering.only import of_evaluation
from eval_pipeline.view.published import Row, StoreView

MOST_TURNS = 5_000
MOST_SEARCHED = 4_000
"""The most characters of a text that the search covers."""
_SEARCHED = ("question", "expected", "answer", "responses", "errors")
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\x7f": "\\u007f"})


@dataclass(frozen=True, slots=True)
class ExportedTurns:
    """The turns that are exported.

    Attributes:
        rows: what the list shows of each turn, in the suite's order.
        of: how many turns the evaluation has.
    """

    rows: Sequence[Row]
    of: int

    @property
    def text(self) -> str:
        """A sentence on how many of the turns are exported."""
        if len(self.rows) == self.of:
            return "The only turn of the evaluation." if self.of == 1 else f"All {self.of:,} turns of the evaluation."
        return (
            f"{len(self.rows):,} of {self.of:,} turns: a folder takes {MOST_TURNS:,} at most, so these were drawn at "
            "random, each turn as likely as any other; shares among them are fair estimates of those of all."
        )


def chosen_turns(look: StoreView, evaluation: StoredEvaluation, most: int = MOST_TURNS) -> ExportedTurns:
    """Returns all turns of an evaluation if they are few, otherwise always the same representative sample."""
    where = of_evaluation(evaluation, "r")
    # The hash of an id is independent of the turn's content and of its answer, so the smallest hashes are a fair
    # sample.
    rows = look.rows(
        f"""WITH drawn AS (
            SELECT r.* FROM turn_results AS r WHERE {where}
            ORDER BY md5(r.turn_id || '~' || r.sample), r.turn_id, r.sample LIMIT {most}
        ), said AS (
            SELECT a.turn_id, a.sample, string_agg(left(a.response, {MOST_SEARCHED}), chr(10) ORDER BY a.number)
                AS responses, string_agg(left(a.error_message, {MOST_SEARCHED}), chr(10) ORDER BY a.number) AS errors
            FROM attempts AS a SEMI JOIN drawn AS d ON d.turn_id = a.turn_id AND d.sample = a.sample
            WHERE {of_evaluation(evaluation, "a")} GROUP BY a.turn_id, a.sample
        )
        SELECT r.turn_id, r.case_id, r.turn_index, r.sample, r.correct, r.tags,
            left(r.question, {MOST_SEARCHED}) AS question, left(r.expected, {MOST_SEARCHED}) AS expected,
            left(r.answer, {MOST_SEARCHED}) AS answer, {KIND} AS kind,
            left(said.responses, {MOST_SEARCHED}) AS responses, left(said.errors, {MOST_SEARCHED}) AS errors
        FROM drawn AS r
        LEFT JOIN turn_errors AS e
            ON {of_evaluation(evaluation, "e")} AND e.turn_id = r.turn_id AND e.sample = r.sample
        LEFT JOIN said ON said.turn_id = r.turn_id AND said.sample = r.sample
        ORDER BY r.case_id, r.turn_index, r.sample"""
    )
    counted = look.rows(f"SELECT count(*) AS turns FROM turn_results AS r WHERE {where}")
    return ExportedTurns(rows, int(counted[0]["turns"]))


def data_script(turns: Sequence[Row]) -> str:
    """Returns the content of the file: the assignment of one list."""
    return f"globalThis.exportedTurns = {script_json([_entry(row) for row in turns])};\n"


def script_json(value: Any) -> str:
    """Returns JSON that is safe within a script or a page's element.

    It is ASCII without characters that could end either.
    """
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).translate(_ESCAPED)


def _entry(row: Row) -> Mapping[str, Any]:
    place = f"{row['case_id']} #{row['turn_index']}" + (f" ~{row['sample']}" if row["sample"] else "")
    verdict = "unscored" if row["correct"] is None else "right" if row["correct"] else "wrong"
    return {
        "page": turn_page(row["turn_id"], row["sample"]),
        "place": _shown(place),
        "question": _shown(row["question"]),
        "expected": _shown(row["expected"]),
        "answer": _shown(row["answer"]),
        "verdict": verdict,
        "kind": visible_text(row["kind"] or ""),
        "tags": [_shown(str(tag)) for tag in parse_json(row["tags"] or "[]")],
        "text": "\n".join([place, *(visible_text(row[name]) for name in _SEARCHED if row[name])]).lower(),
    }


def _shown(text: str | None) -> str:
    """Returns a text for a cell, with control characters made visible."""
    return short(visible_text(text or ""))
