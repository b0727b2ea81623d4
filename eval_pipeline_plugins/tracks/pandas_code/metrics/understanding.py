"""Prompt understanding by words: whether the code uses what the question mentions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from eval_pipeline.core.model import Json, MetricResult

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.pandas_code.analysis.snippet import Snippet
    from eval_pipeline_plugins.tracks.pandas_code.question.question import QuestionWords, RowSelection

WEIGHTS = {
    "column_extraction_score": 0.4,
    "nl_parsing_score": 0.3,
    "statistical_understanding_score": 0.3,
}
"""The most points for each part."""


def prompt_understanding(question: str, code: str, tables: Mapping[str, Sequence[str]]) -> MetricResult:
    """Returns how well code understands a question, from the texts alone.

    Args:
        question: the question.
        code: the code that answers it.
        tables: the columns of each table.
    """
    from eval_pipeline_plugins.tracks.pandas_code.analysis.snippet import read_snippet
    from eval_pipeline_plugins.tracks.pandas_code.question.question import read_question

    return understanding_score(read_question(question, tables), read_snippet(code))


def understanding_score(asked: "QuestionWords", written: "Snippet | None") -> MetricResult:
    """Returns 0.4 · share of named columns that are used + 0.3 · phrases followed + 0.3 · statistics followed.

    A part that does not apply to the question gets full marks and is listed under `not_applicable` in the details.

    Args:
        asked: what the question asks for.
        written: what the code does; None if there is no code or it does not parse, which gives 0.
    """
    if written is None:
        parts: dict[str, float | None] = dict.fromkeys(WEIGHTS, 0.0)
        return _result(parts, asked, None, "there is no code that parses")
    parts = {
        "column_extraction_score": _share(column in written.columns for column in asked.columns),
        "nl_parsing_score": _share(phrases_honoured(asked, written)),
        "statistical_understanding_score": _share(written.gives(statistic) for statistic in asked.statistics),
    }
    return _result(parts, asked, written, None)


def phrases_honoured(asked: "QuestionWords", written: "Snippet") -> Iterator[bool]:
    """Yields for each phrase whether the code follows it: every "top N" and "bottom N", and all filters together."""
    for selection in asked.selections:
        yield takes(written, selection)
    if asked.conditions:
        yield bool(written.filters.conditions) or written.filters.located


def takes(written: "Snippet", selection: "RowSelection") -> bool:
    """Returns whether code takes these rows: from the right end, and with the right number if it states one."""
    return any(
        cut.end == selection.end and (cut.n is None or selection.n is None or cut.n == selection.n)
        for cut in written.sorting.cuts
    )


def _share(honoured: Iterator[bool]) -> float | None:
    """Returns the share of requirements that are met; None if there are none."""
    found = list(honoured)
    return sum(found) / len(found) if found else None


def _result(
    shares: Mapping[str, float | None], asked: "QuestionWords", written: "Snippet | None", reason: str | None
) -> MetricResult:
    scores = {name: WEIGHTS[name] * (1.0 if share is None else share) for name, share in shares.items()}
    columns = () if written is None else (column for column in asked.all_columns if column in written.columns)
    details: dict[str, Json] = {
        **scores,
        "extracted_columns": list(columns),
        "mentioned_columns": list(asked.columns),
        "statistical_operations": [] if written is None else list(written.statistical_operations),
        "not_applicable": [name for name, share in shares.items() if share is None],
    }
    return MetricResult(sum(scores.values()), reason=reason, details=details)
