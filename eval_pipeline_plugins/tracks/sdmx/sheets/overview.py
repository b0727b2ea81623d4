"""The sheet `Overview`: one row per case (and per sample, if turns were asked more than once)."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet
from eval_pipeline.reports.excel.looks import WHOLE
from eval_pipeline.reports.queries import table_query
from eval_pipeline.store import tables as store_tables
from eval_pipeline_plugins.tracks.sdmx import tables
from eval_pipeline_plugins.tracks.sdmx.sheets.details import Block, conversation_text, details_text

_MOST_LINES = 30
_MEANS = 'case_id AS id, "sample", avg(macro_recall) AS "macro recall", avg(macro_precision) AS "macro precision"'
_SAMPLE = Field("sample", 9, WHOLE)
_FIELDS = (
    Field("id", 38),
    Field("name", 30),
    Field("tags", 20, wrap=True),
    Field("question", 48, wrap=True),
    Field("macro recall", 10, "0.00", rate=True),
    Field("macro precision", 10, "0.00", rate=True),
    Field("indicator selection details", 90, wrap=True),
)


def write_overview(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    several = evaluation.several_samples
    sql = table_query(evaluation.partition, "sdmx_turns", _MEANS, "GROUP BY ALL")
    book.add_query("Overview", "all rows", sql)
    book.add_query("Overview", "terms in the details", table_query(evaluation.partition, tables.TERMS.name))
    rows = rows_of_cases(evaluation, sql, partial(_told, _blocks(evaluation)))
    fields = [_FIELDS[0], *([_SAMPLE] if several else []), *_FIELDS[1:]]
    write_long_sheet(book, "Overview", fields, rows, frozen=2, most_lines=_MOST_LINES)


def rows_of_cases(evaluation: Evaluation, sql: str, told: Callable[[Sequence[Row]], Row]) -> Iterator[Row]:
    """Yields a row per case and sample: figures, name, tags, and what is told of its turns.

    Args:
        evaluation: the evaluation.
        sql: the query for the figures, with `id` and `sample`.
        told: returns further values from the rows of the turns in `turn_results`.
    """
    turns: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in evaluation.results.select(["case_id", "sample", "turn_id", "turn_index", "question"]).to_pylist():
        turns[row["case_id"], row["sample"]].append(row)
    means = {(row["id"], row["sample"]): row for row in evaluation.query(sql)}
    cases = {row["case_id"]: row for row in evaluation.rows(store_tables.CASES)}
    for (case_id, sample), found in turns.items():
        case = cases[case_id]
        named = {"name": json.loads(case["content"])["name"], "tags": ", ".join(json.loads(case["tags"]))}
        yield means[case_id, sample] | named | told(found)


def _told(blocks: Mapping[tuple[str, int], Sequence[Block]], found: Sequence[Row]) -> Row:
    turns = [(row["question"], blocks.get((row["turn_id"], row["sample"]), [])) for row in found]
    details = details_text(turns[0][1]) if len(turns) == 1 else conversation_text(turns)
    return {"question": "\n".join(question for question, _ in turns), "indicator selection details": details}


def _blocks(evaluation: Evaluation) -> dict[tuple[str, int], Sequence[Block]]:
    """Returns the blocks of each turn and sample, in the order of target and selection."""
    terms: defaultdict[tuple[str, int, str, str], list[tuple[str, str, str, str | None]]] = defaultdict(list)
    for row in evaluation.rows(tables.TERMS):
        place = (row["turn_id"], row["sample"], row["dataset_id"], row["dimension"])
        terms[place].append((row["verdict"], row["id"], row["name"], row["doubt"]))
    found: defaultdict[tuple[str, int], list[Block]] = defaultdict(list)
    for row in evaluation.rows(tables.DIMENSIONS):
        turn, sample, data_set, dimension = row["turn_id"], row["sample"], row["dataset_id"], row["dimension"]
        found[turn, sample].append(
            Block(
                data_set,
                dimension,
                row["target"] == "given",
                row["precision"],
                row["recall"],
                tuple(terms[turn, sample, data_set, dimension]),
            )
        )
    return dict(found)
