"""Reads SDMX structure messages (SDMX-ML 2.1 and 3, SDMX-JSON 1 and 2) of any agency into data sets.

References are followed across all messages, in whatever order they are given. Only what dimensions need must exist.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.memory import give_back_memory
from eval_pipeline.tracks.sdmx.catalogue.artefacts import (
    DEFAULT_VERSION,
    Artefacts,
    Concept,
    DimensionPart,
    Flow,
    Reference,
    Structure,
)
from eval_pipeline.tracks.sdmx.catalogue.catalogue import CodeList, DataSet, Dimension, Term
from eval_pipeline.tracks.sdmx.catalogue.packed import PACKED, messages_in
from eval_pipeline.tracks.sdmx.catalogue.sdmx_json import read_json
from eval_pipeline.tracks.sdmx.catalogue.sdmx_ml import read_ml

SUFFIXES = (".xml", ".json", *PACKED)


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a dimension needs but no message contains.

    Attributes:
        file: the message that refers to it.
        what: `data structure`, `concept scheme`, `concept` or `code list`.
        reference: which one is missing, as `AGENCY:ID(VERSION)`.
        of: the artefact that refers to it.
    """

    file: str
    what: str
    reference: str
    of: str

    @property
    def sentence(self) -> str:
        """Describes what is missing, without the file."""
        return f"no structure message holds the {self.what} {self.reference} of {self.of}"


@dataclass(frozen=True, slots=True)
class Found:
    """The content of messages.

    Attributes:
        data_sets: every data set; a dimension whose code list is missing has no codes.
        missing: what dimensions need but no message contains.
        artefacts: everything that was read.
    """

    data_sets: tuple[DataSet, ...]
    missing: tuple[Missing, ...]
    artefacts: Artefacts = field(repr=False)


def read_data_sets(paths: Sequence[Path], name: str = "") -> list[DataSet]:
    """Returns the data sets described by the messages together: every dataflow with its structure and code lists.

    The newest version of a dataflow is `AGENCY:ID`, older ones are `AGENCY:ID(VERSION)`. A structure that no dataflow
    uses is a data set of its own.

    Args:
        paths: the messages, which may refer to each other.
        name: name of the messages' folder in problem reports.

    Raises:
        InputError: names each message that cannot be read, and each dangling reference.
    """
    found = read_structures(paths)
    problems = [Problem(name, None, "", missing.sentence) for missing in found.missing]
    if not found.data_sets and not problems:
        problems.append(Problem(name, None, "", "no structure message describes a dataflow"))
    if problems:
        raise InputError(dict.fromkeys(problems))
    data_sets = [*found.data_sets]
    del found
    give_back_memory()  # the parsed form of a large message takes several times the memory of the result
    return data_sets


def read_structures(paths: Sequence[Path]) -> Found:
    """Reads messages; missing artefacts are reported in the result instead of raising an error.

    Raises:
        InputError: names each message that cannot be read.
    """
    artefacts = Artefacts()
    problems = [problem for path in paths for problem in _read(path, artefacts)]
    if problems:
        raise InputError(problems)
    return _Resolver(artefacts).found()


def _read(path: Path, artefacts: Artefacts) -> Iterator[Problem]:
    file = str(path)
    try:
        for file, content in messages_in(path):
            reader = read_json if content.lstrip()[:1] in {b"{", b"["} else read_ml
            reader(content.removeprefix(b"\xef\xbb\xbf"), artefacts, file)
    except OSError as error:
        yield Problem(file, None, "", f"is no SDMX structure message: it {error}")
    except Exception as error:  # parsers of foreign files may raise anything
        message = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
        yield Problem(file, _line_of(error), "", f"is no SDMX structure message: {message}")


def _line_of(error: Exception) -> int | None:
    line = getattr(error, "lineno", None)
    return line if isinstance(line, int) and line > 0 else None


class _Resolver:
    """Follows the references from dataflows to codes."""

    def __init__(self, artefacts: Artefacts) -> None:
        self._artefacts = artefacts
        self._lists: dict[Reference, CodeList] = {}
        self._missing: dict[Missing, None] = {}

    def found(self) -> Found:
        """Returns every data set, and the missing artefacts."""
        held = self._artefacts
        described: list[tuple[Reference, Flow | Structure, Reference]] = []
        for place, flow in held.flows.items():
            structure = _match(held.structures, flow.structure)
            if structure is None:
                self._lacks("data structure", flow.structure, f"dataflow {shown(place)}", held.files["dataflow", place])
            else:
                described.append((place, flow, structure))
        used = {structure for *_, structure in described}
        described += [(place, found, place) for place, found in held.structures.items() if place not in used]
        # The order of the files must not matter where artefacts are told apart by version alone.
        newest = _newest(place for place, *_ in described)
        data_sets = tuple(self._data_set(*entry, newest=entry[0] in newest) for entry in described)
        return Found(data_sets, tuple(self._missing), held)

    def _data_set(self, place: Reference, told: Flow | Structure, structure: Reference, *, newest: bool) -> DataSet:
        agency, id, version = place
        name = f"{agency}:{id}" if newest else f"{agency}:{id}({version})"
        file = self._artefacts.files["data structure", structure]
        pairs = [(part, self._codes(part, name, file)) for part in self._artefacts.structures[structure].dimensions]
        dimensions = {
            part.id: Dimension(part.id, self._name_of(part), codes) for part, codes in pairs if codes is not None
        }
        available = _available(self._artefacts, place, structure)
        return DataSet(name, told.name or id, told.description, version, dimensions, available)

    def _codes(self, part: DimensionPart, data_set: str, file: str) -> CodeList | None:
        """Returns a dimension's own code list, or else its concept's; None if its values are not codes."""
        of = f"dimension {part.id} of {data_set}"
        wanted = part.codes
        if wanted is None and not part.format_only:
            wanted = self._of_concept(part, of, file)
        if wanted is None:
            return None
        place = _match(self._artefacts.code_lists, wanted)
        if place is not None:
            return self._code_list(place, self._artefacts.code_lists[place])
        place = _match(self._artefacts.schemes, wanted)
        if place is not None:  # the measure dimension of SDMX 2.1 takes its codes from concepts
            concepts = self._artefacts.schemes[place].items()
            return self._code_list(place, tuple(Term(id, concept.name or id) for id, concept in concepts))
        self._lacks("code list", wanted, of, file)
        return CodeList(shown(wanted), ())

    def _of_concept(self, part: DimensionPart, of: str, file: str) -> Reference | None:
        """Returns the code list of a dimension's concept; None if the concept has none or is not in any message."""
        if part.concept is None:
            return None
        scheme = _match(self._artefacts.schemes, part.concept[0])
        if scheme is None:
            self._lacks("concept scheme", part.concept[0], of, file)
            return None
        concept = self._artefacts.schemes[scheme].get(part.concept[1])
        if concept is None:
            self._lacks(f"concept {part.concept[1]} in the concept scheme", part.concept[0], of, file)
            return None
        return concept.codes

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

    def _lacks(self, what: str, wanted: Reference | None, of: str, file: str) -> None:
        self._missing[Missing(file, what, shown(wanted), of)] = None


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


def is_wildcard(version: str) -> bool:
    """Whether a version is a wildcard for the newest of several."""
    return bool(set(version) & {"+", "*"}) or version.lower() in {"latest", "all"}


def fits(version: str, asked: str) -> bool:
    """Whether a version matches `<stem>+` (same major version, not older), `1.*`, or any other wildcard."""
    if "+" in asked:
        stem = version_numbers(asked)
        return version_numbers(version)[:1] == stem[:1] and version_numbers(version) >= stem
    stem = version_numbers(asked.split("*")[0])
    return version_numbers(version)[: len(stem)] == stem


def _newest(places: Iterable[Reference]) -> set[Reference]:
    found: dict[tuple[str, str], Reference] = {}
    for place in places:
        before = found.setdefault(place[:2], place)
        if version_numbers(place[2]) > version_numbers(before[2]):
            found[place[:2]] = place
    return set(found.values())


def version_numbers(version: str) -> tuple[int, ...]:
    """Returns the numbers of a version as a sort key."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def shown(place: Reference | None) -> str:
    """Returns a reference as people write it, `AGENCY:ID(VERSION)`."""
    if place is None:
        return "that it does not name"
    return f"{place[0]}:{place[1]}({place[2]})" if place[2] else f"{place[0]}:{place[1]}"
