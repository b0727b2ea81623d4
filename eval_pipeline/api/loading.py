"""`ep.load`: the published store as DataFrames, with what other hosts have published."""

from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.api.homes import at_home
from eval_pipeline.core.home import find_home
from eval_pipeline.store.published.loading import Frames, load
from eval_pipeline.workspace.homes.places import place_of

if TYPE_CHECKING:
    import pandas as pd


def loaded(what: str | None, model_version: str | None, home: str | Path | None) -> "pd.DataFrame | Frames":
    """Implements `eval_pipeline.load`, with its arguments and errors."""
    if home is None:
        home = place_of(find_home()).fresh_store()
    elif "://" in str(home):
        with at_home(home) as found:
            home = place_of(found).fresh_store()
    return load(what, model_version, home=home)
