"""The track: how the stages deal with plain text tasks that a suite describes."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import Attempt, ErrorClass, Evidence, Failed, Json, Outcome, Ran
from eval_pipeline.tracks.base import ArtefactError, Executor, Task
from eval_pipeline.tracks.capabilities import (
    Audits,
    Damageable,
    Executes,
    Explains,
    Gathers,
    Judged,
    Recovers,
    Shares,
    ToJudge,
)
from eval_pipeline.tracks.options import read_options
from eval_pipeline.tracks.scored.recovery import attempt_outcomes
from eval_pipeline_plugins.tracks.text import TASKS, TextManifest
from eval_pipeline_plugins.tracks.text.cases.settings import TextOptions
from eval_pipeline_plugins.tracks.text.metrics import SELECTABLE, selected_metrics

if TYPE_CHECKING:
    import pyarrow as pa

    from eval_pipeline.judge.prompt import JudgePrompt
    from eval_pipeline_plugins.tracks.text.cases.case_file import TextCase, TextContext, TextGold, TextTurn

NOT_KNOWN = "the right answer is not known; a review can give it"
_MOST_CHARS = 200_000


class _Executor:
    """Reads the answer from a response in the suite's answer form."""

    immediate: ClassVar[bool] = True

    async def execute(self, artefact: str, case: "TextCase") -> Outcome:
        from eval_pipeline_plugins.tracks.text.comparing.scoring import read_of

        return read_of(artefact, case)


class TextTrack(
    TextManifest,
    Task["TextContext", "TextGold", str],
    Executes,
    Gathers["TextContext", "TextGold", str],
    Recovers,
    Shares,
    Damageable["TextContext", "TextGold"],
    Audits["TextContext", "TextGold"],
    Explains["TextContext", "TextGold", str],
):
    """See `tracks.base.Task` and `tracks.capabilities`; an artefact is the text of a response."""

    _not_selected: Mapping[str, None] = {}
    gold_fields: tuple[str, ...] = ("answer", "accept", "response")
    reads_in_sandbox = True
    """The cases share the options of `suite.yaml` only, which has been read: no file is left to read elsewhere."""

    read_case = Later("eval_pipeline_plugins.tracks.text.cases.case_file:read_case")
    prompt_parts = Later("eval_pipeline_plugins.tracks.text.prompt:prompt_parts")
    gather = Later("eval_pipeline_plugins.tracks.text.comparing.evidence:evidence_of")
    difference = Later("eval_pipeline_plugins.tracks.text.comparing.evidence:difference_of")
    damage = Later("eval_pipeline_plugins.tracks.text.damage:damaged_response")
    cards = Later("eval_pipeline_plugins.tracks.text.cards:turn_cards")

    def for_suite(self, options: Mapping[str, Json]) -> "TextTrack":
        """Returns the track with the metrics that the suite selects, and with a judge if `judge` is one of them.

        Wrong options leave the track as it is, since `read_shared` reports them.
        """
        try:
            read = read_options(TextOptions, options, "suite.yaml")
        except InputError:
            return self
        own = copy(self)
        if "judge" in read.asked:
            own = JudgedTextTrack()
        own.metrics = selected_metrics(read.asked, read.answer.form)
        own._not_selected = {metric.name: None for metric in SELECTABLE.values() if metric not in own.metrics}
        return own

    def read_shared(self, folder: Path, options: Mapping[str, Json]) -> TextOptions:
        """Returns the suite's options after checking them and its examples."""
        from eval_pipeline_plugins.tracks.text.cases.examples import checked_options

        return checked_options(options, f"{folder.name}/suite.yaml")

    def shared_rows(self, shared: TextOptions) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """Returns a row with the options; if they change, everything that depends on them is recomputed."""
        metrics = {name: shared.parameters(name).model_dump(mode="json") for name in shared.asked}
        return {
            TASKS.name: {
                "answer_form": [shared.answer.form],
                "labels": [canonical_json(list(shared.answer.labels))],
                "metrics": [canonical_json(metrics)],
                "decided_by": [shared.deciding],
                "options": [canonical_json(_plain(shared))],
            }
        }

    def load_shared(self, tables: "Mapping[str, pa.Table]", options: Mapping[str, Json], folder: Path) -> TextOptions:
        """Returns the options of `suite.yaml`."""
        return read_options(TextOptions, options, f"{folder.name}/suite.yaml")

    def check_gold(self, case: "TextCase") -> list[tuple["TextTurn", str]]:
        """Returns turns whose own gold answer is not correct by the deciding metric, or is not known."""
        from eval_pipeline_plugins.tracks.text.comparing.scoring import is_correct

        decides = case.context.options.deciding
        told = f"the right answer, given as the prompt asks, is not correct by the metric '{decides}'; give 'response'"
        wrong = [turn for turn in case.turns if not is_correct(self.oracle(turn), case, turn)]
        return [(turn, told if turn.gold.accepted else NOT_KNOWN) for turn in wrong]

    def gold_of(self, turn: "TextTurn", results: Sequence[Json]) -> Mapping[str, Json] | None:
        """Returns the first answer as the right one, and the others as accepted."""
        if turn.gold.accepted:
            return None
        found: dict[str, Json] = {}
        for key, result in zip(self.answer_keys(turn, results), results, strict=True):
            found.setdefault(key, result["answer"])
        answers = list(found.values())
        others = {"accept": answers[1:]} if answers[1:] else {}
        return {"answer": answers[0]} | others if answers else {}

    def answer_keys(self, turn: "TextTurn", results: Sequence[Json]) -> list[str]:
        """Returns the extracted answers; the surrounding words do not count."""
        return [canonical_json(found["answer"]) for found in results]

    def prefix_key(self, case: "TextCase") -> str:
        """Returns one key for all cases: they share system message and examples."""
        return ""

    def gold_complexity(self, turn: "TextTurn") -> int:
        """Returns the case's `difficulty`."""
        return int(turn.gold.difficulty)

    def prompt_fields(self, case: "TextCase") -> Collection[str]:
        """Returns the fields of a case."""
        return case.context.fields

    def context_json(self, case: "TextCase") -> Json:
        """Returns the fields and the requested answer form."""
        from eval_pipeline_plugins.tracks.text.prompt import system_text

        return {"fields": dict(case.context.fields), "instructions": system_text(case.context.options)}

    def data_json(self, case: "TextCase") -> Json:
        """Returns the fields."""
        return dict(case.context.fields)

    def prompt_options(self, options: Mapping[str, Json]) -> dict[str, Json]:
        """Returns the template, the examples and the requested answer form."""
        return {name: options[name] for name in ("prompt", "examples", "answer") if name in options}

    def parse(self, text: str, *, recorded: bool) -> str:
        """Returns the response unchanged; the executor, which knows the suite's options, reads the answer."""
        if not text.strip():
            raise ArtefactError(ErrorClass.OTHER, "the response is empty")
        if len(text) > _MOST_CHARS:
            raise ArtefactError(ErrorClass.VALUE, f"the response has {len(text):,} characters, at most {_MOST_CHARS:,}")
        return text.strip()

    def unreadable(self, turn: "TextTurn", artefact: str) -> str | None:
        """Returns why a recorded response contains no answer in the suite's form."""
        from eval_pipeline_plugins.tracks.text.comparing.reading import read_answer

        outcome = read_answer(artefact, turn.gold.form, turn.question, {})
        return outcome.message if isinstance(outcome, Failed) else None

    def executor(self) -> AbstractAsyncContextManager[Executor]:
        """Returns the executor, which has no resources to close."""
        return _executor()

    def values(
        self, case: "TextCase", turn: "TextTurn", attempts: Sequence[Attempt[str]], evidence: Sequence[Evidence]
    ) -> dict[str, Any]:
        """Returns the inputs of the metrics; see `scoring.told_of`."""
        from eval_pipeline_plugins.tracks.text.comparing.scoring import told_of

        no_answer = not any(a.response is not None and a.response.text.strip() for a in attempts)
        final = attempts[-1]
        told = told_of(case, turn, final.artefact or "", final.outcome, evidence, no_answer=no_answer)
        return {**told, **self._not_selected, "attempts_outcomes": attempt_outcomes(attempts)}

    def score(self, metrics: Mapping[str, Any]) -> float | None:
        """Returns `answer_score`."""
        graded: float | None = metrics["answer_score"]
        return graded

    def turn_row(self, case: "TextCase", turn: "TextTurn", attempts: Sequence[Attempt[str]]) -> Mapping[str, Json]:
        """Returns form and difficulty, and for labels the expected and the given label."""
        gold, outcome = turn.gold, attempts[-1].outcome if attempts else None
        is_label = gold.form.form == "label" and bool(gold.accepted)
        return {
            "answer_form": gold.form.form,
            "difficulty": gold.difficulty,
            "expected_label": gold.accepted[0] if is_label else None,
            "answer_label": outcome.value["answer"] if is_label and isinstance(outcome, Ran) else None,
        }

    def gold_json(self, turn: "TextTurn") -> Json:
        """Returns the accepted answers."""
        return {"accepted": list(turn.gold.accepted)}

    def expected_text(self, turn: "TextTurn") -> str:
        """Returns the right answer."""
        from eval_pipeline_plugins.tracks.text.comparing.matching import answer_shown

        return answer_shown(turn.gold.accepted[0]) if turn.gold.accepted else ""

    def answer_text(self, value: Json) -> str:
        """Returns the extracted answer."""
        from eval_pipeline_plugins.tracks.text.comparing.matching import answer_shown

        return answer_shown(value["answer"])

    def oracle(self, turn: "TextTurn") -> str:
        """Returns the turn's `response`, else the right answer in the form that the prompt asks for, if it is known."""
        from eval_pipeline_plugins.tracks.text.prompt import answer_response

        if turn.gold.response or not turn.gold.accepted:
            return turn.gold.response
        return answer_response(turn.gold.accepted[0], turn.gold.form)

    def rewrites(self, case: "TextCase", turn: "TextTurn") -> Mapping[str, str]:
        """Returns the other accepted answers, and the right one in bold or with separators between thousands."""
        from eval_pipeline_plugins.tracks.text.prompt import answer_response

        gold, form = turn.gold, turn.gold.form
        told = {f"accepted answer {n}": answer_response(one, form) for n, one in enumerate(gold.accepted[1:], 2)}
        if gold.accepted and form.form == "label":
            told["in bold"] = f"Answer: **{gold.accepted[0]}**"
        if gold.accepted and form.form == "number" and not form.locale:
            told["with separators"] = f"Answer: {gold.accepted[0]:,}"
        return told

    def cheats(self, case: "TextCase", turn: "TextTurn") -> Mapping[str, str]:
        """Returns all labels."""
        from eval_pipeline_plugins.tracks.text.prompt import answer_response

        labels = turn.gold.form.labels
        return {"all options at once": answer_response(", ".join(labels), turn.gold.form)} if labels else {}


@asynccontextmanager
async def _executor() -> AsyncIterator[Executor]:
    yield _Executor()


def _plain(options: TextOptions) -> Json:
    """Converts the options to JSON; sets become sorted lists."""
    found = options.model_dump(mode="json")
    found["answer"]["allow"] = sorted(found["answer"]["allow"])
    return found


class JudgedTextTrack(TextTrack, Judged["TextContext", "TextGold", str]):
    """The track for suites whose answers a judge grades; only these have the table and the asset `judgements`."""

    judge_option = "metrics.judge.model"

    def to_judge(
        self, case: "TextCase", turn: "TextTurn", final: Attempt[str], evidence: Sequence[Evidence]
    ) -> ToJudge:
        """See `scoring.to_judge`."""
        from eval_pipeline_plugins.tracks.text.comparing import scoring

        return scoring.to_judge(case, turn, final)

    def judge_prompt(self, options: Mapping[str, Json]) -> "JudgePrompt":
        """Returns the question whether an answer fulfils the suite's rubric."""
        from eval_pipeline.judge.prompt import rubric_prompt

        return rubric_prompt(read_options(TextOptions, options, "suite.yaml").parameters("judge").rubric)

    def judge_decides(self, options: Mapping[str, Json]) -> bool:
        """Whether the judge's grade decides if a turn is correct."""
        return read_options(TextOptions, options, "suite.yaml").deciding == "judge"


TRACK = TextTrack()
