"""Catalogues given as a plain CSV list of terms, for what SDMX messages do not describe or leave out."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.reading.csv_files import open_csv
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import CodeList, DataSet, Dimension, Term

SUFFIX = ".csv"
_NEEDED = ("dataset_id", "dimension", "id", "name")


@dataclass(frozen=True, slots=True)
class ListedTerm:
    """One row of the file: a term together with its data set and dimension.

    Attributes:
        synonyms: separated by semicolons.
        from_target: `true` if the term is only known from a target, not from the supplied structures; see
            `catalogue.Term`.
    """

    dataset_id: str
    dimension: str
    id: str
    name: str
    dataset_name: str = ""
    description: str = ""
    parent: str = ""
    synonyms: str = ""
    from_target: str = ""

    def term(self) -> Term:
        """Returns the term without its data set and dimension."""
        synonyms = tuple(part.strip() for part in self.synonyms.split(";") if part.strip())
        return Term(self.id, self.name, self.description, self.parent, synonyms, self.from_target == "true")


COLUMNS = tuple(field.name for field in fields(ListedTerm))


def write_terms(path: Path, terms: Iterable[ListedTerm]) -> None:
    """Writes a list of terms to a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(astuple(term) for term in terms)


def read_terms(path: Path) -> list[ListedTerm]:
    """Reads a list of terms. Raises an InputError that names every wrong row."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            found = open_csv(file, str(path))
            missing = [name for name in _NEEDED if name not in found.columns]
            if missing:
                message = f"a list of terms needs the columns {', '.join(_NEEDED)}; missing: {', '.join(missing)}"
                raise InputError([Problem(str(path), 1, "", message)])
            rows = [(row.line, named) for row, named in found.named()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(path), None, "", f"cannot be read as CSV in UTF-8: {error}")]) from None
    problems = [
        Problem(str(path), line, name, "must not be empty")
        for line, row in rows
        for name in _NEEDED
        if not (row[name] or "").strip()
    ]
    if problems:
        raise InputError(problems)
    return [ListedTerm(**{name: (row.get(name) or "").strip() for name in COLUMNS}) for _, row in rows]


def with_listed(data_sets: Sequence[DataSet], listed: Iterable[ListedTerm]) -> dict[str, DataSet]:
    """Returns the data sets by id, with the listed terms added to the dimensions that they name.

    A dimension that gets new terms also gets a code list of its own, named `DATA_SET/DIMENSION`, so that other data
    sets which share the original code list do not change.
    """
    found = {data_set.id: data_set for data_set in data_sets}
    added: dict[str, dict[str, dict[tuple[str, str], Term]]] = {}
    names: dict[str, str] = {}
    for entry in listed:
        term = entry.term()
        added.setdefault(entry.dataset_id, {}).setdefault(entry.dimension, {}).setdefault(term.pair, term)
        if entry.dataset_name:
            names.setdefault(entry.dataset_id, entry.dataset_name)
    for id, dimensions in added.items():
        before = found.get(id) or DataSet(id, names.get(id, id), "", "", {})
        lacking = {place: sentence for place, sentence in before.lacking.items() if place not in dimensions}
        available = {
            place: ids | {known for known, _ in dimensions.get(place, {})} for place, ids in before.available.items()
        }
        extended = dict(_extended(id, before.dimensions, dimensions))
        found[id] = replace(before, dimensions=extended, available=available, lacking=lacking)
    return found


def _extended(
    data_set: str, before: Mapping[str, Dimension], added: Mapping[str, Mapping[tuple[str, str], Term]]
) -> Iterator[tuple[str, Dimension]]:
    for id in {**before, **added}:
        known = before.get(id)
        terms = known.codes.terms if known else ()
        pairs = {term.pair for term in terms} if id in added else set()
        new = tuple(term for pair, term in added.get(id, {}).items() if pair not in pairs)
        if known is not None and not new:
            yield id, known
        else:
            yield id, Dimension(id, known.name if known else id, CodeList(f"{data_set}/{id}", (*terms, *new)))
