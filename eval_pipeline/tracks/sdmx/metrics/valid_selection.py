"""Whether the catalogue has everything that was selected."""

from eval_pipeline.tracks.metric import Metric


def valid_selection(answered: bool) -> bool:
    """Returns whether the final attempt could be read and names only data sets, dimensions and codes that exist."""
    return answered


METRIC = Metric(
    "valid_selection",
    valid_selection,
    "boolean",
    "A selection was read and the catalogue has all data sets, dimensions and codes that it names; NULL: not scored.",
)
