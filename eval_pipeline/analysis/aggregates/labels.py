"""`label_confusion` and `label_scores`: which labels are mistaken for which, and F1 of each label (docs/text.md)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from eval_pipeline.analysis.aggregates.base import Row, Turns
from eval_pipeline.statistics.raters.agreement import label_scores

_NEEDS = ("expected_label", "answer_label")
MACRO = "macro"


def confusion_rows(turns: Turns) -> list[Row]:
    """Returns a row for each pair of labels that occurs; turns of suites without labels have none."""
    pairs: defaultdict[tuple[str, str | None], list[str]] = defaultdict(list)
    for turn, expected, said in _labelled(turns):
        pairs[expected, said].append(turn)
    sizes: defaultdict[str, int] = defaultdict(int)
    for (expected, _), found in pairs.items():
        sizes[expected] += len(found)
    return [
        {
            "expected_label": expected,
            "answer_label": said,
            "turns": len(found),
            "share": len(found) / sizes[expected],
            "example_turn_id": found[0],
        }
        for (expected, said), found in sorted(pairs.items(), key=lambda item: (item[0][0], item[0][1] or "\uffff"))
    ]


def score_rows(turns: Turns) -> list[Row]:
    """Returns macro F1, then the scores of each label, in alphabetical order."""
    found = _labelled(turns)
    labels = sorted({label for _, expected, said in found for label in (expected, said) if label is not None})
    if not found:
        return []
    codes: dict[str | None, int] = {label: code for code, label in enumerate(labels)} | {None: -1}
    held = np.array([label is not None for label in turns.wide["expected_label"].to_pylist()], dtype=bool)
    expected, said = ([codes[row[place]] for row in found] for place in (1, 2))
    each, macro = label_scores(expected, said, turns.clusters[held], len(labels))
    named = [{"label": label, "scope": "label"} | asdict(score) for label, score in zip(labels, each, strict=True)]
    return [{"label": MACRO, "scope": "all"} | asdict(macro), *named]


def _labelled(turns: Turns) -> list[tuple[str, str, str | None]]:
    """Returns turn, expected and given label of each turn that expects a label."""
    columns = (turns.wide[name].to_pylist() for name in ("turn_id", *_NEEDS))
    return [row for row in zip(*columns, strict=True) if row[1] is not None]


def confusion_headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the numbers of labels and of turns that got another one than the gold."""
    wrong = [row for row in rows if row["expected_label"] != row["answer_label"]]
    return {
        "labels": len({row["expected_label"] for row in rows}),
        "confused_turns": sum(row["turns"] for row in wrong),
    }


def scores_headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the macro F1 and its interval."""
    macro = next((row for row in rows if row["scope"] == "all"), None)
    names = ("f1", "low", "high")
    return {f"macro_{name}": None if macro is None else macro[name] for name in names}
