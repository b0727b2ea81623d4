"""What is always known of a track, so that nobody has to load what it does to know its names, columns and tables."""

from collections.abc import Mapping

from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.tracks.metric import Metric


class Manifest:
    """The names, columns and tables of a track: plain values, each an attribute, as fingerprints go by definitions.

    A track that is one class (a `Task`) is its own manifest. One that is large has a manifest apart, from which its
    task derives as well; the entry point then names the manifest, and tasks are loaded when a suite of theirs is used.

    Attributes:
        name: of the track, as in `suite.yaml`.
        task: place of the `Task`, `module:name`; empty if this is one.
        metrics: in the order of computation.
    """

    name: str
    task: str = ""
    metrics: tuple[Metric, ...]
    feature_columns: tuple[Column, ...] = ()
    """Features of cases and turns with a column of their own in `<track>_turns`.

    Results are split by the boolean ones.
    """
    turn_columns: tuple[Column, ...] = ()
    """Further columns of `<track>_turns`, filled by `turn_row`."""
    error_columns: tuple[str, ...] = ()
    """Columns of `<track>_turns` to show with errors beside the features; they come first, in this order."""
    suite_tables: tuple[Table, ...] = ()
    """Tables, with one file per suite, of what its cases share (`Shares`)."""
    turn_tables: tuple[Table, ...] = ()
    """Tables of its own with rows about turns (`Tabulates`)."""
    reason_tells_difference: bool = False
    """Whether the reason of the primary metric says in what a wrong answer differs; else `difference` does."""
    prompt_versions: tuple[str, ...] = ("v1",)
    """Versions of the prompt, newest last."""
    complexity_columns: Mapping[str, str] = {"turn_number": "turn_index"}
    """Complexity axis → the column of `<track>_turns` or `turn_results` with its level; the gold's axis comes first."""

    @property
    def primary_metric(self) -> str:
        """Name of the metric that decides whether a turn is correct; by default the first one."""
        return self.metrics[0].name

    @property
    def complexity_axes(self) -> tuple[str, ...]:
        """Names of the complexity axes, the gold's first."""
        return tuple(self.complexity_columns)
