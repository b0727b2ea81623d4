"""Reads SDMX structure messages (SDMX-ML 2.1 and 3.0, SDMX-JSON 2) into data sets, through pysdmx."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.foreign import read_bytes
from eval_pipeline.core.memory import give_back_memory
from eval_pipeline.tracks.sdmx.catalogue.catalogue import CodeList, DataSet, Dimension, Term
from eval_pipeline.tracks.sdmx.catalogue.links import Links, Reference, read_links, urn_reference

if TYPE_CHECKING:
    from pysdmx.model import Annotation, Codelist, Concept
    from pysdmx.model.dataflow import Component, Dataflow, DataStructureDefinition

SUFFIXES = (".xml", ".json")
_SYNONYMS = frozenset({"SYNONYM", "SYNONYMS", "ALIAS", "ALIASES"})
_READERS = {
    "STRUCTURE_SDMX_ML_2_1": "pysdmx.io.xml.sdmx21.reader.structure",
    "STRUCTURE_SDMX_ML_3_0": "pysdmx.io.xml.sdmx30.reader.structure",
    "STRUCTURE_SDMX_ML_3_1": "pysdmx.io.xml.sdmx31.reader.structure",
    "STRUCTURE_SDMX_JSON_2_0_0": "pysdmx.io.json.sdmxjson2.reader.structure",
    "STRUCTURE_SDMX_JSON_2_1_0": "pysdmx.io.json.sdmxjson2.reader.structure",
}
"""pysdmx's reader of each format; its `read_sdmx` would parse all of an SDMX-ML message once more, for the header."""


def read_data_sets(paths: Sequence[Path], name: str = "") -> list[DataSet]:
    """The data sets that the messages describe together: every dataflow with its structure and its code lists.

    The newest version of a dataflow is `AGENCY:ID`, older ones `AGENCY:ID(VERSION)`. A structure that no dataflow uses
    is a data set of its own. Constraints are not applied.

    Args:
        paths: the messages; they may refer to each other.
        name: what problems call the folder of the messages.

    Raises:
        InputError: naming each message that cannot be read, and each reference that leads nowhere.
    """
    artefacts, links = _Artefacts(), Links()
    problems = [problem for path in paths for problem in _read(path, artefacts, links)]
    if problems:
        raise InputError(problems)
    found = _Reader(artefacts, links, name).data_sets()
    del artefacts, links
    give_back_memory()  # the artefacts of a large message take several times what is kept of them
    return found


class _Artefacts:
    """What the messages hold, by agency, id and version."""

    def __init__(self) -> None:
        self.code_lists: dict[Reference, Codelist] = {}
        self.concepts: dict[tuple[Reference, str], Concept] = {}
        self.structures: dict[Reference, DataStructureDefinition] = {}
        self.dataflows: dict[Reference, Dataflow] = {}

    def add(self, structures: Iterable[Any]) -> None:
        """Takes the artefacts of a message; those that a data set does not need are passed over."""
        kinds = {"Codelist": self.code_lists, "DataStructureDefinition": self.structures, "Dataflow": self.dataflows}
        for found in structures:
            kind: Any = kinds.get(type(found).__name__)
            if kind is not None:
                kind[_reference(found)] = found
            elif type(found).__name__ == "ConceptScheme":
                self.concepts |= {(_reference(found), concept.id): concept for concept in found.items}


def _read(path: Path, artefacts: _Artefacts, links: Links) -> Iterator[Problem]:
    from pysdmx.errors import PysdmxError

    try:
        artefacts.add(_structures(path))
        read_links(path, links)
    except PysdmxError as error:
        yield Problem(str(path), None, "", f"is no SDMX structure message: {error}")
    except Exception as error:  # the parsers below pysdmx raise what they like
        yield Problem(str(path), _line_of(error), "", f"is no SDMX structure message: {error}")


def _structures(path: Path) -> Sequence[Any]:
    from pysdmx.io.input_processor import process_string_to_read

    # Read by us: pysdmx would read a file of any size whole before it looks at it.
    text, kind = process_string_to_read(BytesIO(read_bytes(path)))
    reader = _READERS.get(kind.name)
    if reader is None:
        raise ValueError(f"its format is {kind.name}")
    found = import_module(reader).read(text, validate=False)
    return getattr(found, "structures", found) or ()


def _line_of(error: Exception) -> int | None:
    found = re.search(r"line (\d+)", str(error))
    return int(found[1]) if found else None


def _reference(found: Any) -> Reference:
    agency = found.agency if isinstance(found.agency, str) else found.agency.id
    return agency, found.id, found.version


class _Reader:
    """Follows the references from dataflows down to codes."""

    def __init__(self, artefacts: _Artefacts, links: Links, name: str) -> None:
        self._artefacts, self._links, self._name = artefacts, links, name
        self._lists: dict[Reference, CodeList] = {}
        self._problems: list[Problem] = []

    def data_sets(self) -> list[DataSet]:
        """Every data set. Raises InputError."""
        found = self._artefacts
        described = [(flow, self._structure_of(flow)) for flow in found.dataflows.values()]
        used = {_reference(structure) for _, structure in described if structure is not None}
        described += [(dsd, dsd) for place, dsd in found.structures.items() if place not in used]  # type: ignore[misc]
        newest = _newest(_reference(flow) for flow, _ in described)
        made = [
            self._data_set(flow, structure, _reference(flow) in newest)
            for flow, structure in described
            if structure is not None
        ]
        if not made and not self._problems:
            self._problems.append(Problem(self._name, None, "", "no structure message describes a dataflow"))
        if self._problems:
            raise InputError(dict.fromkeys(self._problems))
        return made

    def _structure_of(self, flow: "Dataflow") -> "DataStructureDefinition | None":
        if flow.structure is not None and not isinstance(flow.structure, str):
            return flow.structure
        wanted = urn_reference(flow.structure or "")
        found: DataStructureDefinition | None = _lookup(self._artefacts.structures, wanted)
        if found is None:
            self._missing(f"data structure {_shown(wanted)} of dataflow {_shown(_reference(flow))}")
        return found

    def _data_set(self, flow: Any, structure: "DataStructureDefinition", newest: bool) -> DataSet:
        agency, id, version = _reference(flow)
        name = f"{agency}:{id}" if newest else f"{agency}:{id}({version})"
        pairs = ((component, self._codes(component, name)) for component in structure.components.dimensions)
        dimensions = {
            component.id: Dimension(component.id, self._name_of(component), codes)
            for component, codes in pairs
            if codes is not None
        }
        return DataSet(name, flow.name or id, _one_line(flow.description), version, dimensions)

    def _codes(self, component: "Component", data_set: str) -> CodeList | None:
        """The code list of a dimension: its own, else its concept's; None for one without, such as the time."""
        if component.local_codes is not None:
            return self._code_list(_reference(component.local_codes), component.local_codes)
        wanted = urn_reference(component.local_enum_ref) if component.local_enum_ref else self._of_concept(component)
        if wanted is None:
            return None
        found = _lookup(self._artefacts.code_lists, wanted)
        if found is None:
            self._missing(f"code list {_shown(wanted)} of dimension {component.id} of {data_set}")
            return None
        return self._code_list(_reference(found), found)

    def _of_concept(self, component: "Component") -> Reference | None:
        concept: Any = component.concept
        if hasattr(concept, "item_id"):
            place = ((concept.agency, concept.id, concept.version), concept.item_id)
            if place in self._links.concepts:
                return self._links.concepts[place]
            concept = self._artefacts.concepts.get(place)
        codes = getattr(concept, "codes", None)
        if codes is not None:
            self._artefacts.code_lists.setdefault(_reference(codes), codes)
            return _reference(codes)
        enumeration = getattr(concept, "enum_ref", None)
        return urn_reference(enumeration) if enumeration else None

    def _code_list(self, place: Reference, found: Any) -> CodeList:
        if place not in self._lists:
            parents = self._links.parents.get(place, {})
            terms = tuple(_term(code, parents) for code in _all_codes(found))
            self._lists[place] = CodeList(_shown(place), terms)
        return self._lists[place]

    def _name_of(self, component: "Component") -> str:
        if component.name:
            return component.name
        concept: Any = component.concept
        if hasattr(concept, "item_id"):
            concept = self._artefacts.concepts.get(((concept.agency, concept.id, concept.version), concept.item_id))
        return getattr(concept, "name", None) or component.id

    def _missing(self, what: str) -> None:
        self._problems.append(Problem(self._name, None, "", f"no structure message holds the {what}"))


def _all_codes(found: Any) -> Iterator[Any]:
    """Codes of a flat list; of a hierarchy every code once, the upper ones first."""
    if hasattr(found, "items"):
        yield from found.items
        return
    seen: set[str] = set()
    waiting = list(found.codes)
    while waiting:
        code = waiting.pop(0)
        if code.id not in seen:
            seen.add(code.id)
            yield code
        waiting += code.codes


def _term(code: Any, parents: Mapping[str, str]) -> Term:
    return Term(
        id=code.id,
        name=_one_line(code.name) or code.id,
        description=_one_line(code.description),
        parent=parents.get(code.id, ""),
        synonyms=_synonyms(code.annotations) if code.annotations else (),
    )


def _synonyms(annotations: "Sequence[Annotation]") -> tuple[str, ...]:
    """Texts of annotations whose type or id says that they are synonyms, parted by semicolons."""
    found = (a for a in annotations if {(a.type or "").upper(), (a.id or "").upper()} & _SYNONYMS)
    texts = (part.strip() for a in found for part in f"{a.text or a.title or ''}".split(";"))
    return tuple(dict.fromkeys(text for text in texts if text))


def _lookup(known: Mapping[Reference, Any], wanted: Reference | None) -> Any:
    """The artefact; of a wildcard version (`2.1+`, `*`) or an absent one the newest that fits."""
    if wanted is None:
        return None
    if wanted in known:
        return known[wanted]
    agency, id, version = wanted
    if version and not set(version) & {"+", "*"}:
        return None
    stem = re.split(r"[+*]", version)[0]
    fitting = [place for place in known if place[:2] == (agency, id) and _at_least(place[2], stem)]
    return known[max(fitting, key=lambda place: _numbers(place[2]))] if fitting else None


def _at_least(version: str, stem: str) -> bool:
    """Whether a version may stand for `<stem>+`: of the same major version, and not older."""
    asked = _numbers(stem)
    return not asked or (_numbers(version)[:1] == asked[:1] and _numbers(version) >= asked)


def _newest(places: Iterable[Reference]) -> set[Reference]:
    found: dict[tuple[str, str], Reference] = {}
    for place in places:
        before = found.setdefault(place[:2], place)
        if _numbers(place[2]) > _numbers(before[2]):
            found[place[:2]] = place
    return set(found.values())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _shown(place: Reference | None) -> str:
    return "that it does not name" if place is None else f"{place[0]}:{place[1]}({place[2]})"


def _one_line(text: str | None) -> str:
    return " ".join(text.split()) if text else ""
