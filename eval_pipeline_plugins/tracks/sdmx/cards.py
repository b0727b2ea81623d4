"""Cards of a turn: the selection by data set and dimension, with right, extra and missing codes."""

from collections.abc import Iterator, Sequence
from itertools import islice

from eval_pipeline.core import shown
from eval_pipeline.core.model import Attempt, Failed
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.shown.cards import Card, CardCell, FactsCard, Mark, TableCard, Text
from eval_pipeline_plugins.tracks.sdmx.case_file import SdmxContext, SdmxGold
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue
from eval_pipeline_plugins.tracks.sdmx.metrics.macro import macro_precision, macro_recall
from eval_pipeline_plugins.tracks.sdmx.responses.accepted import used_target
from eval_pipeline_plugins.tracks.sdmx.responses.execute import misnamed, named, resolved
from eval_pipeline_plugins.tracks.sdmx.responses.scoring import PlaceScore, Verdict, from_evidence, only_if_valid
from eval_pipeline_plugins.tracks.sdmx.responses.selection import Selection

_MOST_TERMS, _MOST_SETS, _MOST_UNKNOWN, _MOST_TEXT = 60, 10, 30, 200
_MARKS: dict[Verdict, tuple[str, Mark]] = {
    "tp": ("right", Mark.RIGHT),
    "fp": ("not expected", Mark.EXTRA),
    "fn": ("missing", Mark.MISSING),
}
_TELLING: dict[Verdict, int] = {"fn": 0, "fp": 1, "tp": 2}

SdmxSeen = Seen[SdmxContext, SdmxGold, Selection]


def turn_cards(seen: SdmxSeen) -> list[Card]:
    """Returns the cards of a turn; without an attempt, they show what should have been selected."""
    return [*_cards(seen, seen.attempts[-1] if seen.attempts else None)]


def _cards(seen: SdmxSeen, final: Attempt[Selection] | None) -> Iterator[Card]:
    catalogue, target = seen.case.context.catalogue, _used_target(seen, final)
    scores = from_evidence(seen.evidence)
    failed = final.outcome if final is not None and isinstance(final.outcome, Failed) else None
    yield FactsCard("Data sets", [*_data_sets(target, scores, final, catalogue)])
    if failed is not None and final is not None:
        yield from _not_run(final, failed, target, catalogue)
        if final.artefact is not None:
            yield _both_views(scores)
        yield from _wanted(target, catalogue)
        return
    by_set: dict[str, list[PlaceScore]] = {}
    for score in scores:
        by_set.setdefault(score.data_set, []).append(score)
    telling = sorted(by_set.items(), key=lambda found: not any(map(_is_wrong, found[1])))
    for data_set, places in telling[:_MOST_SETS]:
        yield _by_dimension(data_set, places, catalogue)
    if not scores:
        yield from _wanted(target, catalogue)
    if final is not None and final.artefact is not None:
        yield from _misnamed(resolved(final.artefact, catalogue), catalogue)


def _used_target(seen: SdmxSeen, final: Attempt[Selection] | None) -> Selection:
    """Returns the accepted target that the answer is scored against."""
    gold, catalogue = seen.turn.gold, seen.case.context.catalogue
    if final is None or final.artefact is None:
        return gold.target
    said = named(final.artefact, catalogue)
    return used_target(gold, said, seen.case.context.candidates(seen.turn))


def _data_sets(
    target: Selection, scores: Sequence[PlaceScore], final: Attempt[Selection] | None, catalogue: Catalogue
) -> Iterator[tuple[str, Text]]:
    """Yields the data sets of target and selection, with their names."""
    selected = [score.data_set for score in scores if score.count("tp") or score.count("fp")]
    if final is not None and final.artefact is not None and isinstance(final.outcome, Failed):
        selected = list(resolved(final.artefact, catalogue).data_sets)
    for data_set in islice(dict.fromkeys([*target.data_sets, *selected]), _MOST_SETS):
        mark = Mark.RIGHT if data_set in selected else Mark.MISSING
        if data_set not in target.data_sets:
            mark = Mark.EXTRA
        yield data_set[:_MOST_TEXT], CardCell(_set_name(data_set, catalogue), mark)
    if not target.data_sets:
        yield "expected", "nothing is to be selected"


def _set_name(data_set: str, catalogue: Catalogue) -> str:
    found = catalogue.data_sets.get(data_set)
    return found.name[:_MOST_TEXT] if found else "not in the catalogue"


def _dimension_name(data_set: str, dimension: str, catalogue: Catalogue) -> str:
    found = catalogue.data_sets.get(data_set)
    place = found.dimensions.get(dimension) if found else None
    named = place is not None and place.name and place.name != dimension
    return f"{dimension}, {place.name}"[:_MOST_TEXT] if named and place is not None else dimension[:_MOST_TEXT]


def _is_wrong(place: PlaceScore) -> bool:
    return bool(place.count("fp") or place.count("fn"))


def _by_dimension(data_set: str, places: Sequence[PlaceScore], catalogue: Catalogue) -> TableCard:
    """Shows one row per code; dimensions with errors come first."""
    rows: list[list[Text]] = []
    for place in sorted(places, key=lambda place: not _is_wrong(place)):
        dimension = _dimension_name(data_set, place.dimension, catalogue)
        for term in sorted(place.terms, key=lambda term: _TELLING[term.verdict]):
            verdict, mark = _MARKS[term.verdict]
            remarks = [
                *(["the model was not offered it"] if not term.retrieved else []),
                *(["only the target knows it"] if term.from_target else []),
                *(["it has no data"] if term.doubt == "no_data" else []),
                *(["the target does not ask for this dimension"] if place.target == "absent" else []),
            ]
            code = CardCell(term.id[:_MOST_TEXT], mark)
            rows.append([dimension, code, term.name[:_MOST_TEXT], verdict, "; ".join(remarks)])
    count = len(rows)
    right, extra, missing = (sum(place.count(verdict) for place in places) for verdict in ("tp", "fp", "fn"))
    remark = f"{right:,} right, {missing:,} missing, {extra:,} not expected."
    columns = ["dimension", "code", "name", "verdict", "remark"]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    title = f"Selection in {data_set[:_MOST_TEXT]}, {_set_name(data_set, catalogue)}"
    return TableCard(title, columns, rows[:_MOST_TERMS], remark, True, count - min(count, _MOST_TERMS))


def _wanted(target: Selection, catalogue: Catalogue) -> Iterator[Card]:
    rows: list[list[Text]] = [
        [data_set, _dimension_name(data_set, dimension, catalogue), id[:_MOST_TEXT], name[:_MOST_TEXT]]
        for (data_set, dimension), terms in target.places.items()
        for id, name in terms
    ]
    columns = ["data set", "dimension", "code", "name"]
    left_out = max(len(rows) - _MOST_TERMS, 0)
    if rows:
        yield TableCard("What was to be selected", columns, rows[:_MOST_TERMS], left_out=left_out)


def _not_run(final: Attempt[Selection], failed: Failed, target: Selection, catalogue: Catalogue) -> Iterator[Card]:
    """Shows a selection that did not run: its codes, and which of them the catalogue lacks."""
    if final.artefact is None:
        yield FactsCard("Why there is no selection", [("error", CardCell(failed.message[:1000], Mark.WRONG))])
        return
    rows: list[list[Text]] = []
    unknown = 0
    for (data_set, dimension), terms in resolved(final.artefact, catalogue).places.items():
        wanted = {id for id, _ in target.places.get((data_set, dimension), ())}
        place = catalogue.data_set_problem(data_set) or catalogue.dimension_problem(data_set, dimension)
        for id, name in terms or [("", "")]:
            problem = place or (catalogue.term_problem(data_set, dimension, id) if id else None)
            unknown += problem is not None
            mark = Mark.WRONG if problem else Mark.RIGHT if id in wanted else Mark.EXTRA
            code = CardCell(id[:_MOST_TEXT], mark)
            told = problem or ("as in the target" if id in wanted else "not in the target")
            rows.append([dimension[:_MOST_TEXT], data_set[:_MOST_TEXT], code, name[:_MOST_TEXT], told[:500]])
    rows.sort(key=lambda row: not (isinstance(row[2], CardCell) and row[2].mark is Mark.WRONG))
    remark = f"Not in the catalogue: {unknown:,} of {len(rows):,} codes."
    columns = ["dimension", "data set", "code", "name as the model says", "what is known of it"]
    left_out = max(len(rows) - _MOST_UNKNOWN, 0)
    yield TableCard("The selection, which did not run", columns, rows[:_MOST_UNKNOWN], remark, True, left_out)


def _both_views(scores: Sequence[PlaceScore]) -> FactsCard:
    """Shows the scores of a selection that did not run: as it was given, and if only valid selections counted."""
    views = (("as it was said", scores), ("if only valid selections counted", only_if_valid(scores, answered=False)))
    return FactsCard("What it earns", [(title, _earned(places)) for title, places in views])


def _earned(places: Sequence[PlaceScore]) -> str:
    recall = macro_recall(places, answered=False)
    recalled = "not defined" if recall is None else shown.score(recall)
    counts = {verdict: sum(place.count(verdict) for place in places) for verdict in _MARKS}
    told = ", ".join(f"{counts[verdict]:,} {word}" for verdict, (word, _) in _MARKS.items())
    return f"macro recall {recalled}, macro precision {shown.score(macro_precision(places, answered=False))} ({told})"


def _misnamed(selection: Selection, catalogue: Catalogue) -> Iterator[Card]:
    rows: list[list[Text]] = []
    for (data_set, dimension), (id, name) in islice(misnamed(selection, catalogue), _MOST_UNKNOWN):
        known = " or ".join(term.name for term in catalogue.find(data_set, dimension, id))
        rows.append(
            [id[:_MOST_TEXT], CardCell(name[:_MOST_TEXT], Mark.WRONG), known[:_MOST_TEXT], dimension[:_MOST_TEXT]]
        )
    if rows:
        columns = ["code", "name as the model says", "name in the catalogue", "dimension"]
        yield TableCard("Codes under another name", columns, rows, "A code with another name is another term.", True)
