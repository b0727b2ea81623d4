"""Reads structure messages in SDMX-ML 2.1, 3.0 and 3.1.

Elements are known by their local names, which the versions share; they differ in how they refer to others: by a `Ref`
element or `URN` element in 2.1, by a URN as text in 3.0.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Term
from eval_pipeline_plugins.tracks.sdmx.messages.artefacts import (
    SYNONYMS,
    Artefacts,
    Concept,
    Constraint,
    DimensionPart,
    Flow,
    Structure,
    in_english,
    synonyms_in,
)
from eval_pipeline_plugins.tracks.sdmx.messages.extensions import Extension, Member, member_of
from eval_pipeline_plugins.tracks.sdmx.messages.references import (
    DEFAULT_VERSION,
    ItemReference,
    MessageError,
    Reference,
    shown,
    urn_target,
)

_LISTS = frozenset({"Codelist", "ValueList", "GeoCodelist", "GeographicCodelist", "GeoGridCodelist"})
_CODES = frozenset({"Code", "ValueItem", "GeoFeatureSetCode", "GeoGridCode"})
_CONSTRAINTS = frozenset({"ContentConstraint", "DataConstraint", "AvailabilityConstraint"})
_OLD = re.compile(r"/v([12])_0/")
"""What the namespaces of the versions before 2.1 have in common."""
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def read_ml(content: bytes, artefacts: Artefacts, file: str) -> None:
    """Adds the artefacts of a message.

    Raises:
        ValueError: the content is XML, but not a structure message.
        MessageError: it is a message of a version that is not supported, or a code or dimension has no id.
        lxml.etree.XMLSyntaxError: the content is not XML.
    """
    from lxml import etree

    place: Reference | None = None
    codes: list[Term] = []
    root = ""
    events = etree.iterparse(BytesIO(content), events=("start", "end"), resolve_entities=False, no_network=True)
    for event, element in events:
        kind = _local(element)
        if event == "start":
            if not root:
                root = kind
                if root not in {"Structure", "RegistryInterface"}:
                    raise ValueError(f"it holds '{root}', expected 'Structure'")
                _check_version(element)
            if kind in _LISTS and element.get("id"):
                place, codes = _reference(element), []
        elif kind in _CODES and place is not None:
            if not element.get("id"):
                raise MessageError(f"the code list {shown(place)} has a code without an id", element.sourceline)
            codes.append(_term(element))
            element.clear()
        elif kind in _LISTS and element.get("id") and place is not None:
            of = f"the code list {shown(place)}"
            extensions = [_extension(child, of) for child in element if _local(child) == "CodelistExtension"]
            artefacts.add_codes(place, codes, file, extensions)
            place = None
            element.clear()
        elif element.get("id") and _add(kind, element, artefacts, file):
            element.clear()


def _check_version(root: Any) -> None:
    old = _OLD.search(root.tag)
    if old:
        raise MessageError(f"SDMX-ML {old[1]}.0 is not supported; expected a message in SDMX-ML 2.1 or 3, or SDMX-JSON")


def _add(kind: str, element: Any, artefacts: Artefacts, file: str) -> bool:
    """Adds the artefact that an element describes if it is complete; returns whether the element is an artefact."""
    if kind == "ConceptScheme":
        concepts = {child.get("id"): _concept(child) for child in _below(element, "Concept") if child.get("id")}
        artefacts.add_concepts(_reference(element), concepts, file)
    elif kind == "DataStructure":
        found = Structure(_named(element, "Name"), _named(element, "Description"), tuple(_dimensions(element)))
        artefacts.add_structure(_reference(element), found, file)
    elif kind == "Dataflow":
        target = next((_target(child) for child in element if _local(child) == "Structure"), None)
        flow = Flow(_named(element, "Name"), _named(element, "Description"), target[0] if target else None)
        artefacts.add_flow(_reference(element), flow, file)
    elif kind in _CONSTRAINTS:
        constraint = _constraint(element)
        if constraint is not None:
            artefacts.add_constraint(_reference(element), constraint, file)
    else:
        return False
    return True


def _reference(element: Any) -> Reference:
    return element.get("agencyID", ""), element.get("id"), element.get("version") or DEFAULT_VERSION


def _term(element: Any) -> Term:
    parent = next((child for child in element if _local(child) == "Parent"), None)
    above = ""
    if parent is not None:
        above = next((child.get("id", "") for child in parent), "") or (parent.text or "").strip()
    texts = [
        text.text
        for annotation in _below(element, "Annotation")
        if {_child_text(annotation, "AnnotationType").upper(), annotation.get("id", "").upper()} & SYNONYMS
        for text in _synonym_texts(annotation)
    ]
    id = element.get("id")
    return Term(id, _named(element, "Name") or id, _named(element, "Description"), above, synonyms_in(texts))


def _synonym_texts(annotation: Any) -> list[Any]:
    """Returns the annotation's texts, or else its title."""
    texts = [child for child in annotation if _local(child) == "AnnotationText"]
    return texts or [child for child in annotation if _local(child) == "AnnotationTitle"]


def _extension(element: Any, of: str) -> Extension:
    base = next((_target(child) for child in element if _local(child) == "Codelist"), None)
    chosen = {_local(child): _members(child, of) for child in element}
    return Extension(
        base[0] if base else None,
        element.get("prefix", ""),
        chosen.get("InclusiveCodeSelection"),
        chosen.get("ExclusiveCodeSelection", ()),
    )


def _members(selection: Any, of: str) -> tuple[Member, ...]:
    # some versions of the schema have an element of its own for values with a wildcard
    values = [value for value in selection if _local(value) in {"MemberValue", "WildcardedMemberValue"}]
    return tuple(member_of((value.text or "").strip(), value.get("cascadeValues", ""), of) for value in values)


def _concept(element: Any) -> Concept:
    representation = next((child for child in element if _local(child) == "CoreRepresentation"), None)
    return Concept(_named(element, "Name"), _enumeration(representation))


def _dimensions(structure: Any) -> Iterator[DimensionPart]:
    for listed in _below(structure, "DimensionList"):
        for element in listed:
            if _local(element) not in {"Dimension", "MeasureDimension"}:
                continue
            concept = next((_target(child) for child in element if _local(child) == "ConceptIdentity"), None)
            own = next((child for child in element if _local(child) == "LocalRepresentation"), None)
            codes = _enumeration(own)
            # the standard takes the concept's id where a dimension has none
            id = element.get("id") or (concept[1] if concept else "")
            if not id:
                sentence = f"the data structure {shown(_reference(structure))} has a dimension without an id"
                raise MessageError(sentence, element.sourceline)
            yield DimensionPart(id, concept, codes, own is not None and codes is None)


def _enumeration(representation: Any) -> Reference | None:
    if representation is None:
        return None
    target = next((_target(found) for found in _below(representation, "Enumeration")), None)
    return target[0] if target else None


def _constraint(element: Any) -> Constraint | None:
    """Returns the available data according to a constraint; None if the constraint says what is allowed instead."""
    if (element.get("type") or element.get("role") or "Actual").lower() != "actual":
        return None
    attached = [
        target[0]
        for holder in _below(element, "ConstraintAttachment")
        for child in holder
        if _local(child) in {"Dataflow", "DataStructure"} and (target := _target(child)) is not None
    ]
    available: dict[str, set[str]] = {}
    for region in _below(element, "CubeRegion"):
        if region.get("include", region.get("isIncluded", "true")) == "false":
            continue
        for key in region:
            values = {(child.text or "").strip() for child in key if _local(child) == "Value"} - {""}
            if _local(key) in {"KeyValue", "Component"} and values and key.get("include", "true") != "false":
                available.setdefault(key.get("id", ""), set()).update(values)
    return Constraint(tuple(attached), {id: frozenset(values) for id, values in available.items()})


def _target(element: Any) -> ItemReference | None:
    """Returns the target of a reference: by its `Ref`, by its `URN`, or by a URN as its text."""
    for child in element:
        if _local(child) == "Ref":
            if child.get("maintainableParentID"):
                version = child.get("maintainableParentVersion") or ""
                return (child.get("agencyID", ""), child.get("maintainableParentID"), version), child.get("id", "")
            return (child.get("agencyID", ""), child.get("id", ""), child.get("version") or ""), ""
        if _local(child) == "URN":
            return urn_target(child.text or "")
    return urn_target(element.text or "")


def _below(element: Any, name: str) -> Iterator[Any]:
    return element.iter(f"{{*}}{name}")  # type: ignore[no-any-return]


def _named(element: Any, name: str) -> str:
    return in_english((child.get(_LANGUAGE, ""), child.text or "") for child in element if _local(child) == name)


def _child_text(element: Any, name: str) -> str:
    return next(((child.text or "").strip() for child in element if _local(child) == name), "")


def _local(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
