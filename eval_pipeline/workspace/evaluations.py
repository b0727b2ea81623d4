"""Identities of evaluations: what one is made of, which of a date there are, and how two differ.

The newest evaluation of a date is where its partition is in the record; earlier ones of the date are one folder deeper.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime

from eval_pipeline.core.ids import json_hash, parse_json
from eval_pipeline.core.model import Json, Partition
from eval_pipeline.core.values import value
from eval_pipeline.store.keys import ANY
from eval_pipeline.store.record import Header, RecordKey
from eval_pipeline.store.tables import GENERATIONS, MODEL_VERSIONS, STATISTICS, TURN_RESULTS
from eval_pipeline.workspace.runs import run_rows
from eval_pipeline.workspace.workspace import Workspace

EVALUATION, DATA, PROMPT_HASH, STAND_IN = "evaluation", "data", "prompt_hash", "stand_in"
"""Entries in the footer of `generations` that older files lack: the evaluation's id, the hash of what models are shown
of the suite's cases (`suite_editions.data_hash`), the hash of the suite's prompt, and of a stand-in the fingerprint of
the code that makes up its answers (empty for models)."""
ADDED = frozenset({EVALUATION, DATA, PROMPT_HASH, STAND_IN})
_ANSWERS = "answers"
"""The entry that older files have instead of `STAND_IN`."""
_TOLD = ("identity", "prompt", "predictions", "epoch")
_LENGTH = 10


@value
class EvaluationRun:
    """One run of a model version with a prompt on a suite, resumed or rescored perhaps.

    Attributes:
        id: 10 hexadecimal digits.
        partition: where it is in the record.
        begun_at: when its first run began, in UTC; None if that is not known.
        settings: settings of the model version that can change a response (`ModelVersion.identity`).
        prompt: version of the track's prompt, and the hash of the suite's if it is asked with one.
        prompt_text: the suite's own words in the prompt as JSON text; an empty object for none, and for older files.
        data_hash: hash of what models are shown of the suite's cases.
        epoch: freshness epoch.
        newest: whether it is the newest of its date.
        stand_in: fingerprint of the code of a stand-in; of older ones that of any provider within the process.
    """

    id: str
    partition: Partition
    begun_at: datetime | None
    settings: Mapping[str, Json]
    prompt: str
    prompt_text: str
    data_hash: str
    epoch: str
    newest: bool
    stand_in: str = ""


def evaluations(
    workspace: Workspace, suite: str, model_version: str | None = None, day: date | None = None
) -> list[EvaluationRun]:
    """Returns the evaluations of a suite that were scored to their end, the newest first."""
    places = all_partitions(workspace, RecordKey(suite, model_version, day))
    found = [one for place in places if (one := evaluation_at(workspace, place)) is not None]
    return sorted(found, key=_age, reverse=True)


def all_partitions(workspace: Workspace, within: RecordKey = ANY) -> list[Partition]:
    """Returns the places of scored evaluations, those of the newest of each date first.

    An earlier one that is about to be kept or put back is in the place of the newest, too, and only that counts.
    """
    record = workspace.record
    newest = [key.partition() for key in record.partitions(TURN_RESULTS, within)]
    earlier = [key.partition() for key in record.partitions(TURN_RESULTS, within, earlier=True)]
    return [*newest, *(place for place in earlier if place.evaluation != id_in_place(workspace, place))]


def evaluation_at(workspace: Workspace, partition: Partition) -> EvaluationRun | None:
    """Returns the evaluation of a partition; None if the record has none that was scored to its end."""
    key = RecordKey.of(partition)
    headers = [workspace.record.header(table, key) for table in (GENERATIONS, TURN_RESULTS, STATISTICS)]
    generated, scored, ended = headers
    if not (generated and scored and ended) or ended.made_from.get(TURN_RESULTS.name) != scored.content_hash:
        return None
    told, own = generated.made_from, id_of(partition, generated)
    rows = run_rows(workspace, replace(partition, evaluation=own))
    last = rows[-1] if rows else {}
    return EvaluationRun(
        own,
        partition,
        min((row["started_at"].replace(tzinfo=UTC) for row in rows), default=None),
        parse_json(last["identity"]) if last.get("identity") else _settings(workspace, partition, told),
        last.get("prompt") or told.get("prompt", ""),
        last.get("prompt_text") or "{}",
        told.get(DATA) or told.get("cases", ""),
        told.get("epoch", ""),
        not partition.evaluation,
        _stand_in(told),
    )


def id_in_place(workspace: Workspace, partition: Partition) -> str:
    """Returns the id of the newest evaluation of a date; empty if there is none."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition).of_date)
    return id_of(partition, header) if header else ""


def id_of(partition: Partition, generated: Header) -> str:
    """Returns the id of the evaluation with this header of `generations`; older ones do not say it."""
    return generated.made_from.get(EVALUATION) or new_id(partition, generated.made_from)


def new_id(partition: Partition, told: Mapping[str, str]) -> str:
    """Returns the id of an evaluation with this footer of `generations`, a function of what decides its answers."""
    what = [told.get(name, "") for name in (*_TOLD, PROMPT_HASH)] + [told[STAND_IN]] * bool(told.get(STAND_IN))
    place = [partition.suite, partition.model_version, partition.eval_date.isoformat()]
    return json_hash([*place, *what, told.get(DATA) or told.get("cases", "")])[:_LENGTH]


def is_same(before: Mapping[str, str], now: Mapping[str, str], *, epoch: bool = True) -> bool:
    """Whether two footers of `generations` are of one evaluation: a run would resume the first to make the second.

    Scope, code, prices and gold may differ, but not the code that makes up the answers of a stand-in. Of older footers,
    which do not tell the gold from what models are shown, the cases have to be the same.
    """
    if now.get(STAND_IN) and _stand_in(before) not in ("", now[STAND_IN]):
        return False
    if any(before.get(name, "") != now.get(name, "") for name in _TOLD if epoch or name != "epoch"):
        return False
    if DATA not in before:
        return before.get("cases") == now.get("cases")
    return before[DATA] == now.get(DATA) and before.get(PROMPT_HASH, "") == now.get(PROMPT_HASH, "")


def causes(before: EvaluationRun, after: EvaluationRun) -> list[str]:
    """Returns in what two evaluations differ, in words, e.g. `prompt changed`, `options changed: temperature`."""
    found = []
    if (before.prompt, before.prompt_text) != (after.prompt, after.prompt_text):
        found.append("prompt changed")
    if changed := sorted(_changed(before.settings, after.settings)):
        found.append(f"options changed: {', '.join(changed)}")
    if before.data_hash != after.data_hash:
        found.append("cases changed")
    if before.epoch != after.epoch:
        found.append("asked anew")
    if after.stand_in and before.stand_in not in ("", after.stand_in):
        own = "the agent's files" if after.settings.get("provider") == "command" else "the stand-in's own code"
        found.append(f"{own} changed")
    return found


def _stand_in(told: Mapping[str, str]) -> str:
    return told.get(STAND_IN, told.get(_ANSWERS, ""))


def _changed(before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[str]:
    """Yields the settings that differ, those within a group of settings by their own names."""
    for name in before.keys() & after.keys():  # of older runs, all settings are known
        one, other = before[name], after[name]
        if name in {"prompt", "suite_prompt"} or one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            yield from (inner for inner in one.keys() | other.keys() if one.get(inner) != other.get(inner))
        else:
            yield name


def _settings(workspace: Workspace, partition: Partition, told: Mapping[str, str]) -> Mapping[str, Json]:
    """Returns the settings of an older evaluation, if they are those of its model version on record."""
    key = RecordKey.of_model_version(partition.model_version)
    if workspace.record.header(MODEL_VERSIONS, key) is None:
        return {}
    row = workspace.record.read(MODEL_VERSIONS, key, ["identity_hash", "settings"]).to_pylist()[0]
    return parse_json(row["settings"]) if row["identity_hash"] == told.get("identity") else {}


def _age(found: EvaluationRun) -> tuple[date, bool, datetime]:
    return found.partition.eval_date, found.newest, found.begun_at or datetime.min.replace(tzinfo=UTC)
