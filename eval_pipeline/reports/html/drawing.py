"""What pages show of turns and gold: which turns (all, or a representative sample), and clipped texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.core import shown
from eval_pipeline.core.ids import text_hash
from eval_pipeline.reports.contents.gold import Row, gold_tables, suspects_table
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.html.render import Sheet, sheet_of
from eval_pipeline.reports.queries import RIGHT, outcomes_query

MOST_TURNS = 500
FEWEST = 5
"""The least number of turns shown per outcome (if there are that many), so that rare outcomes are not missing."""
Place = tuple[str, int]
"""A turn's id and the sample number."""


@dataclass(frozen=True, slots=True)
class DrawnTurns:
    """The turns that a page shows.

    Attributes:
        outcomes: for each outcome, how many turns have it and how many of them are shown; right turns first.
        kinds: the outcome of each turn that is shown.
    """

    outcomes: Mapping[str, tuple[int, int]]
    kinds: Mapping[Place, str]

    @property
    def turns(self) -> int:
        """The number of all turns."""
        return sum(there for there, _ in self.outcomes.values())

    @property
    def is_sample(self) -> bool:
        """Whether some turns are not shown."""
        return len(self.kinds) < self.turns


def drawn_turns(evaluation: Evaluation, most: int = MOST_TURNS) -> DrawnTurns:
    """Chooses all turns if there are few, otherwise a sample stratified by outcome.

    Within an outcome the turns with the smallest hashes of their ids are chosen. This is random, but always the same
    turns, whatever the date and model version.
    """
    strata: dict[str, list[Place]] = {RIGHT: []}
    for row in evaluation.in_order(evaluation.query(outcomes_query(evaluation.partition))):
        strata.setdefault(row["outcome"], []).append((row["turn_id"], row["sample"]))
    strata = {RIGHT: strata[RIGHT], **{kind: strata[kind] for kind in sorted(strata.keys() - {RIGHT})}}
    shares = allotted([len(places) for places in strata.values()], most)
    kinds: dict[Place, str] = {}
    for (kind, places), share in zip(strata.items(), shares, strict=True):
        ranked = sorted(places, key=lambda place: text_hash(f"{place[0]}~{place[1]}"))
        kinds |= dict.fromkeys(ranked[:share], kind)
    counts = zip(strata.items(), shares, strict=True)
    return DrawnTurns({kind: (len(places), share) for (kind, places), share in counts if places}, kinds)


def allotted(sizes: Sequence[int], most: int, fewest: int = FEWEST) -> list[int]:
    """Returns how many to draw from groups of these sizes.

    All are drawn if they fit; otherwise a proportional number, but at least `fewest` of each group.
    """
    if sum(sizes) <= most:
        return list(sizes)
    shares = [min(size, fewest) for size in sizes]
    left = most - sum(shares)
    if left <= 0:
        return shares
    rest = [size - share for size, share in zip(sizes, shares, strict=True)]
    exact = [left * size / sum(rest) for size in rest]
    shares = [share + int(more) for share, more in zip(shares, exact, strict=True)]
    by_remainder = sorted(range(len(sizes)), key=lambda place: (int(exact[place]) - exact[place], place))
    for place in by_remainder[: most - sum(shares)]:
        shares[place] += 1
    return shares


def clipped(text: str, most: int) -> str:
    """Returns the text, cut to at most that many bytes of a page, with a note if it was cut."""
    taken = size(text)
    if taken <= most:
        return text
    return f"{text[: most * len(text) // taken]} … [cut: {len(text):,} characters]"


def size(text: str) -> int:
    """Returns how many bytes a text takes in the page after escaping."""
    taken = len(text.encode(errors="replace"))
    return (
        taken + 4 * (text.count('"') + text.count("'")) + 3 * (text.count("<") + text.count(">")) + 4 * text.count("&")
    )


def common_bound(sizes: Iterable[int], room: int, most: int) -> int:
    """Returns the greatest length (at most `most`) to which texts must be cut to fit into the room together."""
    waiting = sorted(sizes)
    left = room
    for place, taken in enumerate(waiting):
        if taken * (len(waiting) - place) > left:
            return min(most, left // (len(waiting) - place))
        left -= taken
    return most


_MOST_SUSPECTS = 50


def gold_sheets(evaluation: Evaluation) -> Iterator[Sheet]:
    """Yields tables of figures with and without overrides, of overrides and of suspects; empty tables are left out."""
    yield from map(sheet_of, gold_tables(evaluation))
    if evaluation.suspects:
        yield suspects_sheet(evaluation.partition.suite, evaluation.suspects)


def suspects_sheet(suite: str, suspects: Sequence[Row]) -> Sheet:
    """Returns a table of the most doubtful turns that nobody has decided on yet."""
    turns = len({row["turn_id"] for row in suspects})
    more = f"; the first {_MOST_SUSPECTS} of {len(suspects):,} reasons" if len(suspects) > _MOST_SUSPECTS else ""
    caption = f"Suspected gold: {shown.turns(turns)} to look at{more}"
    return sheet_of(suspects_table(suite, suspects[:_MOST_SUSPECTS], caption))
