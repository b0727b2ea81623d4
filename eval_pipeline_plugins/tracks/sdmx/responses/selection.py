"""The common form of targets and of systems' answers: terms by data set and dimension."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eval_pipeline.core.model import Json

Pair = tuple[str, str]
"""A term, as its id and name."""
Place = tuple[str, str]
"""A data set and one of its dimensions."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected terms by data set and dimension.

    Attributes:
        places: the terms of each (data set, dimension), without duplicates, in the order given; may be empty.
    """

    places: Mapping[Place, tuple[Pair, ...]]

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets with at least one term."""
        return tuple(dict.fromkeys(data_set for (data_set, _), terms in self.places.items() if terms))

    @property
    def terms(self) -> int:
        """The number of terms."""
        return sum(map(len, self.places.values()))


NOTHING = Selection({})


def merged(entries: Iterable[tuple[Place, Iterable[Pair]]]) -> Selection:
    """Makes a selection from entries; a place or a term may occur in several of them."""
    places: dict[Place, dict[Pair, None]] = {}
    for place, terms in entries:
        places.setdefault(place, {}).update(dict.fromkeys(terms))
    return Selection({place: tuple(terms) for place, terms in places.items()})


def selection_json(selection: Selection) -> dict[str, Json]:
    """Returns the selection in the JSON form of answers and suite files: `{"indicator_selection": [...]}`."""
    data_sets: dict[str, list[Json]] = {}
    for (data_set, dimension), terms in selection.places.items():
        values = [{"id": id, "name": name} for id, name in terms]
        data_sets.setdefault(data_set, []).append({"dimension_name": dimension, "values": values})
    entries = [{"dataset_id": data_set, "dimensions": found} for data_set, found in data_sets.items()]
    return {"indicator_selection": entries}


def selection_from_json(value: Json) -> Selection:
    """Reads a selection that `selection_json` wrote."""
    return merged(
        ((entry["dataset_id"], found["dimension_name"]), [(term["id"], term["name"]) for term in found["values"]])
        for entry in value["indicator_selection"]
        for found in entry["dimensions"]
    )


def selection_text(selection: Selection) -> str:
    """Returns the selection as readable text: one line for each data set and dimension, with the names of the terms."""
    lines = [
        f"{data_set} {dimension}: {', '.join(f'{id} ({name})' for id, name in terms)}"
        for (data_set, dimension), terms in selection.places.items()
        if terms
    ]
    return "\n".join(lines) or "(nothing)"
