"""Figures of a suite over its conversations: macro precision, recall and F1, and how repeated answers agree."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.profile import OF_CASES
from eval_pipeline.reports.queries import statistics_query
from eval_pipeline.tracks.capabilities import CaseShares
from eval_pipeline_plugins.tracks.sdmx.tables import DIMENSIONS, TERMS

if TYPE_CHECKING:
    import pyarrow as pa


METRICS = ("macro_precision", "macro_recall", "macro_f1")


PREFIX = OF_CASES


"""Prefix of a metric's name in the table `statistics` when its mean is over conversations instead of turns."""


ALL = "all"


RECALL_AT = (5, 20, 50, 300)


"""For how many candidates of a dimension their recall is reported; the last is the depth of the search."""


RECALL = f"{PREFIX}retrieval_recall_at_"


"""Name of this recall in the table `statistics`, without the number of candidates."""


Conversation = tuple[str, int]


"""The case's id and the sample number."""


Terms = frozenset[tuple[str, ...]]


"""Data set, dimension, id and name of each selected term."""


def conversation_figures(tables: "Mapping[str, pa.Table]") -> list[CaseShares]:
    """Returns the figures overall and for each tag, and precision and recall for each dimension and data set.

    Args:
        tables: `turn_results`, `sdmx_turns`, `sdmx_dimensions` and `sdmx_terms` of one evaluation.
    """
    turns, dimensions = tables["sdmx_turns"], tables[DIMENSIONS.name]
    cases, texts = (tables["turn_results"][name].to_pylist() for name in ("case_id", "tags"))
    tags = dict(zip(cases, (set(json.loads(text)) for text in texts), strict=True))
    found = []
    for metric in METRICS:
        values = _means(_rows(turns, metric))
        found.append(CaseShares(PREFIX + metric, ALL, ALL, values))
        for tag in sorted(set().union(*tags.values())):
            tagged = {place: value for place, value in values.items() if tag in tags[place[0]]}
            found.append(CaseShares(PREFIX + metric, "tag", tag, tagged))
    for metric, values in _agreements(turns).items():
        found.append(CaseShares(PREFIX + metric, ALL, ALL, values))
    for split, column in (("dimension", "dimension"), ("data_set", "dataset_id")):
        for metric, measured in (("macro_precision", "precision"), ("macro_recall", "recall")):
            found += _per_value(dimensions, column, measured, split, PREFIX + metric)
    return found + list(retrieval_recalls(tables[TERMS.name]))


def retrieval_recalls(terms: "pa.Table") -> Iterator[CaseShares]:
    """Yields the recall of the candidates for several numbers of candidates, overall and for each dimension.

    It is the mean over conversations of the share of the target's terms that would be offered, in dimensions that are
    too large to be shown as a whole, without terms that only a target names.
    """
    columns = (terms[name].to_pylist() for name in ("dimension", "verdict", "searched", "from_target"))
    wanted = [
        dimension if searched and verdict != "fp" and not from_target else None
        for dimension, verdict, searched, from_target in zip(*columns, strict=True)
    ]
    for most in RECALL_AT:
        by_dimension: defaultdict[str, list[tuple[Conversation, float | None]]] = defaultdict(list)
        for (place, rank), dimension in zip(_rows(terms, "retrieval_rank"), wanted, strict=True):
            if dimension is not None:
                by_dimension[dimension].append((place, float(rank is not None and rank <= most)))
        metric = f"{RECALL}{most}"
        if by_dimension:
            yield CaseShares(metric, ALL, ALL, _means(row for rows in by_dimension.values() for row in rows))
        for name in sorted(by_dimension):
            yield CaseShares(metric, "dimension", name, _means(by_dimension[name]))


def _agreements(turns: "pa.Table") -> dict[str, dict[Conversation, float]]:
    """Returns how the samples of a turn agree with each other, as a mean over each conversation's turns.

    `same_selection` is the share of pairs of samples that selected the same terms; `selection_overlap` is the mean
    over pairs of the terms that both selected / the terms that either did. A pair with an answer that could not be read
    does not agree. Empty without repeated samples.
    """
    said: defaultdict[tuple[str, int], list[Terms | None]] = defaultdict(list)
    first: dict[str, int] = {}
    names = ("case_id", "turn_index", "sample", "said")
    for case, turn, sample, text in zip(*(turns[name].to_pylist() for name in names), strict=True):
        said[case, turn].append(None if text is None else _terms(json.loads(text)))
        first[case] = min(first.get(case, sample), sample)
    pairs = {place: list(combinations(answers, 2)) for place, answers in said.items() if len(answers) > 1}
    measures = {"same_selection": _same, "selection_overlap": _overlap} if pairs else {}
    return {
        name: _means(
            ((case, first[case]), sum(measure(*pair) for pair in found) / len(found))
            for (case, _), found in pairs.items()
        )
        for name, measure in measures.items()
    }


def _terms(entries: Sequence[Mapping[str, Any]]) -> Terms:
    return frozenset(
        (entry["dataset_id"], found["dimension_name"], term["id"], term["name"])
        for entry in entries
        for found in entry["dimensions"]
        for term in found["values"]
    )


def _same(one: Terms | None, other: Terms | None) -> float:
    return float(one is not None and one == other)


def _overlap(one: Terms | None, other: Terms | None) -> float:
    if one is None or other is None:
        return 0.0
    return len(one & other) / len(one | other) if one | other else 1.0


def _per_value(dimensions: "pa.Table", column: str, measured: str, split: str, metric: str) -> Iterator[CaseShares]:
    """Yields a figure for each dimension or data set.

    It is the mean over conversations of the mean within each conversation.
    """
    by_value: defaultdict[str, list[tuple[Conversation, Any]]] = defaultdict(list)
    for (place, measure), value in zip(_rows(dimensions, measured), dimensions[column].to_pylist(), strict=True):
        by_value[value].append((place, measure))
    for value in sorted(by_value):
        yield CaseShares(metric, split, value, _means(by_value[value]))


def _rows(table: "pa.Table", column: str) -> list[tuple[Conversation, float | None]]:
    columns = (table[name].to_pylist() for name in ("case_id", "sample", column))
    return [((case, sample), value) for case, sample, value in zip(*columns, strict=True)]


def _means(rows: Iterable[tuple[Conversation, float | None]]) -> dict[Conversation, float]:
    known: defaultdict[Conversation, list[float]] = defaultdict(list)
    for place, value in rows:
        if value is not None:
            known[place].append(value)
    return {place: sum(values) / len(values) for place, values in known.items()}


TITLE = "Recall of the candidates"


READING = (
    "Share of the targets' terms that are among the first candidates of their dimension, as a mean over cases, with a "
    "95% interval; only dimensions that are too large to be shown as a whole."
)


def candidate_recalls(evaluation: Evaluation) -> dict[str, dict[int, Row]]:
    """Returns rows of `statistics` by dimension, the first being all dimensions, and by number of candidates.

    Empty if no target has a term in a dimension that is too large to be shown as a whole.
    """
    places = {f"{RECALL}{most}": most for most in RECALL_AT}
    found: dict[str, dict[int, Row]] = {}
    for row in sorted(
        evaluation.query(recalls_query(evaluation.partition)), key=lambda row: (row["split"] != ALL, row["split_value"])
    ):
        if row["n"]:
            name = "all dimensions" if row["split"] == ALL else str(row["split_value"])
            found.setdefault(name, {})[places[row["metric"]]] = row
    return found


def recalls_query(partition: Partition) -> str:
    """Returns the query for these rows."""
    return statistics_query(partition, f"metric LIKE '{RECALL}%'")
