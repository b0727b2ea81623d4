"""Writes all files of a comparison's folder."""

from pathlib import Path

from eval_pipeline.reports.comparison.book import write_comparison_book
from eval_pipeline.reports.comparison.page import write_comparison_page
from eval_pipeline.reports.comparison.suite import SuiteComparison
from eval_pipeline.reports.files.flat_files import write_flat
from eval_pipeline.store.tables import MODEL_COMPARISONS, TRENDS


def write_comparison_files(compared: SuiteComparison, folder: Path) -> None:
    """Writes page, charts and workbook, and the two tables as Parquet and CSV."""
    write_flat(compared.comparisons, folder, MODEL_COMPARISONS.name)
    write_flat(compared.trends, folder, TRENDS.name)
    write_comparison_book(compared, folder)
    write_comparison_page(compared, folder)
