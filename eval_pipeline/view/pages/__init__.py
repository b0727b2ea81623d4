"""The pages of the workbench. To add one, add a module with `PAGES` here and a line in the tuple."""

from eval_pipeline.view.page import Page
from eval_pipeline.view.pages import compare, download, home, matrix, review, reviews, runs, turn, turns

PAGES: tuple[Page, ...] = (
    *home.PAGES,
    *turns.PAGES,
    *download.PAGES,
    *turn.PAGES,
    *reviews.PAGES,
    *review.PAGES,
    *compare.PAGES,
    *matrix.PAGES,
    *runs.PAGES,
)
