"""Reads structure messages in SDMX-JSON 1.0 and 2.0."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from eval_pipeline.core.reading.json_reading import parsed_json
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
from eval_pipeline_plugins.tracks.sdmx.messages.json_parts import id_of, listed, listed_or_texts, part, text_of
from eval_pipeline_plugins.tracks.sdmx.messages.references import (
    DEFAULT_VERSION,
    MessageError,
    Reference,
    shown,
    urn_target,
)

_LISTS = (
    ("codelists", "codes"),
    ("geographicCodelists", "geoFeatureSetCodes"),
    ("geoGridCodelists", "geoGridCodes"),
    ("valueLists", "valueItems"),
)
_KINDS = (*(kind for kind, _ in _LISTS), "conceptSchemes", "dataStructures", "dataflows")
_CONSTRAINTS = ("dataConstraints", "contentConstraints", "availabilityConstraints")


def read_json(content: bytes, artefacts: Artefacts, file: str) -> None:
    """Adds the artefacts of a message.

    Raises:
        ValueError: the content is not JSON, or not a structure message.
        MessageError: a part is of the wrong kind, or an artefact or item has no id.
    """
    message: Any = parsed_json(content.decode(json.detect_encoding(content)), finite=False)
    data = message.get("data") if isinstance(message, dict) else None
    if not isinstance(data, dict) or not {*_KINDS, *_CONSTRAINTS} & data.keys():
        raise ValueError(f"it has no 'data' with any of {', '.join(_KINDS)}")
    _add_lists(data, artefacts, file)
    for found in listed(data, "conceptSchemes", "the message"):
        of = _named("concept scheme", found)
        concepts = {id_of(item, "concept", of): _concept(item, of) for item in listed(found, "concepts", of)}
        artefacts.add_concepts(_reference(found), concepts, file)
    for found in listed(data, "dataStructures", "the message"):
        structure = Structure(_text(found, "name"), _text(found, "description"), tuple(_dimensions(found)))
        artefacts.add_structure(_reference(found), structure, file)
    for found in listed(data, "dataflows", "the message"):
        flow = Flow(_text(found, "name"), _text(found, "description"), _place(found.get("structure")))
        artefacts.add_flow(_reference(found), flow, file)
    for found in [constraint for kind in _CONSTRAINTS for constraint in listed(data, kind, "the message")]:
        constraint = _constraint(found)
        if constraint is not None:
            artefacts.add_constraint(_reference(found), constraint, file)


def _add_lists(data: Mapping[str, Any], artefacts: Artefacts, file: str) -> None:
    for kind, items in _LISTS:
        for found in listed(data, kind, "the message"):
            of = _named("code list", found)
            extensions = [_extension(entry, of) for entry in listed(found, "codelistExtensions", of)]
            codes = [_term(code, of) for code in listed(found, items, of)]
            artefacts.add_codes(_reference(found), codes, file, extensions)


def _named(kind: str, found: Mapping[str, Any]) -> str:
    """Returns how problems name an artefact, for example `the code list A:CL_G(1.0)`."""
    return f"the {kind} {shown(_reference(found))}"


def _reference(found: Mapping[str, Any]) -> Reference:
    return found.get("agencyID") or "", id_of(found, "artefact", "the message"), found.get("version") or DEFAULT_VERSION


def _place(urn: Any) -> Reference | None:
    target = urn_target(urn) if isinstance(urn, str) else None
    return target[0] if target else None


def _text(found: Mapping[str, Any], field: str) -> str:
    by_language = found.get(f"{field}s")
    several = [*by_language.items()] if isinstance(by_language, dict) else []
    return in_english([*several, *([("", found[field])] if isinstance(found.get(field), str) else [])])


def _term(code: Mapping[str, Any], of: str) -> Term:
    id = id_of(code, "code", of)
    texts = [
        annotation.get("text") or annotation.get("title")
        for annotation in listed(code, "annotations", f"{of}, code '{id}'")
        if {str(annotation.get("type", "")).upper(), str(annotation.get("id", "")).upper()} & SYNONYMS
    ]
    parent = code.get("parent") or ""
    return Term(id, _text(code, "name") or id, _text(code, "description"), parent, synonyms_in(texts))


def _extension(entry: Mapping[str, Any], of: str) -> Extension:
    inclusive, exclusive = (
        _members(part(entry, kind, of), of) if kind in entry else None
        for kind in ("inclusiveCodeSelection", "exclusiveCodeSelection")
    )
    return Extension(_place(entry.get("codelist")), text_of(entry, "prefix", of), inclusive, exclusive or ())


def _members(selection: Mapping[str, Any], of: str) -> tuple[Member, ...]:
    """Returns the member values: texts, or objects with a value; wildcards may stand in a list of their own."""
    fields = ("memberValues", "wildcardedMemberValues")
    found = [value for field in fields for value in listed_or_texts(selection, field, of)]
    entries = [{"value": value} if isinstance(value, str) else value for value in found]
    return tuple(member_of(text_of(entry, "value", of), _cascade(entry), of) for entry in entries)


def _cascade(found: Mapping[str, Any]) -> str:
    value = found.get("cascadeValues")
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _concept(item: Mapping[str, Any], of: str) -> Concept:
    return Concept(_text(item, "name"), _place(part(item, "coreRepresentation", of).get("enumeration")))


def _dimensions(structure: Mapping[str, Any]) -> Iterator[DimensionPart]:
    of = _named("data structure", structure)
    components = part(part(structure, "dataStructureComponents", of), "dimensionList", of)
    if "dimensions" in components and components["dimensions"] is None:  # a stub has no such list at all
        raise MessageError(f"{of}: expected 'dimensions' as a list of objects, found null")
    for found in [*listed(components, "dimensions", of), *listed(components, "measureDimensions", of)]:
        own = part(found, "localRepresentation", of)
        concept, codes = urn_target(found.get("conceptIdentity") or ""), _place(own.get("enumeration"))
        id = id_of(found, "dimension", of) if found.get("id") is not None or not concept else concept[1]
        yield DimensionPart(id, concept, codes, bool(own) and codes is None)


def _constraint(found: Mapping[str, Any]) -> Constraint | None:
    """Returns the available data according to a constraint; None if the constraint says what is allowed instead."""
    if str(found.get("role") or found.get("type") or "Actual").lower() != "actual":
        return None
    of = _named("constraint", found)
    attachment = part(found, "constraintAttachment", of)
    urns = [*(attachment.get("dataflows") or ()), *(attachment.get("dataStructures") or ())]
    available: dict[str, set[str]] = {}
    for region in listed(found, "cubeRegions", of):
        if not region.get("include", region.get("isIncluded", True)):
            continue
        for key in [*listed(region, "keyValues", of), *listed(region, "components", of)]:
            values = {value["value"] if isinstance(value, dict) else value for value in key.get("values") or ()}
            if values and key.get("include", True):
                available.setdefault(id_of(key, "dimension", of), set()).update(map(str, values))
    attached = tuple(place for place in map(_place, urns) if place is not None)
    return Constraint(attached, {id: frozenset(values) for id, values in available.items()})
