"""The sheet `Statistics`: macro precision and recall of the suite, overall and by tag, dimension and data set."""

from collections.abc import Iterator, Mapping

from eval_pipeline.reports.contents.facts import SIMULATED, turns_of_cases
from eval_pipeline.reports.evaluation import ALL, Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.looks import COUNT, NOTE, PLAIN, WARNING, CellLook, Styled
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.printing import fit_to_width
from eval_pipeline.reports.queries import statistics_query, table_query
from eval_pipeline_plugins.tracks.sdmx import tables
from eval_pipeline_plugins.tracks.sdmx.sheets.figures import (
    METRICS,
    PREFIX,
    READING,
    TITLE,
    candidate_recalls,
    recalls_query,
)

SECTION = "Data Query Metrics"
_WIDTHS = (38, 16, 12, 12, 10, 16, 12, 12, 10, 60)
_OF_RATES = ", ".join(f"'{prefix}{metric}'" for prefix in (PREFIX, "") for metric in METRICS)
_TERMS = (
    "coalesce(sum(true_positives), 0)::BIGINT AS true_positives, "
    "coalesce(sum(false_positives), 0)::BIGINT AS false_positives, "
    "coalesce(sum(false_negatives), 0)::BIGINT AS false_negatives"
)
_RATE = CellLook("0.000")
_BOLD = CellLook("0.000", bold=True)
_COUNTED = {
    "tag": "Means of cases with the tag.",
    "dimension": "Means of cases; a case counts with the mean over its turns and data sets with that dimension.",
    "data_set": "Means of cases; a case counts with the mean over its turns and the data set's dimensions, so that "
    "a data set with many dimensions is many pairs. The sheet By dimension counts turns and terms instead.",
}
_SPLITS = (("tag", "By tag"), ("dimension", "By dimension"), ("data_set", "By data set"))


def write_statistics(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    partition = evaluation.partition
    page = SheetWriter(book, "Statistics", _WIDTHS)
    fit_to_width(page.sheet, "portrait", pages=1)
    page.title(
        f"{partition.suite} · {partition.model_version}",
        f"Evaluation of {partition.eval_date.isoformat()} · {turns_of_cases(evaluation)}",
        "Means of cases, where each counts with the mean over its turns; means of turns have a table of their own.",
    )
    if evaluation.case_counts.left_out:
        page.band(f"CASES LEFT OUT: {evaluation.case_counts.text()}", WARNING)
    if evaluation.simulated:
        page.band(SIMULATED, WARNING)
    rates = statistics_query(partition, f"metric IN ({_OF_RATES})")
    rows = {(row["metric"], row["split"], row["split_value"]): row for row in evaluation.query(rates)}
    page.section(SECTION)
    for counted, prefix in (("cases", PREFIX), ("turns", "")):
        headers = ["metric", f"mean of {counted}", "95% low", "95% high", counted, "note"]
        page.table(headers, [_overall(metric, rows[prefix + metric, ALL, ALL]) for metric in METRICS])
        page.blank()
    page.query("Rates", rates)
    for split, title in _SPLITS:
        groups = list(dict.fromkeys(value for _, found, value in rows if found == split))
        page.section(title)
        page.note(_COUNTED[split])
        headers = [split.replace("_", " "), "macro precision", "95% low", "95% high", "cases"]
        headers += ["macro recall", "95% low", "95% high", "cases"]
        page.table(headers, list(_group_rows(rows, split, groups)))
    recalls = candidate_recalls(evaluation)
    if recalls:
        page.section(TITLE)
        page.note(READING)
        headers = ["dimension", "first candidates", "recall", "95% low", "95% high", "cases"]
        page.table(headers, list(_recall_rows(recalls)))
        page.query(TITLE, recalls_query(partition))
    page.section("Terms")
    sql = table_query(partition, tables.DIMENSIONS.name, _TERMS)
    (terms,) = evaluation.query(sql)
    page.table(["count", "terms"], [[(name.replace("_", " "), PLAIN), (terms[name], COUNT)] for name in terms])
    page.query("Terms", sql)
    page.note("Every metric over turns, with its splits, is on the sheet All statistics.")


def _overall(metric: str, row: Row) -> list[Styled]:
    return [
        (metric.replace("_", " "), PLAIN), (row["mean"], _BOLD), (row["low"], _RATE), (row["high"], _RATE),
        (row["n"], COUNT), (row["reason"], NOTE),
    ]  # fmt: skip


def _group_rows(rows: dict[tuple[str, str, str], Row], split: str, groups: list[str]) -> Iterator[list[Styled]]:
    for group in groups:
        precision, recall = (rows.get((PREFIX + name, split, group)) for name in METRICS[:2])
        if precision is None or recall is None:
            continue
        cells: list[Styled] = [(group, PLAIN)]
        for row in (precision, recall):
            cells += [(row["mean"], _BOLD), (row["low"], _RATE), (row["high"], _RATE), (row["n"], COUNT)]
        yield cells


def _recall_rows(recalls: Mapping[str, Mapping[int, Row]]) -> Iterator[list[Styled]]:
    for name, found in recalls.items():
        for most, row in found.items():
            yield [
                (name, PLAIN), (most, COUNT), (row["mean"], _BOLD), (row["low"], _RATE), (row["high"], _RATE),
                (row["n"], COUNT),
            ]  # fmt: skip
