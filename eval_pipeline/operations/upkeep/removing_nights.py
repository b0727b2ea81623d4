"""Updates the pages of nights after a model version was removed."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from html import escape
from pathlib import Path

from eval_pipeline.core.errors import StoreError
from eval_pipeline.reports.nights.night import read_night
from eval_pipeline.reports.nights.page import write_night
from eval_pipeline.reports.places.paths import nights_folder
from eval_pipeline.store.durable import fsync_path
from eval_pipeline.workspace.workspace import Workspace


def tell_nights_again(workspace: Workspace, name: str, first: str) -> None:
    """Makes the pages of nights that name a removed model version again; removes those of which nothing is left.

    The page of a night lists runs of Dagster that failed before they evaluated anything. The record does not have them,
    so a page that is made again does not list them.

    Args:
        workspace: the workspace, from which the model version has been removed already.
        name: the model version.
        first: date of its first evaluation, as ISO text; earlier pages cannot name it.

    Raises:
        StoreError: a page cannot be written or removed.
    """
    for day, page in _pages_with(workspace, name, first):
        try:
            night = read_night(workspace.record, day)
            if night.evaluated:
                write_night(night, workspace.home.reports)
            else:
                page.unlink()
                fsync_path(page.parent)
        except OSError as error:
            raise StoreError(f"cannot update {page}: {error.strerror or error}") from error


def _pages_with(workspace: Workspace, name: str, first: str) -> Iterator[tuple[date, Path]]:
    """Yields date and path of the pages whose text has the name, which may be part of a longer one."""
    for page in sorted(nights_folder(workspace.home.reports).glob("*.html")):
        with suppress(ValueError):  # something else that lies there
            day = date.fromisoformat(page.stem)
            if page.stem >= first and any(form in page.read_text("utf-8", "replace") for form in (name, escape(name))):
                yield day, page
