"""The stand-in `recorded`: predictions made elsewhere and imported, with one JSON line for each answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # pydantic requires this one before Python 3.12

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import file_hash, json_hash
from eval_pipeline.core.model import MOST_TOKENS, CallErrorKind, Json, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.provenance import PROVENANCE, UNKNOWN, shown_prompt
from eval_pipeline.core.reading.complaints import Complaint, complaints, dotted
from eval_pipeline.providers.base import Call, CallError, Environment, FatalCallError
from eval_pipeline.providers.standins.inprocess import Immediate
from eval_pipeline.providers.validation import SettingsError, refuse_settings

NAME = "recorded"
"""Name of the provider for imported predictions."""
SOURCE = "source"
"""Key in the metadata of a recorded answer: where it comes from, with the verdict that it had there."""
_Count = Annotated[int, Field(ge=0)]
_Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


@with_config(ConfigDict(strict=True))
class Prediction(TypedDict):
    """A line of a file of predictions, in the canonical form.

    Attributes:
        text: the response in the track's answer form.
        sample: number of the sample; 0 by default.
        input_tokens, output_tokens, latency_ms, usd: null or missing if they were not recorded.
        cache_read_tokens, cache_write_tokens: parts of `input_tokens`.
        stop_reason: the word of the model's provider, or of the tool that asked it.
        error: why there is no answer, in the words of that tool.
        provenance: facts about this answer alone; fields of `Provenance`.
        source_correct: the verdict of the tool that the answer comes from.
        source_scores: what that tool's scorers gave, by their names.
        trace_id, span_id: the span of OpenTelemetry in which the model answered.
    """

    case_id: str
    turn_index: _Count
    text: str
    sample: NotRequired[_Count]
    input_tokens: NotRequired[_Tokens | None]
    output_tokens: NotRequired[_Tokens | None]
    latency_ms: NotRequired[Annotated[float, Field(ge=0)] | None]
    cache_read_tokens: NotRequired[_Tokens | None]
    cache_write_tokens: NotRequired[_Tokens | None]
    usd: NotRequired[Annotated[float, Field(ge=0)] | None]
    stop_reason: NotRequired[str | None]
    error: NotRequired[str | None]
    provenance: NotRequired[dict[str, Json]]
    source_correct: NotRequired[bool | None]
    source_scores: NotRequired[dict[str, Json] | None]
    trace_id: NotRequired[str | None]
    span_id: NotRequired[str | None]


Place = tuple[str, int, int]
"""Case id, index of the turn, sample number."""

CUT_OFF = frozenset({"max_tokens", "length", "model_length"})
"""Stop reasons of answers that reached a token limit."""
FILTERED = frozenset({"content_filter", "refusal"})
"""Stop reasons of answers that were withheld."""

_FILE = TypeAdapter(list[Prediction])
_LINE = TypeAdapter(Prediction)


class RecordedProvider(Immediate):
    """Looks answers up in the suite's file of predictions, which is read on first use."""

    recorded: ClassVar[bool] = True
    pool: ClassVar[str | None] = None
    can_judge: ClassVar[bool] = False

    @classmethod
    def why_not(cls, version: ModelVersion, suite: str, track: str, failure_modes: Sequence[str]) -> str | None:
        """Rejects suites for which no predictions were imported."""
        return (
            None
            if suite in version.predictions
            else "has no predictions for the suite (`eval-pipeline import predictions` takes them)"
        )

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        refuse_settings(version, "options", "sampling")
        if not version.predictions:
            wanted = "is missing: import predictions with `eval-pipeline import`, which writes the entry"
            raise SettingsError(version.name, (Complaint(("predictions",), wanted),))
        self._version = version
        self._folder = Path(environment.predictions_dir)
        self._suites: dict[str, dict[Place, Prediction]] = {}
        self._told: dict[str, dict[str, Json]] = {}

    def request(self, call: Call) -> Json:
        """Returns turn and attempt number, with hashes of the recorded row and its provenance.

        If the hashes change, so do the responses.
        """
        row = self._row(call)
        told = None if row is None else [json_hash(row), json_hash(self._known(call, row))]
        return {"turn": call.turn_id, "number": call.number, "row": told}

    def prompt_shown(self, call: Call) -> str:
        """Returns the prompt that the model was shown, if known; never the call's prompt, which it did not see."""
        row = self._row(call)
        return UNKNOWN if row is None else shown_prompt(self._known(call, row))

    def answer(self, call: Call) -> Response:
        """Returns the recorded response. Raises CallError if there is none."""
        row = self._row(call)
        if row is None:
            what = f"no prediction of sample {call.sample} is recorded for {call.turn_id}"
            if call.number > 0:
                what = "recorded predictions are not recovered: nobody can be asked again"
            raise CallError(CallErrorKind.NO_PREDICTION, what)
        if error := row.get("error"):
            raise CallError(CallErrorKind.RECORDED_ERROR, f"recorded as an error: {error}")
        known = self._known(call, row)
        stopped = row.get("stop_reason")
        return Response(
            row["text"],
            stop_reason=stopped or "recorded",
            usage=usage_of(row),
            latency_ms=row.get("latency_ms"),
            asked_on=known.get("asked_on") or "",
            call_error=call_error_of(stopped),
            usd=row.get("usd"),
            metadata={PROVENANCE: {name: told for name, told in known.items() if name != "prompt"}} | _judged(row),
        )

    def _known(self, call: Call, row: Prediction) -> dict[str, Json]:
        """Returns the known facts about an answer; its own take precedence over those common to all answers."""
        of_all = self._told.get(call.suite)
        if of_all is None:
            of_all = self._told[call.suite] = self._version.predictions[call.suite].provenance.known()
        return {**of_all, **row["provenance"]} if "provenance" in row else of_all

    def _row(self, call: Call) -> Prediction | None:
        if call.number > 0:
            return None
        rows = self._suites.get(call.suite)
        if rows is None:
            predictions = self._version.predictions.get(call.suite)
            if predictions is None:
                raise FatalCallError(
                    f"model version '{self._version.name}' has no predictions for the suite '{call.suite}' (it has: "
                    f"{', '.join(self._version.predictions)}); import them with `eval-pipeline import`"
                )
            path = self._folder / predictions.file
            refuse_edited(path, self._version.predictions[call.suite].content_hash)
            rows = self._suites[call.suite] = read_predictions(path)
        return rows.get((call.case_id, call.turn_index, call.sample))


def call_error_of(stop_reason: str | None) -> CallErrorKind | None:
    """Returns why a recorded response is not an answer, judging by its stop reason; None if it is one."""
    if stop_reason in CUT_OFF:
        return CallErrorKind.MAX_TOKENS
    return CallErrorKind.REFUSED if stop_reason in FILTERED else None


def usage_of(row: Prediction) -> Usage:
    """Returns the token counts of a recorded answer."""
    cached = (row.get("cache_read_tokens") or 0, row.get("cache_write_tokens") or 0)
    return Usage(row.get("input_tokens"), row.get("output_tokens"), *cached)


def refuse_edited(path: Path, content_hash: str) -> None:
    """Rejects a file of predictions that was changed after its import.

    Raises:
        InputError: the file was changed; the message says what to do. A missing file is not reported here but when it
            is read.
    """
    try:
        found = file_hash(path)
    except OSError:
        return
    if found != content_hash:
        advice = (
            "was changed since it was imported, and results under its name would not be those of the imported "
            "predictions; import the changed file under another name with `eval-pipeline import predictions`"
        )
        raise InputError([Problem(str(path), None, "", advice)])


def read_predictions(path: Path) -> dict[Place, Prediction]:
    """Reads a file of canonical predictions.

    Raises:
        InputError: the file cannot be read, a line is malformed, or two rows are for the same sample of a turn.
    """
    try:
        lines = path.read_bytes().rstrip(b"\n").split(b"\n")
    except FileNotFoundError as error:
        advice = "the file of predictions is gone; import the predictions again"
        raise InputError([Problem(str(path), None, "", advice)]) from error
    except OSError as error:
        raise InputError([Problem(str(path), None, "", f"cannot read the predictions: {error}")]) from error

    problems: list[Problem] = []
    rows: dict[Place, Prediction] = {}
    for number, row in _parsed(path, lines, problems):
        place = (row["case_id"], row["turn_index"], row.get("sample", 0))
        if place in rows:
            what = f"a second prediction of case '{place[0]}', turn {place[1]}, sample {place[2]}"
            problems.append(Problem(str(path), number, "", what))
        rows[place] = row
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return rows


def _parsed(path: Path, lines: list[bytes], problems: list[Problem]) -> list[tuple[int, Prediction]]:
    """Returns the valid rows with their line numbers, and adds the problems of the others to `problems`."""
    try:
        # First try all lines in one call, which is much faster and nearly always succeeds.
        rows = _FILE.validate_json(b"[%b]" % b",".join(lines))
        if len(rows) == len(lines):
            return list(enumerate(rows, start=1))
    except ValidationError:
        pass
    sound = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            sound.append((number, _LINE.validate_json(line)))
        except ValidationError as error:
            for location, message in complaints(error):
                problems.append(Problem(str(path), number, dotted(location), message))
    return sound


def _judged(row: Prediction) -> dict[str, Json]:
    """Returns the verdict that the answer had where it comes from, and its span, as metadata."""
    told: dict[str, Json] = {"correct": row.get("source_correct"), "scores": row.get("source_scores")}
    told |= {"trace_id": row.get("trace_id"), "span_id": row.get("span_id")}
    told = {name: value for name, value in told.items() if value is not None}
    return {SOURCE: told} if told else {}
