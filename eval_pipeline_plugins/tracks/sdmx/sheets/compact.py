"""The sheet `Overview, compact`: one row per case with what is wrong only, the worst cases first."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet
from eval_pipeline.reports.excel.looks import INTEGER, WHOLE
from eval_pipeline.reports.queries import table_query
from eval_pipeline_plugins.tracks.sdmx import tables
from eval_pipeline_plugins.tracks.sdmx.sheets.details import REASONS
from eval_pipeline_plugins.tracks.sdmx.sheets.overview import rows_of_cases

if TYPE_CHECKING:
    from eval_pipeline.reports.evaluation import Evaluation, Row


_SAID = {"fn": "missing", "fp": "extra"}
_MOST_TERMS = 12
Turn = tuple[str, int]


def mistake_texts(evaluation: "Evaluation") -> dict[Turn, str]:
    """Returns for each turn and sample with a missing or extra term a line for each data set and dimension."""
    terms: defaultdict[Turn, defaultdict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(dict))
    for row in evaluation.rows(tables.TERMS):
        if (said := _SAID.get(row["verdict"])) is not None:
            place = f"{row['dataset_id']} {row['dimension']}"
            terms[row["turn_id"], row["sample"]][place].setdefault(said, []).append(_term(row))
    return {turn: "\n".join(_line(place, found) for place, found in places.items()) for turn, places in terms.items()}


def _line(place: str, found: dict[str, list[str]]) -> str:
    return f"{place}: " + "; ".join(f"{said} {_listed(found[said])}" for said in _SAID.values() if said in found)


def _listed(terms: list[str]) -> str:
    more = len(terms) - _MOST_TERMS
    return ", ".join(terms[:_MOST_TERMS]) + (f" and {more:,} more" if more > 0 else "")


def _term(row: "Row") -> str:
    name = " ".join(row["name"].split())
    shown = f"{row['id']} ({name})" if name and name != row["id"] else row["id"]
    return f"{shown} [{REASONS[row['doubt']]}]" if row["doubt"] in REASONS else shown


TITLE = "Overview, compact"
_MEANS = (
    'case_id AS id, "sample", count(*) AS turns, count(*) FILTER (correct) AS exact, '
    "coalesce(sum(false_negatives), 0)::BIGINT AS missing, coalesce(sum(false_positives), 0)::BIGINT AS extra, "
    'avg(macro_recall) AS "macro recall", avg(macro_precision) AS "macro precision"'
)
_SAMPLE = Field("sample", 9, WHOLE)
_FIELDS = (
    Field("name", 34),
    Field("tags", 20, wrap=True),
    Field("turns", 8, INTEGER),
    Field("exact", 8, INTEGER),
    Field("missing", 9, INTEGER),
    Field("extra", 8, INTEGER),
    Field("macro recall", 10, "0.00", rate=True),
    Field("macro precision", 10, "0.00", rate=True),
    Field("what is wrong", 100, wrap=True),
    Field("id", 38),
)


def write_compact(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    fields = [*_FIELDS[:1], *([_SAMPLE] if evaluation.several_samples else []), *_FIELDS[1:]]
    sql = table_query(evaluation.partition, "sdmx_turns", _MEANS, "GROUP BY ALL")
    book.add_query(TITLE, "all rows", sql)
    rows = rows_of_cases(evaluation, sql, partial(_told, mistake_texts(evaluation)))
    worst = sorted(rows, key=lambda row: (row["exact"] == row["turns"], -(row["missing"] + row["extra"])))
    write_long_sheet(book, TITLE, fields, worst, frozen=1)


def _told(wrong: Mapping[Turn, str], found: Sequence[Row]) -> Row:
    return {"what is wrong": "\n".join(_of_turns(found, wrong))}


def _of_turns(found: Sequence[Row], wrong: Mapping[Turn, str]) -> Iterator[str]:
    for row in found:
        if text := wrong.get((row["turn_id"], row["sample"])):
            yield f"Turn {row['turn_index'] + 1}:\n{text}" if len(found) > 1 else text
