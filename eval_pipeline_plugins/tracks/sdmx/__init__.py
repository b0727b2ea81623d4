"""The track `sdmx`: selecting indicators from statistical data sets described in SDMX (docs/sdmx.md)."""

from collections.abc import Mapping

from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.tracks.manifest import Manifest
from eval_pipeline.tracks.metric import Metric
from eval_pipeline_plugins.tracks.sdmx import tables
from eval_pipeline_plugins.tracks.sdmx.metrics import METRICS

_FEATURE_COLUMNS = (
    Column("has_several_data_sets", "BOOLEAN", "A target of the case names several data sets; never NULL."),
    Column("has_empty_target", "BOOLEAN", "A target of the case names no term at all; never NULL."),
    Column("num_dialogue_turns", "BIGINT", "Turns of the conversation; never NULL."),
    Column("rejected_data_sets", "VARCHAR", "Data sets that the authors looked at and left out; empty for none."),
)
_TURN_COLUMNS = (
    Column("target", "JSON", "The target's terms by data set and dimension; never NULL."),
    Column("target_used", "BIGINT", "Which accepted target `target` is, from 0: the closest to what was said."),
    Column("accepted_targets", "BIGINT", "Targets of the turn that are accepted, from 1."),
    Column("out_of_scope", "BOOLEAN", "The question is out of scope, so that nothing is to be selected."),
    Column("selection", "JSON", "What the final attempt selected, in the same form; NULL where it did not run."),
    Column("said", "JSON", "What it named, also where it did not run, in the same form; NULL where nothing was read."),
    Column("target_terms", "BIGINT", "Terms of the target, from 0; never NULL."),
    Column("candidates", "BIGINT", "Terms that the request was offered, over all dimensions, from 0; never NULL."),
)
FAILURE_MODES = (
    "no_answer",
    "execution_error",
    "wrong_data_sets",
    "wrong_names",
    "no_data",
    "swapped_terms",
    "extra_dimension",
    "missing_terms",
    "extra_terms",
    "other",
)
"""In the order in which they are tried."""


class SdmxManifest(Manifest):
    """Its names, columns and tables."""

    name = "sdmx"
    task = "eval_pipeline_plugins.tracks.sdmx.track:TRACK"
    primary_metric = "exact_selection"
    metrics: tuple[Metric, ...] = METRICS
    feature_columns: tuple[Column, ...] = _FEATURE_COLUMNS
    turn_columns: tuple[Column, ...] = _TURN_COLUMNS
    suite_tables: tuple[Table, ...] = tables.SUITE_TABLES
    turn_tables: tuple[Table, ...] = tables.TURN_TABLES
    prompt_versions: tuple[str, ...] = ("selection-2",)
    """The name stands for the candidates, too: a search that offers others is another prompt."""
    complexity_columns: Mapping[str, str] = {"target_terms": "target_terms", "turn_number": "turn_index"}
    failure_modes: tuple[str, ...] = FAILURE_MODES


MANIFEST = SdmxManifest()
