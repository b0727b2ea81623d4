"""What a target asks for and what a system selects: terms by data set and dimension."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eval_pipeline.core.model import Json

Pair = tuple[str, str]
"""Id and name: a term."""
Place = tuple[str, str]
"""Data set and dimension."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Terms by data set and dimension.

    Attributes:
        places: (data set, dimension) → its terms, each once, in the order in which they came; may be empty.
    """

    places: Mapping[Place, tuple[Pair, ...]]

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets of which at least one term is named."""
        return tuple(dict.fromkeys(data_set for (data_set, _), terms in self.places.items() if terms))

    @property
    def terms(self) -> int:
        """How many terms there are."""
        return sum(map(len, self.places.values()))


NOTHING = Selection({})


def merged(entries: Iterable[tuple[Place, Iterable[Pair]]]) -> Selection:
    """A selection from entries that may name a place or a term more than once."""
    places: dict[Place, dict[Pair, None]] = {}
    for place, terms in entries:
        places.setdefault(place, {}).update(dict.fromkeys(terms))
    return Selection({place: tuple(terms) for place, terms in places.items()})


def selection_json(selection: Selection) -> dict[str, Json]:
    """The selection in the answer form: `{"indicator_selection": [...]}`, as the suites' files have it."""
    data_sets: dict[str, list[Json]] = {}
    for (data_set, dimension), terms in selection.places.items():
        values = [{"id": id, "name": name} for id, name in terms]
        data_sets.setdefault(data_set, []).append({"dimension_name": dimension, "values": values})
    entries = [{"dataset_id": data_set, "dimensions": found} for data_set, found in data_sets.items()]
    return {"indicator_selection": entries}


def selection_from_json(value: Json) -> Selection:
    """The selection that `selection_json` wrote."""
    return merged(
        ((entry["dataset_id"], found["dimension_name"]), [(term["id"], term["name"]) for term in found["values"]])
        for entry in value["indicator_selection"]
        for found in entry["dimensions"]
    )


def selection_text(selection: Selection) -> str:
    """The selection as people read it: a line a data set and dimension, its terms with their names."""
    lines = [
        f"{data_set} {dimension}: {', '.join(f'{id} ({name})' for id, name in terms)}"
        for (data_set, dimension), terms in selection.places.items()
        if terms
    ]
    return "\n".join(lines) or "(nothing)"
