"""The track for suites whose answers a judge grades; only these have the table and the asset `judgements`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eval_pipeline.core.model import Attempt, Evidence, Json
from eval_pipeline.tracks.capabilities import Judged, ToJudge
from eval_pipeline.tracks.options import read_options
from eval_pipeline.tracks.text.cases.settings import TextOptions
from eval_pipeline.tracks.text.track import TextTrack

if TYPE_CHECKING:
    from eval_pipeline.judge import JudgePrompt
    from eval_pipeline.tracks.text.cases.case_file import TextCase, TextContext, TextGold, TextTurn


class JudgedTextTrack(TextTrack, Judged["TextContext", "TextGold", str]):
    """The track `text` with a judge."""

    judge_option = "metrics.judge.model"

    def to_judge(
        self, case: "TextCase", turn: "TextTurn", final: Attempt[str], evidence: Sequence[Evidence]
    ) -> ToJudge:
        """See `judging.to_judge`."""
        from eval_pipeline.tracks.text.comparing import judging

        return judging.to_judge(case, turn, final)

    def judge_prompt(self, options: Mapping[str, Json]) -> "JudgePrompt":
        """Returns the question whether an answer fulfils the suite's rubric."""
        from eval_pipeline.judge import rubric_prompt

        return rubric_prompt(_options(options).parameters("judge").rubric)

    def judge_decides(self, options: Mapping[str, Json]) -> bool:
        """Whether the judge's grade decides if a turn is correct."""
        return _options(options).deciding == "judge"


def _options(options: Mapping[str, Json]) -> TextOptions:
    return read_options(TextOptions, options, "suite.yaml")


TRACK = JudgedTextTrack()
