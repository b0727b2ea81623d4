"""Places, i.e. turn and sample, as one Arrow array of texts: a million of them take little memory and time."""

import pyarrow as pa
import pyarrow.compute as pc

_AT_ONCE = 50_000
"""Places that are compared with their neighbours at once."""


def places_of(turn_ids: pa.Array, samples: pa.Array) -> pa.Array:
    """Returns `<turn id> <sample>` for each row."""
    return pc.binary_join_element_wise(turn_ids, samples.cast(pa.string()), " ")


def places_of_rows(rows: pa.Table) -> pa.Array:
    """Returns the places of a table's rows, from its columns `turn_id` and `sample`."""
    return places_of(rows["turn_id"].combine_chunks(), rows["sample"].combine_chunks())


def without(places: pa.Array, others: pa.Array) -> pa.Array:
    """Returns the places that are not among the others, in order."""
    return places.filter(pc.invert(pc.is_in(places, others)))


def all_differ(places: pa.Array) -> bool:
    """Whether no place is there twice; a table of all places would take ten times the memory of their order."""
    order = pc.sort_indices(places)
    for start in range(0, len(order), _AT_ONCE):
        some = places.take(order.slice(start, _AT_ONCE + 1))
        if pc.any(pc.equal(some.slice(0, len(some) - 1), some.slice(1))).as_py():
            return False
    return True
