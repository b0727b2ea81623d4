"""The catalogue: data sets, their dimensions, and the code lists that these take their terms from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

_MOST_COMPARED = 5_000
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Term:
    """A code of a code list.

    Attributes:
        name: the other half of what makes a term; two terms of one list may share their id.
        parent: id of the term above it; empty for none.
        synonyms: other names that people use for it.
        from_target: the structures lack it; a target of an imported case names it.
    """

    id: str
    name: str
    description: str = ""
    parent: str = ""
    synonyms: tuple[str, ...] = ()
    from_target: bool = False

    @property
    def pair(self) -> tuple[str, str]:
        """What the term is in a target or a selection."""
        return self.id, self.name


@dataclass(frozen=True)
class CodeList:
    """The terms that a dimension may take, in the order of the list.

    Attributes:
        id: `AGENCY:ID(VERSION)`, so that several agencies' and versions' lists of one name stay apart.
    """

    id: str
    terms: tuple[Term, ...] = field(repr=False)

    @cached_property
    def by_id(self) -> Mapping[str, tuple[Term, ...]]:
        """The terms of each id."""
        found: dict[str, tuple[Term, ...]] = {}
        for term in self.terms:
            found[term.id] = (*found.get(term.id, ()), term)
        return found


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a data set; `name` is for people, `id` is what targets and selections call it."""

    id: str
    name: str
    codes: CodeList


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set.

    Attributes:
        id: `AGENCY:ID`; with `(VERSION)` behind it where the catalogue holds a newer version too.
        dimensions: by id, in the order of the structure; those without a code list (the time) are left out.
    """

    id: str
    name: str
    description: str
    version: str
    dimensions: Mapping[str, Dimension]


@dataclass(frozen=True)
class Catalogue:
    """Every data set by id."""

    data_sets: Mapping[str, DataSet]

    def pairs(self) -> Iterator[tuple[DataSet, Dimension]]:
        """Every dimension of every data set."""
        for data_set in self.data_sets.values():
            for dimension in data_set.dimensions.values():
                yield data_set, dimension

    def code_lists(self) -> dict[str, CodeList]:
        """Every code list in use, by id."""
        return {dimension.codes.id: dimension.codes for _, dimension in self.pairs()}

    def find(self, data_set: str, dimension: str, id: str) -> tuple[Term, ...]:
        """The terms of an id; none where data set, dimension or id are unknown."""
        found = self.data_sets.get(data_set)
        place = found.dimensions.get(dimension) if found else None
        return place.codes.by_id.get(id, ()) if place else ()

    def data_set_problem(self, data_set: str) -> str | None:
        """Why there is no such data set; None where there is."""
        if data_set in self.data_sets:
            return None
        return f"the catalogue has no data set '{data_set:.80}'{_instead(data_set, self.data_sets)}"

    def dimension_problem(self, data_set: str, dimension: str) -> str | None:
        """Why a known data set has no such dimension; None where it has."""
        known = self.data_sets[data_set].dimensions
        if dimension in known:
            return None
        return f"data set '{data_set}' has no dimension '{dimension:.80}'{_instead(dimension, known)}"

    def term_problem(self, data_set: str, dimension: str, id: str) -> str | None:
        """Why a known dimension has no term of that id; None where it has."""
        known = self.data_sets[data_set].dimensions[dimension].codes.by_id
        if id in known:
            return None
        return f"dimension '{dimension}' of data set '{data_set}' has no code '{id:.80}'{_instead(id, known)}"


def _instead(wrong: str, known: Mapping[str, object]) -> str:
    """What may have been meant, for the end of a sentence."""
    if len(known) <= _MOST_NAMED:
        return f"; it has {', '.join(known)}" if known else "; it has none"
    near = get_close_matches(wrong, known, n=5, cutoff=0.5) if len(known) <= _MOST_COMPARED else []
    return f"; near it: {', '.join(near)}" if near else ""
