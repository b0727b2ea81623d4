"""Reads SDMX structure messages (SDMX-ML 2.1 and 3, SDMX-JSON 1 and 2) of any agency into data sets.

References are followed across all messages, in whatever order they are given. Only what dimensions need must exist.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.system.memory import give_back_memory
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import CodeList, DataSet, Dimension, Term
from eval_pipeline_plugins.tracks.sdmx.catalogue.versions import fits, is_wildcard, version_numbers
from eval_pipeline_plugins.tracks.sdmx.messages.artefacts import Artefacts, Concept, DimensionPart, Flow, Structure
from eval_pipeline_plugins.tracks.sdmx.messages.messages import read_messages
from eval_pipeline_plugins.tracks.sdmx.messages.references import DEFAULT_VERSION, Reference, shown

NO_DATAFLOW = "no structure message describes a dataflow"


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a dimension needs but no message contains.

    Attributes:
        file: the message that refers to it.
        what: `data structure`, `concept scheme`, `concept` or `code list`.
        reference: which one is missing, as `AGENCY:ID(VERSION)`.
        of: the artefact that refers to it.
        is_empty: whether a message contains it, but without anything in it.
    """

    file: str
    what: str
    reference: str
    of: str
    is_empty: bool = False

    @property
    def sentence(self) -> str:
        """Describes what is missing, without the file."""
        if self.is_empty:
            return f"the {self.what} {self.reference} of {self.of} has no codes in any structure message"
        return f"no structure message holds the {self.what} {self.reference} of {self.of}"


@dataclass(frozen=True, slots=True)
class FoundStructures:
    """The content of messages.

    Attributes:
        data_sets: every data set whose structure is known, without the dimensions that lack something.
        missing: what dimensions need but no message contains.
        lacking: id of each data set whose structure is missing → why it cannot be used.
        artefacts: everything that was read.
    """

    data_sets: tuple[DataSet, ...]
    missing: tuple[Missing, ...]
    lacking: Mapping[str, str]
    artefacts: Artefacts = field(repr=False)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what was left out or is doubtful, each with its file."""
        return tuple(f"{file}: {sentence}" for file, sentence in self.artefacts.remarks)


def read_data_sets(paths: Sequence[Path], name: str = "") -> tuple[list[DataSet], Mapping[str, str], tuple[str, ...]]:
    """Returns the data sets described by the messages together: every dataflow with its structure and code lists.

    The newest version of a dataflow is `AGENCY:ID`, older ones are `AGENCY:ID(VERSION)`. A structure that no dataflow
    uses is a data set of its own. A dimension whose code list is missing is left out of its data set.

    Args:
        paths: the messages, which may refer to each other.
        name: name of the messages' folder in problem reports.

    Returns:
        The data sets, for each data set that lacks its structure a sentence that says so, and the remarks.

    Raises:
        InputError: names each message that cannot be read; or no data set can be used, with everything that is missing.
    """
    found = read_structures(paths)
    if not any(data_set.dimensions for data_set in found.data_sets):
        told = [missing.sentence for missing in found.missing] or [
            f"data set {data_set.id} has no dimension with codes" for data_set in found.data_sets
        ]
        problems = [Problem(name, None, "", sentence) for sentence in told or [NO_DATAFLOW]]
        raise InputError(dict.fromkeys(problems))
    data_sets, lacking, remarks = [*found.data_sets], found.lacking, found.remarks
    del found
    give_back_memory()  # the parsed form of a large message takes several times the memory of the result
    return data_sets, lacking, remarks


def read_structures(paths: Sequence[Path]) -> FoundStructures:
    """Reads messages; missing artefacts are reported in the result instead of raising an error.

    Raises:
        InputError: names each message that cannot be read.
    """
    artefacts = Artefacts()
    problems = [problem for path in paths for problem in read_messages(path, artefacts)]
    if problems:
        raise InputError(problems)
    return _Resolver(artefacts).found()


class _Resolver:
    """Follows the references from dataflows to codes."""

    def __init__(self, artefacts: Artefacts) -> None:
        self._artefacts = artefacts
        self._lists: dict[Reference, CodeList] = {}
        self._missing: dict[Missing, None] = {}

    def found(self) -> FoundStructures:
        """Returns every data set, and the missing artefacts."""
        held = self._artefacts
        described: list[tuple[Reference, Flow | Structure, Reference]] = []
        lacking: dict[str, str] = {}
        for place, flow in held.flows.items():
            structure = _match(held.structures, flow.structure)
            if structure is None:
                of = f"dataflow {shown(place)}"
                missing = self._lacks("data structure", flow.structure, of, held.files["dataflow", place])
                lacking[f"{place[0]}:{place[1]}"] = missing.sentence
            else:
                described.append((place, flow, structure))
        used = {structure for *_, structure in described}
        described += [(place, found, place) for place, found in held.structures.items() if place not in used]
        # The order of the files must not matter where artefacts are told apart by version alone.
        newest = _newest(place for place, *_ in described)
        data_sets = tuple(self._data_set(*entry, newest=entry[0] in newest) for entry in described)
        usable = {data_set.id for data_set in data_sets}
        lacking = {id: sentence for id, sentence in lacking.items() if id not in usable}
        return FoundStructures(data_sets, tuple(self._missing), lacking, held)

    def _data_set(self, place: Reference, told: Flow | Structure, structure: Reference, *, newest: bool) -> DataSet:
        agency, id, version = place
        name = f"{agency}:{id}" if newest else f"{agency}:{id}({version})"
        file = self._artefacts.files["data structure", structure]
        pairs = [(part, self._codes(part, name, file)) for part in self._artefacts.structures[structure].dimensions]
        dimensions = {
            part.id: Dimension(part.id, self._name_of(part), codes)
            for part, codes in pairs
            if isinstance(codes, CodeList)
        }
        lacking = {part.id: codes.sentence for part, codes in pairs if isinstance(codes, Missing)}
        available = _available(self._artefacts, place, structure)
        return DataSet(name, told.name or id, told.description, version, dimensions, available, lacking)

    def _codes(self, part: DimensionPart, data_set: str, file: str) -> CodeList | Missing | None:
        """Returns a dimension's own code list, or else its concept's; None if its values are not codes."""
        of = f"dimension {part.id} of {data_set}"
        wanted: Reference | Missing | None = part.codes
        if wanted is None and not part.format_only:
            wanted = self._of_concept(part, of, file)
        if wanted is None or isinstance(wanted, Missing):
            return wanted
        place = _match(self._artefacts.code_lists, wanted)
        if place is not None:
            if place in self._lists:
                return self._lists[place]
            terms = self._extended(place, ())
            if terms == ():
                return self._missed(Missing(file, "code list", shown(place), of, is_empty=True))
            return terms if isinstance(terms, Missing) else self._code_list(place, terms)
        place = _match(self._artefacts.schemes, wanted)
        if place is not None:  # the measure dimension of SDMX 2.1 takes its codes from concepts
            concepts = self._artefacts.schemes[place].items()
            return self._code_list(place, tuple(Term(id, concept.name or id) for id, concept in concepts))
        return self._lacks("code list", wanted, of, file)

    def _of_concept(self, part: DimensionPart, of: str, file: str) -> Reference | Missing | None:
        """Returns the code list of a dimension's concept; None if the concept has none."""
        if part.concept is None:
            return None
        scheme = _match(self._artefacts.schemes, part.concept[0])
        if scheme is None:
            return self._lacks("concept scheme", part.concept[0], of, file)
        concept = self._artefacts.schemes[scheme].get(part.concept[1])
        if concept is None:
            return self._lacks(f"concept {part.concept[1]} in the concept scheme", part.concept[0], of, file)
        return concept.codes

    def _extended(self, place: Reference, extending: tuple[Reference, ...]) -> tuple[Term, ...] | Missing:
        """Returns the codes of a list, followed by those of the lists that it extends; `extending` ends circles."""
        own = {term.id: term for term in self._artefacts.code_lists[place]}
        added: dict[str, Term] = {}
        for extension in self._artefacts.extensions.get(place, ()):
            of = f"code list {shown(place)}, which extends it"
            base = _match(self._artefacts.code_lists, extension.base)
            if base is None:
                return self._lacks("code list", extension.base, of, self._artefacts.files["code list", place])
            if base in (place, *extending):
                self._doubt(place, base, "in a circle, which adds no codes")
                continue
            terms = self._extended(base, (*extending, place))
            if isinstance(terms, Missing):
                return terms
            for sentence in extension.doubts(terms):
                self._doubt(place, base, sentence)
            added |= {term.id: term for term in extension.taken(terms)}  # of two with one id the later counts
        return (*own.values(), *(term for id, term in added.items() if id not in own))

    def _code_list(self, place: Reference, terms: tuple[Term, ...]) -> CodeList:
        if place not in self._lists:
            self._lists[place] = CodeList(shown(place), terms)
        return self._lists[place]

    def _name_of(self, part: DimensionPart) -> str:
        scheme = _match(self._artefacts.schemes, part.concept[0]) if part.concept else None
        concept: Concept | None = None
        if part.concept is not None and scheme is not None:
            concept = self._artefacts.schemes[scheme].get(part.concept[1])
        return (concept.name if concept else "") or part.id

    def _lacks(self, what: str, wanted: Reference | None, of: str, file: str) -> Missing:
        empty = _match(self._artefacts.empty, wanted) if what == "code list" else None
        return self._missed(Missing(file, what, shown(empty or wanted), of, empty is not None))

    def _missed(self, missing: Missing) -> Missing:
        self._missing[missing] = None
        return missing

    def _doubt(self, place: Reference, base: Reference, end: str) -> None:
        sentence = f"the code list {shown(place)} extends {shown(base)} {end}"
        self._artefacts.remarks[self._artefacts.files["code list", place], sentence] = None


def _available(artefacts: Artefacts, flow: Reference, structure: Reference) -> Mapping[str, frozenset[str]]:
    """Returns the codes with data by dimension; constraints on the same dimension are combined."""
    found: dict[str, frozenset[str]] = {}
    for constraint in artefacts.constraints.values():
        if any(_match((flow, structure), place) for place in constraint.attached):
            for dimension, codes in constraint.available.items():
                found[dimension] = found.get(dimension, frozenset()) | codes
    return found


def _match(known: Iterable[Reference], wanted: Reference | None) -> Reference | None:
    """Returns the key of the artefact that a reference means; for `2.1+`, `*` or `latest`, the newest that matches.

    As the standard says, a reference without a version means version 1.0; if there is none, the newest is used.
    """
    if wanted is None:
        return None
    agency, id, version = wanted
    places: Any = known
    exact = (agency, id, version or DEFAULT_VERSION)
    if exact in places:
        return exact
    if version and not is_wildcard(version):
        return None
    fitting = [place for place in places if place[:2] == (agency, id) and fits(place[2], version)]
    return max(fitting, key=lambda place: version_numbers(place[2])) if fitting else None


def _newest(places: Iterable[Reference]) -> set[Reference]:
    found: dict[tuple[str, str], Reference] = {}
    for place in places:
        before = found.setdefault(place[:2], place)
        if version_numbers(place[2]) > version_numbers(before[2]):
            found[place[:2]] = place
    return set(found.values())
