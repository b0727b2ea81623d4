"""The catalogue: data sets, their dimensions, and the code lists that provide their terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Literal

from eval_pipeline_plugins.tracks.sdmx.catalogue.versions import newest_fitting

_MOST_COMPARED = 5_000
_MOST_NAMED = 20

Doubt = Literal["unknown_data_set", "unknown_dimension", "unknown_code", "other_name", "no_data"]
"""What the catalogue lacks of a term.

`other_name` means that it knows the id, but not by that name; `no_data` that a constraint says the code has no data.
"""


@dataclass(frozen=True, slots=True)
class Term:
    """A code of a code list.

    Attributes:
        name: a term is identified by id and name, since two terms of one list may share their id.
        parent: id of its parent term; may be empty.
        synonyms: other names in common use.
        from_target: whether the structures lack it and only a target of an imported case names it.
    """

    id: str
    name: str
    description: str = ""
    parent: str = ""
    synonyms: tuple[str, ...] = ()
    from_target: bool = False

    @property
    def pair(self) -> tuple[str, str]:
        """Id and name, as used in targets and selections."""
        return self.id, self.name


@dataclass(frozen=True)
class CodeList:
    """The terms that a dimension may take, in the order of the list.

    Attributes:
        id: `AGENCY:ID(VERSION)`, which distinguishes lists of the same name by agency and version.
    """

    id: str
    terms: tuple[Term, ...] = field(repr=False)

    @cached_property
    def by_id(self) -> Mapping[str, tuple[Term, ...]]:
        """The terms by id."""
        found: dict[str, tuple[Term, ...]] = {}
        for term in self.terms:
            found[term.id] = (*found.get(term.id, ()), term)
        return found


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a data set; `name` is for display, `id` is used in targets and selections."""

    id: str
    name: str
    codes: CodeList


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set.

    Attributes:
        id: `AGENCY:ID`, followed by `(VERSION)` if the catalogue also has a newer version.
        dimensions: dimensions by id, in the order of the structure, without those that have no code list (the time).
        available: dimension → ids of its codes with data, where a constraint says which; other dimensions are left out.
        lacking: dimension → why it cannot be used, as a sentence; such a dimension is not in `dimensions`.
    """

    id: str
    name: str
    description: str
    version: str
    dimensions: Mapping[str, Dimension]
    available: Mapping[str, frozenset[str]] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conventions:
    """How the dimensions and codes of a suite are to be understood, as its options say.

    Attributes:
        indicator_dimensions: dimensions that make the indicator, as `DIMENSION` or `DATA_SET/DIMENSION`.
        totals: codes that mean "all", as `CODE` or `DIMENSION/CODE`; leaving them out says the same.
    """

    indicator_dimensions: frozenset[str] = frozenset({"INDICATOR"})
    totals: frozenset[str] = frozenset({"_T", "S1"})

    def is_indicator(self, data_set: str, dimension: str) -> bool:
        """Whether a dimension is one of those that make the indicator."""
        return bool(self.indicator_dimensions & {dimension, f"{data_set}/{dimension}"})

    def is_total(self, dimension: str, id: str) -> bool:
        """Whether a code of a dimension means "all"."""
        return bool(self.totals & {id, f"{dimension}/{id}"})


@dataclass(frozen=True)
class Catalogue:
    """All data sets, by id.

    Attributes:
        lacking: id of each data set that cannot be used → why, as a sentence.
        aliases: other ids of data sets, as the suite's options give them.
        remarks: what was left out or is doubtful in the structures, as sentences.
    """

    data_sets: Mapping[str, DataSet]
    lacking: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    conventions: Conventions = Conventions()
    remarks: tuple[str, ...] = ()

    def meant(self, asked: str) -> str:
        """Returns the id of the data set that an id, perhaps with a version or a wildcard, means; see `newest_fitting`.

        An id that means no data set is returned as it is.
        """
        asked = self.aliases.get(asked, asked)
        if asked in self.data_sets:
            return asked
        if asked not in self._meant:
            known = ((found.id, found.version) for found in self.data_sets.values())
            self._meant[asked] = newest_fitting(asked, known) or asked
        return self._meant[asked]

    @cached_property
    def _meant(self) -> dict[str, str]:
        return {}

    def pairs(self) -> Iterator[tuple[DataSet, Dimension]]:
        """Yields every dimension of every data set."""
        for data_set in self.data_sets.values():
            for dimension in data_set.dimensions.values():
                yield data_set, dimension

    def code_lists(self) -> dict[str, CodeList]:
        """Returns every code list in use, by id."""
        return {dimension.codes.id: dimension.codes for _, dimension in self.pairs()}

    def find(self, data_set: str, dimension: str, id: str) -> tuple[Term, ...]:
        """Returns the terms with an id; empty if data set, dimension or id are unknown."""
        found = self.data_sets.get(data_set)
        place = found.dimensions.get(dimension) if found else None
        return place.codes.by_id.get(id, ()) if place else ()

    def doubt(self, data_set: str, dimension: str, pair: tuple[str, str]) -> Doubt | None:
        """Returns what the catalogue lacks of a term (id and name, which may be empty), or None if it has the term."""
        found = self.data_sets.get(data_set)
        if found is None:
            return "unknown_data_set"
        if dimension not in found.dimensions:
            return "unknown_dimension"
        id, name = pair
        known = self.find(data_set, dimension, id)
        if not known:
            return "unknown_code"
        if name and name not in {term.name for term in known}:
            return "other_name"
        return "no_data" if id not in found.available.get(dimension, (id,)) else None

    def data_set_problem(self, data_set: str) -> str | None:
        """Returns a sentence if there is no such data set, else None."""
        if data_set in self.data_sets:
            return None
        if data_set in self.lacking:
            return f"data set '{data_set}' cannot be used: {self.lacking[data_set]}"
        base = self.meant(data_set.partition("(")[0])
        if base in self.data_sets and base != data_set:
            version = self.data_sets[base].version or "no version"
            return f"the catalogue has no data set '{data_set:.80}', but {base} in version {version}"
        return f"the catalogue has no data set '{data_set:.80}'{_instead(data_set, self.data_sets)}"

    def dimension_problem(self, data_set: str, dimension: str) -> str | None:
        """Returns a sentence if a known data set has no such dimension, else None."""
        known = self.data_sets[data_set].dimensions
        if dimension in known:
            return None
        lacking = self.data_sets[data_set].lacking
        if dimension in lacking:
            return f"dimension '{dimension}' of data set '{data_set}' cannot be used: {lacking[dimension]}"
        return f"data set '{data_set}' has no dimension '{dimension:.80}'{_instead(dimension, known)}"

    def term_problem(self, data_set: str, dimension: str, id: str) -> str | None:
        """Returns a sentence if a known dimension has no term with that id, else None."""
        known = self.data_sets[data_set].dimensions[dimension].codes.by_id
        if id in known:
            return None
        return f"dimension '{dimension}' of data set '{data_set}' has no code '{id:.80}'{_instead(id, known)}"


def _instead(wrong: str, known: Mapping[str, object]) -> str:
    """Returns suggestions of what may have been meant, to append to a sentence."""
    if len(known) <= _MOST_NAMED:
        return f"; it has {', '.join(known)}" if known else "; it has none"
    near = get_close_matches(wrong, known, n=5, cutoff=0.5) if len(known) <= _MOST_COMPARED else []
    return f"; near it: {', '.join(near)}" if near else ""
