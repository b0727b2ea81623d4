"""Reads structure messages in SDMX-JSON 1.0 and 2.0."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from eval_pipeline.core.foreign import parsed_json
from eval_pipeline.tracks.sdmx.catalogue.artefacts import (
    DEFAULT_VERSION,
    SYNONYMS,
    Artefacts,
    Concept,
    Constraint,
    DimensionPart,
    Extension,
    Flow,
    Reference,
    Structure,
    in_english,
    synonyms_in,
    urn_target,
)
from eval_pipeline.tracks.sdmx.catalogue.catalogue import Term

_LISTS = (("codelists", "codes"), ("geoCodelists", "geoFeatureSetCodes"), ("valueLists", "valueItems"))
_KINDS = (*(kind for kind, _ in _LISTS), "conceptSchemes", "dataStructures", "dataflows")
_CONSTRAINTS = ("dataConstraints", "contentConstraints", "availabilityConstraints")


def read_json(content: bytes, artefacts: Artefacts, file: str) -> None:
    """Adds the artefacts of a message.

    Raises:
        ValueError: the content is not JSON, or not a structure message.
        KeyError: an artefact or item has no id.
    """
    message: Any = parsed_json(content.decode(json.detect_encoding(content)))
    data = message.get("data") if isinstance(message, dict) else None
    if not isinstance(data, dict) or not {*_KINDS, *_CONSTRAINTS} & data.keys():
        raise ValueError(f"it has no 'data' with any of {', '.join(_KINDS)}")
    _add_lists(data, artefacts, file)
    for found in data.get("conceptSchemes") or ():
        concepts = {item["id"]: _concept(item) for item in found.get("concepts") or ()}
        artefacts.add_concepts(_reference(found), concepts, file)
    for found in data.get("dataStructures") or ():
        structure = Structure(_text(found, "name"), _text(found, "description"), tuple(_dimensions(found)))
        artefacts.add_structure(_reference(found), structure, file)
    for found in data.get("dataflows") or ():
        flow = Flow(_text(found, "name"), _text(found, "description"), _place(found.get("structure")))
        artefacts.add_flow(_reference(found), flow, file)
    for found in [constraint for kind in _CONSTRAINTS for constraint in data.get(kind) or ()]:
        constraint = _constraint(found)
        if constraint is not None:
            artefacts.add_constraint(_reference(found), constraint, file)


def _add_lists(data: Mapping[str, Any], artefacts: Artefacts, file: str) -> None:
    for kind, items in _LISTS:
        for found in data.get(kind) or ():
            extensions = [_extension(entry) for entry in found.get("codelistExtensions") or ()]
            if found.get(items) or extensions:  # else a stub, which stands for the list of another message
                artefacts.add_codes(_reference(found), map(_term, found.get(items) or ()), file)
                artefacts.add_extensions(_reference(found), extensions)


def _reference(found: Mapping[str, Any]) -> Reference:
    return found.get("agencyID", ""), found["id"], found.get("version") or DEFAULT_VERSION


def _place(urn: Any) -> Reference | None:
    target = urn_target(urn) if isinstance(urn, str) else None
    return target[0] if target else None


def _text(found: Mapping[str, Any], field: str) -> str:
    by_language = found.get(f"{field}s")
    several = [*by_language.items()] if isinstance(by_language, dict) else []
    return in_english([*several, *([("", found[field])] if isinstance(found.get(field), str) else [])])


def _term(code: Mapping[str, Any]) -> Term:
    texts = [
        annotation.get("text") or annotation.get("title")
        for annotation in code.get("annotations") or ()
        if {str(annotation.get("type", "")).upper(), str(annotation.get("id", "")).upper()} & SYNONYMS
    ]
    parent = code.get("parent") or ""
    return Term(code["id"], _text(code, "name") or code["id"], _text(code, "description"), parent, synonyms_in(texts))


def _extension(entry: Mapping[str, Any]) -> Extension:
    chosen = {}
    with_children = set()
    for kind in ("inclusiveCodeSelection", "exclusiveCodeSelection"):
        if kind in entry:
            values = (entry[kind] or {}).get("memberValues") or ()
            chosen[kind] = frozenset(str(value["value"]) for value in values)
            with_children |= {str(value["value"]) for value in values if value.get("cascadeValues")}
    return Extension(
        _place(entry.get("codelist")),
        entry.get("prefix") or "",
        chosen.get("inclusiveCodeSelection"),
        chosen.get("exclusiveCodeSelection", frozenset()),
        frozenset(with_children),
    )


def _concept(item: Mapping[str, Any]) -> Concept:
    return Concept(_text(item, "name"), _place((item.get("coreRepresentation") or {}).get("enumeration")))


def _dimensions(structure: Mapping[str, Any]) -> Iterator[DimensionPart]:
    listed = (structure.get("dataStructureComponents") or {}).get("dimensionList") or {}
    for found in [*(listed.get("dimensions") or ()), *(listed.get("measureDimensions") or ())]:
        own = found.get("localRepresentation")
        concept, codes = urn_target(found.get("conceptIdentity") or ""), _place((own or {}).get("enumeration"))
        id = found.get("id") or (concept[1] if concept else "")
        if id:
            yield DimensionPart(id, concept, codes, bool(own) and codes is None)


def _constraint(found: Mapping[str, Any]) -> Constraint | None:
    """Returns the available data according to a constraint; None if the constraint says what is allowed instead."""
    if str(found.get("role") or found.get("type") or "Actual").lower() != "actual":
        return None
    attachment = found.get("constraintAttachment") or {}
    urns = [*(attachment.get("dataflows") or ()), *(attachment.get("dataStructures") or ())]
    available: dict[str, set[str]] = {}
    for region in found.get("cubeRegions") or ():
        if not region.get("include", region.get("isIncluded", True)):
            continue
        for key in [*(region.get("keyValues") or ()), *(region.get("components") or ())]:
            values = {value["value"] if isinstance(value, dict) else value for value in key.get("values") or ()}
            if values and key.get("include", True):
                available.setdefault(key["id"], set()).update(map(str, values))
    attached = tuple(place for place in map(_place, urns) if place is not None)
    return Constraint(attached, {id: frozenset(values) for id, values in available.items()})
