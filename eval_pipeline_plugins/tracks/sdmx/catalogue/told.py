"""Describes the content of structure messages, and what is missing, as lines of text."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import DataSet, Dimension
from eval_pipeline_plugins.tracks.sdmx.messages.references import shown
from eval_pipeline_plugins.tracks.sdmx.messages.structures import NO_DATAFLOW, FoundStructures, read_structures


def told(files: Sequence[Path]) -> tuple[list[str], bool]:
    """Returns what files describe, as lines, and whether they have all that is needed."""
    found = read_structures(files)
    return list(lines(found)), bool(found.data_sets) and not found.missing


def lines(found: FoundStructures) -> Iterator[str]:
    """Yields each data set with its dimensions, then the content of each file, then what is missing."""
    for data_set in found.data_sets:
        yield f"{data_set.id}  {data_set.name} (version {data_set.version})"
        yield from (f"  {dimension.id}  {_codes(data_set, dimension)}" for dimension in data_set.dimensions.values())
        yield from (f"  {id}  cannot be used: {sentence}" for id, sentence in data_set.lacking.items())
        if not data_set.dimensions and not data_set.lacking:
            yield "  no dimension has codes"
    yield from (f"{id}  cannot be used: {sentence}" for id, sentence in found.lacking.items())
    if not found.data_sets:
        yield NO_DATAFLOW
    yield "files:"
    for (kind, place), file in sorted(found.artefacts.files.items(), key=lambda entry: entry[1]):
        yield f"  {file}: {kind} {shown(place)}"
    if found.remarks:
        yield "notes:"
        yield from (f"  {remark}" for remark in found.remarks)
    if found.missing:
        yield "missing:"
        yield from (f"  {missing.file}: {missing.sentence}" for missing in found.missing)


def _codes(data_set: DataSet, dimension: Dimension) -> str:
    count = len(dimension.codes.terms)
    with_data = data_set.available.get(dimension.id)
    told = "" if with_data is None else f", {sum(term.id in with_data for term in dimension.codes.terms):,} with data"
    return f"{count:,} code{'s' if count > 1 else ''} of {dimension.codes.id}{told}"
