"""Code lists of SDMX 3 that extend others: which codes of the other list they take, and under which ids."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Term
from eval_pipeline_plugins.tracks.sdmx.messages.references import MessageError, Reference

_MOST_TOLD = 5
_WILDCARD = "%"
_CASCADES = {
    "": (True, False),
    "false": (True, False),
    "0": (True, False),
    "true": (True, True),
    "1": (True, True),
    "excluderoot": (False, True),
}
"""`cascadeValues` (CascadeSelectionType: a boolean or `excluderoot`) → whether the code itself, and those below it."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member value of a selection: the codes that it means.

    Attributes:
        value: the id of a code, in which `%` stands for any text.
        itself: whether the codes with such ids are meant.
        below: whether the codes below them are.
    """

    value: str
    itself: bool = True
    below: bool = False

    def among(self, known: Mapping[str, Term]) -> set[str]:
        """Returns the ids of the codes that the member means."""
        if _WILDCARD in self.value:
            form = re.compile(".*".join(map(re.escape, self.value.split(_WILDCARD))), re.DOTALL)
            roots = {id for id in known if form.fullmatch(id)}
        else:
            roots = {self.value} & known.keys()
        below = {id for id in known if not roots.isdisjoint(_ancestors(id, known))} if self.below and roots else set()
        return (roots if self.itself else set()) | below


def member_of(value: str, cascade: str, of: str) -> Member:
    """Returns the member with a value and its `cascadeValues`; `of` names the code list in problems.

    Raises:
        MessageError: the value is empty, or `cascadeValues` is none of those of the standard.
    """
    if not value:
        raise MessageError(f"{of} extends another with an empty member value; expected the id of a code")
    if cascade not in _CASCADES:
        sentence = f"expected cascadeValues of '{value}' as true, false or excluderoot, found {cascade!r:.60}"
        raise MessageError(f"{of}: {sentence}")
    return Member(value, *_CASCADES[cascade])


@dataclass(frozen=True, slots=True)
class Extension:
    """A code list that another one extends.

    Attributes:
        base: the list whose codes are added.
        prefix: put before the ids of the added codes.
        included: the codes to add; all if None.
        excluded: the codes not to add.
    """

    base: Reference | None
    prefix: str = ""
    included: tuple[Member, ...] | None = None
    excluded: tuple[Member, ...] = ()

    def taken(self, terms: Iterable[Term]) -> Iterator[Term]:
        """Yields the codes that are added, with the prefix; a code whose parent is not added has none."""
        known = {term.id: term for term in terms}
        chosen = known.keys() if self.included is None else _meant(self.included, known)
        chosen = chosen - _meant(self.excluded, known)
        for id, term in known.items():
            if id in chosen:
                parent = self.prefix + term.parent if term.parent in chosen else ""
                yield replace(term, id=self.prefix + id, parent=parent)

    def doubts(self, terms: Iterable[Term]) -> Iterator[str]:
        """Yields what is doubtful about the selection, as ends of the sentence "… extends …"."""
        known = {term.id: term for term in terms}
        if self.included is not None and self.excluded:
            yield "with codes to include and codes to exclude, of which the standard allows one; both are applied"
        without = [member for member in (*(self.included or ()), *self.excluded) if not member.among(known)]
        if without:
            told = [f"{'' if member.itself else 'those below '}'{member.value}'" for member in without[:_MOST_TOLD]]
            more = f" and {len(without) - _MOST_TOLD:,} more" if len(without) > _MOST_TOLD else ""
            yield f"and selects codes that it does not have: {', '.join(told)}{more}"


def _meant(members: Sequence[Member], known: Mapping[str, Term]) -> set[str]:
    return set().union(*(member.among(known) for member in members))


def _ancestors(id: str, known: Mapping[str, Term]) -> Iterator[str]:
    seen = {id}
    while id in known and (id := known[id].parent) and id not in seen:
        seen.add(id)
        yield id
