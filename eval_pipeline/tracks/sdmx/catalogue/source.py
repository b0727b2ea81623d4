"""Reads a suite's catalogue from its structure messages and term lists, or from the tables of the record."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.options import read_options
from eval_pipeline.tracks.sdmx.catalogue import suite_tables as tables
from eval_pipeline.tracks.sdmx.catalogue.catalogue import Catalogue, CodeList, DataSet, Dimension, Term
from eval_pipeline.tracks.sdmx.catalogue.structures import SUFFIXES, read_data_sets
from eval_pipeline.tracks.sdmx.catalogue.term_lists import SUFFIX, read_terms, with_listed
from eval_pipeline.tracks.sdmx.retrieval import Retriever

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "structures"
_CODE_COLUMNS = ("codelist", "id", "name", "description", "parent", "synonyms", "from_target")
_BATCH = 5_000
"""Number of table rows converted to Python values at a time, to limit memory for large catalogues."""


class SdmxOptions(BaseModel):
    """`options` of a suite of this track.

    Attributes:
        structures: glob patterns below the suite's folder, for structure messages and term lists.
        data_sets: ids of the data sets that are offered; by default the newest version of each.
        candidates: maximum number of terms of a dimension offered for a request; smaller dimensions are shown
            completely.
        data_sets_shown: maximum number of data sets offered for a request.
        ceiling_threshold: see `complexity_ceiling`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    structures: tuple[str, ...] = (f"{FOLDER}/*",)
    data_sets: tuple[str, ...] = ()
    candidates: int = Field(default=20, ge=1, le=1000)
    data_sets_shown: int = Field(default=20, ge=1, le=1000)
    ceiling_threshold: float | None = None


def read_catalogue(folder: Path, options: Mapping[str, Json]) -> Retriever:
    """Reads the catalogue from the suite's files. Raises InputError that lists every problem in them."""
    place = f"{folder.name}/suite.yaml"
    found = read_options(SdmxOptions, options, place)
    paths = sorted({path for pattern in found.structures for path in folder.glob(pattern) if path.is_file()})
    data_sets = data_sets_of(paths, f"{folder.name}/{FOLDER}")
    chosen = _chosen(data_sets, found.data_sets, place)
    if not chosen:
        raise InputError([Problem(place, None, "options.structures", "no file there describes a data set")])
    return Retriever(Catalogue(chosen), found.candidates, found.data_sets_shown)


def data_sets_of(paths: Sequence[Path], name: str) -> dict[str, DataSet]:
    """Returns the data sets of all messages and lists, by id. Raises InputError."""
    strange = [path for path in paths if path.suffix.lower() not in (*SUFFIXES, SUFFIX)]
    if strange:
        message = f"expected SDMX structure messages ({', '.join(SUFFIXES)}) and lists of terms ({SUFFIX})"
        raise InputError(Problem(str(path), None, "", message) for path in strange)
    messages = [path for path in paths if path.suffix.lower() in SUFFIXES]
    described = read_data_sets(messages, name) if messages else []
    listed = [term for path in paths if path.suffix.lower() == SUFFIX for term in read_terms(path)]
    return with_listed(described, listed)


def _chosen(data_sets: Mapping[str, DataSet], wanted: Sequence[str], place: str) -> dict[str, DataSet]:
    if not wanted:
        return {id: found for id, found in data_sets.items() if not _is_older(id, data_sets)}
    unknown = [id for id in wanted if id not in data_sets]
    if unknown:
        message = f"no data set {', '.join(unknown)}; the structures have {', '.join(data_sets)}"
        raise InputError([Problem(place, None, "options.data_sets", message)])
    return {id: data_sets[id] for id in wanted}


def _is_older(id: str, data_sets: Mapping[str, DataSet]) -> bool:
    """Whether an id is `AGENCY:ID(VERSION)` and there is a newer `AGENCY:ID`; term lists may use such names, too."""
    newer, bracket, _ = id.partition("(")
    return bool(bracket) and newer in data_sets


def catalogue_rows(catalogue: Catalogue) -> dict[str, dict[str, Sequence[Any]]]:
    """Returns the catalogue as columns of `tables.SUITE_TABLES`."""
    data_sets = list(catalogue.data_sets.values())
    pairs = list(catalogue.pairs())
    codes = [(found.id, term) for found in catalogue.code_lists().values() for term in found.terms]
    return {
        tables.DATA_SETS.name: {
            "dataset_id": [found.id for found in data_sets],
            "name": [found.name for found in data_sets],
            "description": [found.description for found in data_sets],
            "version": [found.version for found in data_sets],
        },
        tables.DATA_SET_DIMENSIONS.name: {
            "dataset_id": [data_set.id for data_set, _ in pairs],
            "dimension": [dimension.id for _, dimension in pairs],
            "name": [dimension.name for _, dimension in pairs],
            "codelist": [dimension.codes.id for _, dimension in pairs],
        },
        tables.CODES.name: {
            "codelist": [codelist for codelist, _ in codes],
            "id": [term.id for _, term in codes],
            "name": [term.name for _, term in codes],
            "description": [term.description or None for _, term in codes],
            "parent": [term.parent or None for _, term in codes],
            "synonyms": ["; ".join(term.synonyms) or None for _, term in codes],
            "from_target": [term.from_target for _, term in codes],
        },
    }


def load_catalogue(found: "Mapping[str, pa.Table]", options: Mapping[str, Json]) -> Retriever:
    """Restores the catalogue from the tables made by `catalogue_rows`."""
    terms: dict[str, list[Term]] = {}
    for batch in found[tables.CODES.name].to_batches(max_chunksize=_BATCH):
        for codelist, *values in zip(*(batch[name].to_pylist() for name in _CODE_COLUMNS), strict=True):
            terms.setdefault(codelist, []).append(_term(*values))
    lists = {id: CodeList(id, tuple(members)) for id, members in terms.items()}
    dimensions: dict[str, dict[str, Dimension]] = {}
    for row in found[tables.DATA_SET_DIMENSIONS.name].to_pylist():
        place = dimensions.setdefault(row["dataset_id"], {})
        codelist = lists.get(row["codelist"]) or CodeList(row["codelist"], ())
        place[row["dimension"]] = Dimension(row["dimension"], row["name"], codelist)
    data_sets = {
        row["dataset_id"]: DataSet(
            row["dataset_id"], row["name"], row["description"], row["version"], dimensions.get(row["dataset_id"], {})
        )
        for row in found[tables.DATA_SETS.name].to_pylist()
    }
    settings = read_options(SdmxOptions, options, "suite.yaml")
    return Retriever(Catalogue(data_sets), settings.candidates, settings.data_sets_shown)


def _term(
    id: str, name: str, description: str | None, parent: str | None, synonyms: str | None, from_target: bool
) -> Term:
    others = tuple(synonyms.split("; ")) if synonyms else ()
    return Term(id, name, description or "", parent or "", others, from_target)
