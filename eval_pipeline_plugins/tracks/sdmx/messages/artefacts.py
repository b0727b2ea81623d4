"""The content of structure messages: code lists, concepts, data structures, dataflows and constraints.

Readers of each format fill an `Artefacts`; `structures` follows the references between them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Term
from eval_pipeline_plugins.tracks.sdmx.messages.extensions import Extension
from eval_pipeline_plugins.tracks.sdmx.messages.references import ItemReference, Reference, shown

_MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept: its name, and the code list that dimensions use unless they name another."""

    name: str
    codes: Reference | None = None


@dataclass(frozen=True, slots=True)
class DimensionPart:
    """A dimension as a data structure describes it.

    Attributes:
        concept: its concept; None if it names none.
        codes: its own code list, if it names one.
        format_only: whether its values are declared as plain values (numbers, texts) instead of codes.
    """

    id: str
    concept: ItemReference | None
    codes: Reference | None
    format_only: bool = False


@dataclass(frozen=True, slots=True)
class Structure:
    """A data structure, without its time dimension."""

    name: str
    description: str
    dimensions: tuple[DimensionPart, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A dataflow and the data structure that it refers to."""

    name: str
    description: str
    structure: Reference | None


@dataclass(frozen=True, slots=True)
class Constraint:
    """The codes that have data, by dimension; constraints on what is allowed are not included.

    Attributes:
        attached: the dataflows and data structures that it applies to.
        available: dimension → codes with data.
    """

    attached: tuple[Reference, ...]
    available: Mapping[str, frozenset[str]]


@dataclass(slots=True)
class Artefacts:
    """The artefacts of any number of messages, in whatever order they are read.

    Attributes:
        files: artefact → the file that contains it; the kind is part of the key.
        empty: code lists that some message contains without any code.
        remarks: sentences on what was left out or is doubtful, each after its file.
    """

    code_lists: dict[Reference, tuple[Term, ...]] = field(default_factory=dict)
    schemes: dict[Reference, dict[str, Concept]] = field(default_factory=dict)
    structures: dict[Reference, Structure] = field(default_factory=dict)
    flows: dict[Reference, Flow] = field(default_factory=dict)
    constraints: dict[Reference, Constraint] = field(default_factory=dict)
    extensions: dict[Reference, tuple[Extension, ...]] = field(default_factory=dict)
    files: dict[tuple[str, Reference], str] = field(default_factory=dict)
    empty: dict[Reference, None] = field(default_factory=dict)
    remarks: dict[tuple[str, str], None] = field(default_factory=dict)

    def add_codes(
        self, place: Reference, terms: Iterable[Term], file: str, extensions: Sequence[Extension] = ()
    ) -> None:
        """Adds a code list and the lists that it extends; parts of it in several messages are combined.

        The order of the files does not matter. A list without codes and extensions is noted as empty: it may be a stub
        of a list in another message.
        """
        new = tuple(terms)
        if not new and not extensions:
            self.empty[place] = None
            return
        if twice := _named_twice(new):
            self.remarks[file, f"the code list {shown(place)} names codes twice; the last name is used: {twice}"] = None
        # their order decides which code counts, so those of two messages are not mixed
        known = self.extensions.get(place, ())
        self.extensions[place] = max(known, tuple(extensions), key=lambda found: (len(found), _content(found)))
        self.code_lists[place] = tuple(_together(self.code_lists.get(place, ()), new))
        self.files.setdefault(("code list", place), file)

    def add_concepts(self, place: Reference, concepts: Mapping[str, Concept], file: str) -> None:
        """Adds the concepts of a scheme; a message may contain only some of them."""
        known = self.schemes.setdefault(place, {})
        for id, concept in concepts.items():
            known[id] = max(known.get(id, concept), concept, key=_content)
        self.files.setdefault(("concept scheme", place), file)

    def add_structure(self, place: Reference, structure: Structure, file: str) -> None:
        """Adds a data structure; a stub does not replace a complete one."""
        known = self.structures.setdefault(place, structure)
        chosen = max(known, structure, key=lambda found: (len(found.dimensions), _content(found)))
        if chosen is structure:
            self.structures[place] = structure
            self.files["data structure", place] = file

    def add_flow(self, place: Reference, flow: Flow, file: str) -> None:
        """Adds a dataflow; a stub does not replace a complete one."""
        known = self.flows.setdefault(place, flow)
        chosen = max(known, flow, key=lambda found: (found.structure is not None, _content(found)))
        if chosen is flow:
            self.flows[place] = flow
            self.files["dataflow", place] = file

    def add_constraint(self, place: Reference, constraint: Constraint, file: str) -> None:
        """Adds a constraint; what several messages say under one id is combined."""
        known = self.constraints.get(place, constraint)
        available = {
            id: known.available.get(id, frozenset()) | constraint.available.get(id, frozenset())
            for id in {**known.available, **constraint.available}
        }
        self.constraints[place] = Constraint(tuple(sorted({*known.attached, *constraint.attached})), available)
        self.files.setdefault(("constraint", place), file)


def _named_twice(terms: Sequence[Term]) -> str:
    """Returns the codes that a list gives several names, in words; empty if there are none."""
    if len({term.id for term in terms}) == len(terms):
        return ""
    names: dict[str, dict[str, None]] = {}
    for term in terms:
        names.setdefault(term.id, {})[term.name] = None
    told = [f"{id} ({', '.join(map(repr, found))})" for id, found in names.items() if len(found) > 1]
    more = f" and {len(told) - _MOST_TOLD:,} more" if len(told) > _MOST_TOLD else ""
    return ", ".join(told[:_MOST_TOLD]) + more


def _content(found: Any) -> str:
    # decides between artefacts with one id, since the order of the files must not
    return repr(found)


def _together(first: tuple[Term, ...], second: tuple[Term, ...]) -> Iterable[Term]:
    # by content, since the order of the files must not decide
    shorter, longer = sorted((first, second), key=lambda terms: (len(terms), [term.pair for term in terms]))
    if not shorter:
        return longer
    known = {term.id for term in longer}
    return (*longer, *(term for term in shorter if term.id not in known))


def one_line(text: str | None) -> str:
    """Returns the text with each run of white space as one space."""
    return " ".join(text.split()) if text else ""


def in_english(names: Iterable[tuple[str, str]]) -> str:
    """Returns the English text of (language, text) pairs, else one without a language, else the first; may be empty."""
    found = list(names)
    ranked = sorted(found, key=lambda pair: 0 if pair[0].lower().split("-")[0] == "en" else 1 if not pair[0] else 2)
    return one_line(ranked[0][1]) if ranked else ""


SYNONYMS = frozenset({"SYNONYM", "SYNONYMS", "ALIAS", "ALIASES"})
"""Types or ids of annotations whose texts, parted by semicolons, are other names of a code."""


def synonyms_in(texts: Iterable[Any]) -> tuple[str, ...]:
    """Returns the names in the texts of synonym annotations, each once."""
    parts = (part.strip() for text in texts for part in f"{text or ''}".split(";"))
    return tuple(dict.fromkeys(part for part in parts if part))
