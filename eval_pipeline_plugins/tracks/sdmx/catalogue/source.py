"""Reads a suite's catalogue from its structure messages and term lists, or from the tables of the record."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.options import read_options
from eval_pipeline_plugins.tracks.sdmx import tables
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import (
    Catalogue,
    CodeList,
    Conventions,
    DataSet,
    Dimension,
    Term,
)
from eval_pipeline_plugins.tracks.sdmx.catalogue.term_lists import SUFFIX, read_terms, with_listed
from eval_pipeline_plugins.tracks.sdmx.messages.messages import SUFFIXES
from eval_pipeline_plugins.tracks.sdmx.messages.structures import read_data_sets
from eval_pipeline_plugins.tracks.sdmx.search.given import GivenCandidates, GivenTurn, TurnKey, given_turn, read_given
from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Retriever

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
        aliases: other id of a data set → the data set.
        indicator_dimensions, totals: see `catalogue.Conventions`.
        candidates: maximum number of terms of a dimension offered for a request; smaller dimensions are shown
            completely.
        data_sets_shown: maximum number of data sets offered for a request.
        candidates_file: name of a file in the suite's folder that gives the candidates in place of the search; see
            `given`.
        ceiling_threshold: see `complexity_ceiling`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    structures: tuple[str, ...] = (f"{FOLDER}/*",)
    data_sets: tuple[str, ...] = ()
    aliases: Mapping[str, str] = Field(default_factory=dict)
    indicator_dimensions: frozenset[str] = Conventions().indicator_dimensions
    totals: frozenset[str] = Conventions().totals
    candidates: int = Field(default=20, ge=1, le=1000)
    data_sets_shown: int = Field(default=20, ge=1, le=1000)
    candidates_file: str | None = None
    ceiling_threshold: float | None = None

    def catalogue(
        self, data_sets: Mapping[str, DataSet], lacking: Mapping[str, str], remarks: tuple[str, ...] = ()
    ) -> Catalogue:
        """Returns a catalogue of data sets that follows these options."""
        meant = Catalogue(data_sets, aliases=self.aliases).meant
        places = [place.rpartition("/") for place in self.indicator_dimensions]
        resolved = {f"{meant(data_set)}/{dimension}" if data_set else dimension for data_set, _, dimension in places}
        conventions = Conventions(frozenset(resolved), self.totals)
        return Catalogue(data_sets, lacking, self.aliases, conventions, remarks)


def read_catalogue(folder: Path, options: Mapping[str, Json]) -> Retriever:
    """Reads the catalogue from the suite's files. Raises InputError that lists every problem in them."""
    place = f"{folder.name}/suite.yaml"
    found = read_options(SdmxOptions, options, place)
    paths = sorted({path for pattern in found.structures for path in folder.glob(pattern) if path.is_file()})
    everything = catalogue_of(paths, f"{folder.name}/{FOLDER}")
    chosen = _chosen(everything, found.data_sets, place)
    if not chosen:
        raise InputError([Problem(place, None, "options.structures", "no file there describes a data set")])
    catalogue = found.catalogue(chosen, everything.lacking, everything.remarks)
    given = None if found.candidates_file is None else _read_candidates(folder, found.candidates_file, catalogue)
    return _retriever(catalogue, found, given)


def _read_candidates(folder: Path, name: str, catalogue: Catalogue) -> dict[TurnKey, GivenTurn]:
    """Reads the suite's own candidates. Raises InputError."""
    path = folder / name
    # The suite's hash covers its folder only, so that a change of a file elsewhere would not be noticed.
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        told = f"expected the name of a file in the suite's folder, found '{name}'"
        raise InputError([Problem(f"{folder.name}/suite.yaml", None, "options.candidates_file", told)])
    return read_given(path, f"{folder.name}/{name}", catalogue)


def _retriever(catalogue: Catalogue, options: SdmxOptions, given: Mapping[TurnKey, GivenTurn] | None) -> Retriever:
    limits = options.candidates, options.data_sets_shown
    if not given:
        return Retriever(catalogue, *limits)
    file = options.candidates_file or "the file of candidates"
    return Retriever(catalogue, *limits, GivenCandidates(file, given, catalogue, *limits))


def catalogue_of(paths: Sequence[Path], name: str) -> Catalogue:
    """Returns the data sets of all messages and lists. Raises InputError."""
    strange = [path for path in paths if path.suffix.lower() not in (*SUFFIXES, SUFFIX)]
    if strange:
        message = f"expected SDMX structure messages ({', '.join(SUFFIXES)}) and lists of terms ({SUFFIX})"
        raise InputError(Problem(str(path), None, "", message) for path in strange)
    messages = [path for path in paths if path.suffix.lower() in SUFFIXES]
    described, lacking, remarks = read_data_sets(messages, name) if messages else ([], {}, ())
    listed = [term for path in paths if path.suffix.lower() == SUFFIX for term in read_terms(path)]
    found = with_listed(described, listed)
    data_sets = {id: data_set for id, data_set in found.items() if data_set.dimensions or not data_set.lacking}
    without = {id: next(iter(data_set.lacking.values())) for id, data_set in found.items() if id not in data_sets}
    unusable = {id: why for id, why in {**lacking, **without}.items() if id not in data_sets}
    return Catalogue(data_sets, unusable, remarks=remarks)


def _chosen(everything: Catalogue, wanted: Sequence[str], place: str) -> dict[str, DataSet]:
    """Returns the data sets that the option names, perhaps by version or wildcard; by default the newest of each."""
    data_sets = everything.data_sets
    if not wanted:
        return {id: found for id, found in data_sets.items() if not _is_older(id, data_sets)}
    problems = [problem for id in wanted if (problem := everything.data_set_problem(everything.meant(id)))]
    if problems:
        raise InputError(Problem(place, None, "options.data_sets", problem) for problem in problems)
    return {id: data_sets[id] for id in map(everything.meant, wanted)}


def _is_older(id: str, data_sets: Mapping[str, DataSet]) -> bool:
    """Whether an id is `AGENCY:ID(VERSION)` and there is a newer `AGENCY:ID`; term lists may use such names, too."""
    newer, bracket, _ = id.partition("(")
    return bool(bracket) and newer in data_sets


def catalogue_notes(catalogue: Catalogue) -> list[str]:
    """Returns sentences on data sets and dimensions that cannot be used, and on doubtful parts of the structures."""
    data_sets = [f"data set {id} cannot be used: {why}" for id, why in catalogue.lacking.items()]
    return [*catalogue.remarks, *data_sets] + [
        f"dimension {dimension} of {data_set.id} cannot be used: {why}"
        for data_set in catalogue.data_sets.values()
        for dimension, why in data_set.lacking.items()
    ]


def catalogue_rows(catalogue: Catalogue, given: GivenCandidates | None = None) -> dict[str, dict[str, Sequence[Any]]]:
    """Returns the catalogue, and the suite's own candidates if any: table of `SUITE_TABLES` → column → its values."""
    turns = given.turns if given else {}
    data_sets = list(catalogue.data_sets.values())
    pairs = list(catalogue.pairs())
    codes = [(found.id, term) for found in catalogue.code_lists().values() for term in found.terms]
    with_data = [
        (found.id, dimension, id)
        for found in data_sets
        for dimension, ids in found.available.items()
        if dimension in found.dimensions
        for id in sorted(ids)
    ]
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
        tables.CODES_WITH_DATA.name: {
            name: [row[place] for row in with_data] for place, name in enumerate(("dataset_id", "dimension", "id"))
        },
        tables.GIVEN_CANDIDATES.name: {
            "case_id": [case_id for case_id, _ in turns],
            "turn_index": [turn for _, turn in turns],
            "line": [found.line for found in turns.values()],
            "questions": [None if found.questions is None else json_text(found.questions) for found in turns.values()],
            "candidates": [json_text(found.as_json()) for found in turns.values()],
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
    available: dict[str, dict[str, set[str]]] = {}
    for row in found[tables.CODES_WITH_DATA.name].to_pylist():
        available.setdefault(row["dataset_id"], {}).setdefault(row["dimension"], set()).add(row["id"])
    data_sets = {
        id: DataSet(
            id,
            row["name"],
            row["description"],
            row["version"],
            dimensions.get(id, {}),
            {place: frozenset(ids) for place, ids in available.get(id, {}).items()},
        )
        for row in found[tables.DATA_SETS.name].to_pylist()
        if (id := row["dataset_id"])
    }
    settings = read_options(SdmxOptions, options, "suite.yaml")
    catalogue = settings.catalogue(data_sets, {})
    lines = found[tables.GIVEN_CANDIDATES.name].to_pylist()
    return _retriever(
        catalogue, settings, {(row["case_id"], row["turn_index"]): _turn(row, catalogue) for row in lines}
    )


def _turn(row: Mapping[str, Any], catalogue: Catalogue) -> GivenTurn:
    questions = None if row["questions"] is None else json.loads(row["questions"])
    line = {"case_id": row["case_id"], "turn": row["turn_index"], "questions": questions}
    return given_turn(row["line"], {**line, "candidates": json.loads(row["candidates"])}, catalogue)


def _term(
    id: str, name: str, description: str | None, parent: str | None, synonyms: str | None, from_target: bool
) -> Term:
    others = tuple(synonyms.split("; ")) if synonyms else ()
    return Term(id, name, description or "", parent or "", others, from_target)
