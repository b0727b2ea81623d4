"""Prints what sdmx1 reads in structure messages, as JSON: run in a process of its own.

pytest puts folders of tests on the path where `sdmx` would be one of them.
"""

import json
import sys
from typing import Any


def read(path: str) -> list[Any]:
    """Code lists, dimensions, codes with data, and names of concepts and dataflows, as `ours` of the test has them."""
    import sdmx

    found: Any = sdmx.read_sdmx(path)
    lists = {
        _place(codes): [[code.id, _english(code.name, code.id), _parent(code)] for code in codes]
        for codes in found.codelist.values()
        if not codes.is_external_reference
    }
    structures = {
        _place(structure): [d.id for d in structure.dimensions if type(d).__name__ != "TimeDimension"]
        for structure in found.structure.values()
        if not structure.is_external_reference
    }
    constraints: dict[str, dict[str, list[str]]] = {}
    for constraint in found.constraint.values():
        if constraint.role.role.name != "actual":
            continue
        cells: dict[str, set[str]] = {}
        for region in constraint.data_content_region:
            for dimension, values in region.member.items():
                plain = {value.value for value in values.values if hasattr(value, "value")}
                if region.included and plain:
                    cells.setdefault(dimension.id, set()).update(plain)
        constraints[_place(constraint)] = {id: sorted(values) for id, values in cells.items()}
    concepts = {
        _place(scheme): {concept.id: _english(concept.name, "") for concept in scheme}
        for scheme in found.concept_scheme.values()
        if not scheme.is_external_reference
    }
    flows = {
        _place(flow): _english(flow.name, "") for flow in found.dataflow.values() if not flow.is_external_reference
    }
    return [lists, structures, constraints, concepts, flows]


def _place(found: Any) -> str:
    return f"{found.maintainer.id}:{found.id}({found.version or '1.0'})"


def _parent(code: Any) -> str:
    # the parent of a code at the top is its list
    return "" if code.parent is None or type(code.parent).__name__ == "Codelist" else str(code.parent.id)


def _english(name: Any, otherwise: str) -> str:
    texts = name.localizations
    chosen = texts.get("en") or next(iter(texts.values()), "")
    return " ".join(chosen.split()) or otherwise


if __name__ == "__main__":
    json.dump({path: read(path) for path in sys.argv[1:]}, sys.stdout)
