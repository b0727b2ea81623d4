"""Compares a selection with its target, dimension by dimension; the metrics count the result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from eval_pipeline.core.model import Evidence, Json
from eval_pipeline_plugins.tracks.sdmx.responses.selection import Pair, Place, Selection

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue, Doubt
    from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Candidates

Verdict = Literal["tp", "fp", "fn"]
TargetKind = Literal["given", "empty", "absent"]
KIND = "dimension"


@dataclass(frozen=True, slots=True)
class JudgedTerm:
    """A term of the target or of the selection.

    Attributes:
        retrieved: whether it was among the candidates.
        from_target: whether it is missing from the supplied structures; see `catalogue.Term`.
        doubt: what the catalogue lacks of it, or None; see `catalogue.Doubt`.
        total: whether the code means "all"; see `catalogue.Conventions`.
        searched: whether its dimension was searched, because it has too many terms to show them all.
        rank: its rank there; see `retrieval.Candidates`. None if it was not found, or not searched for.
    """

    id: str
    name: str
    verdict: Verdict
    retrieved: bool = True
    from_target: bool = False
    doubt: "Doubt | None" = None
    total: bool = False
    searched: bool = False
    rank: int | None = None

    @property
    def valid(self) -> bool:
        """Whether the catalogue has data set, dimension and id, even if under another name."""
        return self.doubt in {None, "other_name", "no_data"}


@dataclass(frozen=True, slots=True)
class PlaceScore:
    """The result for one dimension of one data set.

    Attributes:
        target: `given` if the target has terms for it, `empty` if the target names it without terms, `absent` if the
            target does not name it.
        said_as, target_as: the data set's id as the answer, or the target, writes it, if it is not the catalogue's.
        terms: first the terms of the target, then those that were only selected.
        indicator: whether the dimension makes the indicator; see `catalogue.Conventions`.
    """

    data_set: str
    dimension: str
    target: TargetKind
    terms: tuple[JudgedTerm, ...]
    said_as: str | None = None
    target_as: str | None = None
    indicator: bool = False

    def count(self, verdict: Verdict) -> int:
        """Returns how many terms have this verdict."""
        return sum(term.verdict == verdict for term in self.terms)

    @property
    def precision(self) -> float | None:
        """TP / (TP + FP); 0 if the target has terms but nothing was selected; None if neither side has a term."""
        if not self.terms:
            return None
        selected = self.count("tp") + self.count("fp")
        return self.count("tp") / selected if selected else 0.0

    @property
    def recall(self) -> float | None:
        """TP / (TP + FN); None if the target has no term here."""
        wanted = self.count("tp") + self.count("fn")
        return self.count("tp") / wanted if wanted else None

    @property
    def f1(self) -> float | None:
        """2 TP / (2 TP + FP + FN); None if neither side has a term."""
        both = 2 * self.count("tp")
        return both / (both + self.count("fp") + self.count("fn")) if self.terms else None


def compare(
    target: Selection,
    selected: Selection,
    candidates: "Candidates",
    catalogue: "Catalogue",
    aliases: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> tuple[PlaceScore, ...]:
    """Returns a score for each place that the target or the selection names, the target's places first.

    Args:
        target: what should be selected.
        selected: what was selected.
        candidates: what was offered.
        catalogue: what there is.
        aliases: data sets that the selection, and the target, write in another way than the catalogue.
    """
    said, wanted = aliases
    return tuple(
        replace(
            score,
            said_as=said.get(score.data_set) if score.count("tp") or score.count("fp") else None,
            target_as=wanted.get(score.data_set) if score.target != "absent" else None,
        )
        for score in _scores(target, selected, candidates, catalogue)
    )


def _scores(
    target: Selection, selected: Selection, candidates: "Candidates", catalogue: "Catalogue"
) -> Iterator[PlaceScore]:
    for place in dict.fromkeys([*target.places, *selected.places]):
        wanted, chosen = target.places.get(place, ()), selected.places.get(place, ())
        wanted_set, chosen_set = set(wanted), set(chosen)
        judged: list[tuple[Pair, Verdict]] = [(pair, "tp" if pair in chosen_set else "fn") for pair in wanted]
        judged += [(pair, "fp") for pair in chosen if pair not in wanted_set]
        kind: TargetKind = "given" if wanted else "empty" if place in target.places else "absent"
        terms = tuple(_judged(place, pair, verdict, candidates, catalogue) for pair, verdict in judged)
        yield PlaceScore(*place, kind, terms, indicator=catalogue.conventions.is_indicator(*place))


def _judged(place: Place, pair: Pair, verdict: Verdict, candidates: "Candidates", catalogue: "Catalogue") -> JudgedTerm:
    id, name = pair
    from_target = any(term.from_target for term in catalogue.find(*place, id) if term.name == name)
    total, doubt = catalogue.conventions.is_total(place[1], id), catalogue.doubt(*place, pair)
    ranks = candidates.ranks.get(place)
    rank = None if ranks is None else ranks.get(pair)
    # What is not shown at all, because another data set fitted better, was looked for in vain.
    searched = ranks is not None or place not in candidates.places
    offered = candidates.offers(place, pair)
    return JudgedTerm(id, name, verdict, offered, from_target, doubt, total, searched, rank)


def only_if_valid(places: Sequence[PlaceScore], answered: bool) -> tuple[PlaceScore, ...]:
    """Returns the scores, where a selection that is not completely in the catalogue counts as empty."""
    return tuple(places) if answered else tuple(map(_unselected, places))


def without_totals(places: Sequence[PlaceScore]) -> tuple[PlaceScore, ...]:
    """Returns the scores without dimensions where one side names only totals and the other nothing.

    Both say the same: a total is what a query gets if it leaves the dimension open.
    """
    return tuple(
        place
        for place in places
        if not place.terms
        or {term.verdict for term in place.terms} not in ({"fp"}, {"fn"})
        or not all(term.total for term in place.terms)
    )


def _unselected(place: PlaceScore) -> PlaceScore:
    terms = tuple(replace(term, verdict="fn") for term in place.terms if term.verdict != "fp")
    return replace(place, terms=terms)


def as_evidence(turn_id: str, sample: int, scores: Sequence[PlaceScore]) -> tuple[Evidence, ...]:
    """Converts the scores to evidence for the record: its kind is `dimension`, its value the precision.

    The verdict is `exact`, `partial` (some terms are right), `missed` (no term of the target was selected), `extra`
    (the target does not use the dimension) or `empty`.
    """
    return tuple(Evidence(turn_id, sample, KIND, _word(score), score.precision, _details(score)) for score in scores)


def from_evidence(evidence: Sequence[Evidence]) -> tuple[PlaceScore, ...]:
    """Converts evidence that `as_evidence` made back to scores."""
    return tuple(
        PlaceScore(
            found.details["dataset_id"],
            found.details["dimension"],
            found.details["target"],
            tuple(JudgedTerm(**term) for term in found.details["terms"]),
            found.details.get("said_as"),
            found.details.get("target_as"),
            found.details.get("indicator", False),
        )
        for found in evidence
        if found.kind == KIND
    )


def _word(score: PlaceScore) -> str:
    if not score.terms:
        return "empty"
    if score.target != "given":
        return "extra"
    if not score.count("tp"):
        return "missed"
    return "exact" if score.count("tp") == len(score.terms) else "partial"


def _details(score: PlaceScore) -> dict[str, Json]:
    terms = [
        {
            "id": t.id,
            "name": t.name,
            "verdict": t.verdict,
            "retrieved": t.retrieved,
            "from_target": t.from_target,
            "doubt": t.doubt,
            "total": t.total,
            "searched": t.searched,
            "rank": t.rank,
        }
        for t in score.terms
    ]
    return {
        "dataset_id": score.data_set,
        "dimension": score.dimension,
        "target": score.target,
        "precision": score.precision,
        "recall": score.recall,
        "said_as": score.said_as,
        "target_as": score.target_as,
        "indicator": score.indicator,
        "terms": terms,
    }
