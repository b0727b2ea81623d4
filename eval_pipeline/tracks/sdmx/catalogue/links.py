"""What pysdmx leaves out of a structure message: parents of codes, and code lists of concepts from other messages.

pysdmx takes code lists to be flat, and of a concept's representation keeps only a code list in the same message.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from eval_pipeline.core.foreign import read_bytes

Reference = tuple[str, str, str]
"""Agency, id and version of a code list or concept scheme."""


@dataclass(slots=True)
class Links:
    """Links of one or more messages.

    Attributes:
        parents: code list → code → the code above it.
        concepts: (concept scheme, concept) → its code list.
    """

    parents: dict[Reference, dict[str, str]] = field(default_factory=dict)
    concepts: dict[tuple[Reference, str], Reference] = field(default_factory=dict)


def read_links(path: Path, links: Links) -> None:
    """Adds the links of a structure message in SDMX-ML or SDMX-JSON; the message is one that pysdmx could read."""
    content = read_bytes(path)
    if path.suffix.lower() == ".json":
        _read_json(json.loads(content), links)
    elif b"Parent>" in content or b"CoreRepresentation>" in content:
        _read_xml(content, links)


def urn_reference(urn: str) -> Reference | None:
    """Agency, id and version in a URN: `…Codelist=IMF:CL_FREQ(1.0.3)`, with an item behind it or not."""
    agency, colon, rest = urn.rpartition("=")[2].partition(":")
    id, bracket, version = rest.partition("(")
    return (agency, id, version.partition(")")[0]) if colon and bracket else None


def _read_xml(content: bytes, links: Links) -> None:
    from lxml import etree

    scheme: Reference = ("", "", "")
    for event, element in etree.iterparse(
        BytesIO(content), events=("start", "end"), resolve_entities=False, no_network=True
    ):
        kind = _local(element.tag)
        if event == "start":
            if kind in {"Codelist", "ConceptScheme"} and element.get("id"):
                scheme = (element.get("agencyID", ""), element.get("id", ""), element.get("version", "1.0"))
        elif kind == "Code":
            parent = next((_xml_parent(child) for child in element if _local(child.tag) == "Parent"), "")
            if parent:
                links.parents.setdefault(scheme, {})[element.get("id", "")] = parent
            element.clear()
        elif kind == "Concept":
            found = next(_xml_enumerations(element), None)
            if found is not None:
                links.concepts[scheme, element.get("id", "")] = found
            element.clear()


def _xml_parent(element: Any) -> str:
    """`<Parent><Ref id="A"/></Parent>` in SDMX-ML 2.1, `<Parent>A</Parent>` in 3.0."""
    return next((child.get("id", "") for child in element), (element.text or "").strip())


def _xml_enumerations(concept: Any) -> Iterator[Reference]:
    for element in concept.iter():
        if _local(element.tag) == "Enumeration":
            for child in element:
                if child.get("id"):
                    yield child.get("agencyID", ""), child.get("id"), child.get("version", "")
                elif (found := urn_reference((child.text or "").strip())) is not None:
                    yield found
            if (found := urn_reference((element.text or "").strip())) is not None:
                yield found


def _local(tag: Any) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _read_json(message: Mapping[str, Any], links: Links) -> None:
    data = message.get("data", {})
    for found in data.get("codelists", ()):
        parents = {code["id"]: code["parent"] for code in found.get("codes", ()) if code.get("parent")}
        if parents:
            links.parents[_json_reference(found)] = parents
    for found in data.get("conceptSchemes", ()):
        for concept in found.get("concepts", ()):
            reference = urn_reference(concept.get("coreRepresentation", {}).get("enumeration", ""))
            if reference is not None:
                links.concepts[_json_reference(found), concept["id"]] = reference


def _json_reference(found: Mapping[str, Any]) -> Reference:
    return found.get("agencyID", ""), found["id"], found.get("version", "1.0")
