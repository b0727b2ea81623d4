"""The sheet `Gold`: figures with and without overrides, the overrides, and the suspects."""

from collections.abc import Sequence

from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.looks import COUNT, NOTE, PERCENT, PLAIN, WRAPPED, Look, Styled
from eval_pipeline.reports.excel.page import Page
from eval_pipeline.reports.gold import (
    READING,
    Row,
    data_text,
    edition_text,
    editions_query,
    overrides_query,
    suite_editions_query,
    suspects_query,
    undecided,
    with_and_without,
)

TITLE = "Gold"
WIDTHS = (40, 12, 14, 26, 26, 12, 90)
_RATE = Look(PERCENT)


def write_gold(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet for one evaluation."""
    part = evaluation.partition
    page = Page(book, TITLE, WIDTHS)
    page.title("The gold: its editions, overrides and suspects", READING)
    for name, text in (
        ("Edition of the gold", edition_text(evaluation.editions)),
        ("Edition of the data set", data_text(evaluation.editions)),
    ):
        page.fact(name, text or "not on record")
    page.section("Figures with and without overrides")
    if pairs := with_and_without(evaluation.editions):
        page.table(["figure", "with", "without", "n with", "n without"], [_pair(*pair) for pair in pairs])
        page.query("Figures with and without overrides", editions_query(part))
    else:
        page.note("No turn of this evaluation is overridden.")
    if evaluation.overrides:
        page.section("Overridden gold")
        page.table(
            ["turn", "action", "who", "published", "overridden", "", "why"], list(map(_override, evaluation.overrides))
        )
        page.query("Overridden gold", overrides_query(part.suite))
    write_suspects(page, part.suite, evaluation.suspects)


def write_suspects(page: Page, suite: str, suspects: Sequence[Row]) -> None:
    """Writes all suspects that nobody has decided on yet."""
    page.section("Suspected gold")
    page.query("Editions", suite_editions_query(suite))
    found = undecided(suspects)
    if not found:
        page.note("Nothing speaks against the gold of any turn that nobody has decided on.")
        return
    headers = ["turn", "score", "reason", "expected", "agreed answer", "model versions", "evidence"]
    page.table(headers, [_suspect(row) for row in found])
    page.query("Suspected gold", suspects_query(suite))


def _pair(scored: Row, published: Row) -> list[Styled]:
    return [
        (scored["metric"], PLAIN), (scored["mean"], _RATE), (published["mean"], _RATE), (scored["n"], COUNT),
        (published["n"], COUNT),
    ]  # fmt: skip


def _override(row: Row) -> list[Styled]:
    return [
        (row["turn_id"], PLAIN), (row["action"], PLAIN), (row["who"], PLAIN), (row["published"], WRAPPED),
        (row["overridden"], WRAPPED), (None, PLAIN), (row["why"], WRAPPED),
    ]  # fmt: skip


def _suspect(row: Row) -> list[Styled]:
    return [
        (row["turn_id"], PLAIN), (row["turn_score"], Look("0.00")), (row["reason"], NOTE), (row["expected"], WRAPPED),
        (row["agreed_answer"], WRAPPED), (row["model_versions"], COUNT), (row["evidence"], WRAPPED),
    ]  # fmt: skip
