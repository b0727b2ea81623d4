"""What is wrong in each turn: terms that are missing or extra, by data set and dimension."""

from collections import defaultdict
from typing import TYPE_CHECKING

from eval_pipeline_plugins.tracks.sdmx.catalogue import suite_tables as tables
from eval_pipeline_plugins.tracks.sdmx.sheets.details import REASONS

if TYPE_CHECKING:
    from eval_pipeline.reports.evaluation import Evaluation, Row

_SAID = {"fn": "missing", "fp": "extra"}
_MOST_TERMS = 12
Turn = tuple[str, int]


def mistake_texts(evaluation: "Evaluation") -> dict[Turn, str]:
    """Returns for each turn and sample with a missing or extra term a line for each data set and dimension."""
    terms: defaultdict[Turn, defaultdict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(dict))
    for row in evaluation.rows(tables.TERMS):
        if (said := _SAID.get(row["verdict"])) is not None:
            place = f"{row['dataset_id']} {row['dimension']}"
            terms[row["turn_id"], row["sample"]][place].setdefault(said, []).append(_term(row))
    return {turn: "\n".join(_line(place, found) for place, found in places.items()) for turn, places in terms.items()}


def _line(place: str, found: dict[str, list[str]]) -> str:
    return f"{place}: " + "; ".join(f"{said} {_listed(found[said])}" for said in _SAID.values() if said in found)


def _listed(terms: list[str]) -> str:
    more = len(terms) - _MOST_TERMS
    return ", ".join(terms[:_MOST_TERMS]) + (f" and {more:,} more" if more > 0 else "")


def _term(row: "Row") -> str:
    name = " ".join(row["name"].split())
    shown = f"{row['id']} ({name})" if name and name != row["id"] else row["id"]
    return f"{shown} [{REASONS[row['doubt']]}]" if row["doubt"] in REASONS else shown
