"""What the stages that ask settle beforehand: the scope, what answers depend on, and whether to ask again."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow.compute as pc

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import canonical_json, json_hash
from eval_pipeline.core.model import CallErrorKind, Case, Json
from eval_pipeline.core.model_versions import ModelVersion, PromptedVersion
from eval_pipeline.core.provenance import UNKNOWN
from eval_pipeline.providers.base import Environment
from eval_pipeline.providers.prices import price_version
from eval_pipeline.providers.registry import traits_of
from eval_pipeline.providers.standins.inprocess import Immediate
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import (
    CASES,
    GENERATION_PROMPTS,
    GENERATIONS,
    RECOVERY_ATTEMPTS,
    RECOVERY_PROMPTS,
    SUITE_EDITIONS,
    TURNS,
    VALIDATION,
)
from eval_pipeline.suites.prompts import prompt_of
from eval_pipeline.tracks.code import damage_code
from eval_pipeline.tracks.texts.prompt_parts import Prompting
from eval_pipeline.workspace.asked.planned import (
    cases_in_scope,
    effective_epoch,
    guard_scope,
    note_later_run,
    planned_cases,
    recorded_epoch,
)
from eval_pipeline.workspace.earlier import keep, put_back, settle
from eval_pipeline.workspace.evaluations import DATA, EVALUATION, PROMPT_HASH, STAND_IN, id_of, is_same, new_id
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import open_run
from eval_pipeline.workspace.workspace import Workspace

GENERATED = (GENERATIONS, GENERATION_PROMPTS, VALIDATION)
RECOVERED = (RECOVERY_ATTEMPTS, RECOVERY_PROMPTS)


def prepare_generating(inputs: Inputs) -> Inputs:
    """Fixes the freshness epoch of the run.

    Raises:
        UsageError: a name is unknown, or a partial scope would replace a full evaluation of the same date.
    """
    inputs.require_names()
    guard_scope(inputs.workspace, inputs.place, inputs.scope)
    return inputs.anew(run=replace(inputs.run, epoch=_epoch(inputs)))


def _epoch(inputs: Inputs) -> str:
    """Returns the freshness epoch of a run: that of an evaluation of the date with the same prompt, options and cases.

    Such an evaluation may be an earlier one.
    """
    workspace, place, key = inputs.workspace, inputs.place, inputs.key(GENERATIONS)
    epoch = effective_epoch(workspace, place, inputs.run.epoch)
    earlier = [] if inputs.run.epoch else workspace.record.partitions(GENERATIONS, key, earlier=True)
    if earlier and (before := inputs.header(GENERATIONS)) is not None:
        now = _asked_with(inputs)
        for found in (before, *(workspace.record.header(GENERATIONS, one) for one in earlier)):
            if found is not None and is_same(found.made_from, now, epoch=False):
                return epoch if found is before else found.made_from.get("epoch", "")
    return epoch


def begin_generating(inputs: Inputs, made: Mapping[str, str]) -> bool:
    """Keeps the evaluation that is in the place of another one, or puts back the one that is asked for again.

    Raises:
        UsageError: nobody may be asked, and the answers on record are those of another evaluation.
    """
    workspace, place = inputs.workspace, inputs.place
    settle(workspace, place)
    before = inputs.header(GENERATIONS)
    if before is None or is_same(before.made_from, made):
        return False
    if not inputs.run.asks or place.evaluation:
        raise UsageError(
            f"{inputs.label('generations')}: the answers on record were given under another prompt, other options or "
            "other cases; `eval-pipeline run` makes another evaluation"
        )
    keep(workspace, place)
    return put_back(workspace, place, made)


def begin_recovering(inputs: Inputs, _: Mapping[str, str]) -> bool:
    """Removes what is left of the evaluation before, if `generations` have just been made."""
    settle(inputs.workspace, inputs.place)
    return False


def is_resumed(inputs: Inputs) -> bool:
    """Whether a run would resume the evaluation on record, not make another one."""
    before = inputs.header(GENERATIONS)
    own = prepare_generating(inputs)
    return before is not None and not inputs.place.evaluation and is_same(before.made_from, _asked_with(own))


def note_generating(inputs: Inputs) -> None:
    """Adds the run to `runs`, whether it asks or not."""
    cases, _ = size_in_scope(inputs)
    made_of = {
        "evaluation_id": generating_settings(inputs)[EVALUATION],
        "identity": canonical_json(inputs.version.identity()),
        "prompt": prompt_told(inputs),
        "prompt_text": canonical_json(own_words(inputs)),
    }
    open_run(inputs.workspace, inputs.place, inputs.run, inputs.scope.label(), turns_planned(inputs), cases, made_of)


def cases_of(inputs: Inputs) -> list[Case]:
    """Returns the cases in scope."""
    place = (inputs.workspace, inputs.place)
    # What had failed when a partial evaluation was made cannot be derived from what has failed by now.
    again = inputs.scope.failed and not inputs.run.asks
    found = (lambda: planned_cases(*place)) if again else (lambda: cases_in_scope(*place, inputs.scope))
    return inputs.hold("cases in scope", found)


def turns_planned(inputs: Inputs) -> int:
    """Returns the number of turns in scope, times samples."""
    _, turns = size_in_scope(inputs)
    return turns * inputs.version.samples_per_turn


def size_in_scope(inputs: Inputs) -> tuple[int, int]:
    """Returns the numbers of cases and turns in scope; those of a whole suite need no case to be read."""
    cases, turns = inputs.header(CASES), inputs.header(TURNS)
    if inputs.scope.is_full and cases is not None and turns is not None:
        return cases.rows, turns.rows
    found = cases_of(inputs)
    return len(found), sum(len(case.turns) for case in found)


def generating_settings(inputs: Inputs) -> dict[str, str]:
    """Returns what decides prompts and prices in addition to the cases, and the id of the evaluation.

    Raises:
        InputError: the predictions were changed after their import.
    """
    return inputs.hold("settings", lambda: _generating_settings(inputs))


def _generating_settings(inputs: Inputs) -> dict[str, str]:
    version, partition = inputs.version, inputs.place
    predictions = version.predictions.get(partition.suite)
    if predictions:
        from eval_pipeline.providers.standins.recorded import refuse_edited

        refuse_edited(inputs.workspace.home.predictions / predictions.file, predictions.content_hash)
    price = [version.priced_as, version.price and version.price.model_dump(mode="json"), price_version()]
    made = _asked_with(inputs)
    told = {name: text for name, text in made.items() if name != CASES.name}
    before = inputs.header(GENERATIONS)
    resumed = before if before is not None and is_same(before.made_from, made) else None
    return told | {
        EVALUATION: id_of(partition, resumed) if resumed else new_id(partition, made),
        "answers": answers_code(inputs),
        "price": json_hash(price),
        "scope": inputs.scope.label(),
        **({} if inputs.scope.is_full else {"selection": json_hash(sorted(case.id for case in cases_of(inputs)))}),
    }


def data_hash(inputs: Inputs) -> str:
    """Returns the hash of what models are shown of the suite's cases; it does not change with the gold."""
    return str(inputs.read(SUITE_EDITIONS, ["data_hash"])["data_hash"][0].as_py())


def _asked_with(inputs: Inputs) -> dict[str, str]:
    """Returns what decides which evaluation it is, as in the footer of `generations`."""
    predictions, kind = inputs.version.predictions.get(inputs.suite), traits_of(inputs.version.provider)
    return {
        "identity": inputs.version.identity_hash(),
        "prompt": prompt_told(inputs),
        "predictions": predictions.hash() if predictions else "",
        "epoch": inputs.run.epoch,
        DATA: data_hash(inputs),
        PROMPT_HASH: json_hash(own_words(inputs)),
        STAND_IN: answers_code(inputs) if kind.simulated or kind.own_agent else "",
        **inputs.hashes([CASES]),
    }


def own_words(inputs: Inputs) -> dict[str, Json]:
    """Returns the suite's own words in the prompts: those of its options, and its prompt that is asked with."""
    added = prompt_of(inputs.workspace.suite(inputs.suite), inputs.version)
    return inputs.track.prompt_options(inputs.options) | ({} if added is None else added.definition())


def prompting(workspace: Workspace, suite: str, version: ModelVersion) -> Prompting:
    """Returns how prompts are made: the track's prompt version, by default the newest, or by a prompt of the suite.

    Raises:
        UsageError: the suite has no such prompt.
    """
    source, track = workspace.suite(suite), workspace.track(suite)
    added = prompt_of(source, version)
    if isinstance(version, PromptedVersion) and added is None:
        raise UsageError(f"the suite '{suite}' has no prompt '{version.suite_prompt}' any more")
    return Prompting(version.prompt.get(track.name, track.prompt_versions[-1]), added)


def prompt_told(inputs: Inputs) -> str:
    """Returns the prompt of the answers; for recorded ones that of their provenance, or `unknown`."""
    predictions = inputs.version.predictions.get(inputs.suite)
    if predictions is None:
        return prompting(inputs.workspace, inputs.suite, inputs.version).told()
    return predictions.provenance.prompt_version or UNKNOWN


def unanswered(inputs: Inputs, table: Table = GENERATIONS) -> bool:
    """Whether asking again may help: a call gave nothing, and not because a recorded prediction is missing or an error.

    Refused answers and those cut off at `max_tokens` would be the same again.
    """
    if not inputs.run.asks:
        return False
    rows = inputs.read(table, ["call_error", "stop_reason"])
    errors = pc.filter(rows["call_error"], pc.is_null(rows["stop_reason"])).unique().to_pylist()
    final = {CallErrorKind.NO_PREDICTION.value, CallErrorKind.RECORDED_ERROR.value, CallErrorKind.REFUSED.value}
    return bool(set(errors) - {None} - final)


def prepare_recovering(inputs: Inputs) -> Inputs:
    """Fixes the freshness epoch: the run's, or else that of the generations."""
    epoch = inputs.run.epoch or recorded_epoch(inputs.workspace, inputs.place)
    return inputs.anew(run=replace(inputs.run, epoch=epoch))


def note_recovering(inputs: Inputs) -> None:
    """Adds a run that continues from another run's generations to `runs`."""
    note_later_run(inputs.workspace, inputs.place, inputs.run.run_id)


def recovering_settings(inputs: Inputs) -> dict[str, str]:
    """Returns what decides the result in addition to the generations, whose settings cover the rest."""
    return {"epoch": inputs.run.epoch, "answers": answers_code(inputs)}


def unrecovered(inputs: Inputs) -> bool:
    """Whether asking again may help."""
    return unanswered(inputs, RECOVERY_ATTEMPTS)


def answers_code(inputs: Inputs) -> str:
    """Returns the fingerprint of a provider that makes up its answers, or of a program that is the user's own.

    Empty for others, whose code does not affect them; as on record where a program is not there any more.
    """
    kind = traits_of(inputs.version.provider)
    if kind.own_agent:
        before = inputs.header(GENERATIONS)
        known = "" if before is None else before.made_from.get("answers", "")
        return kind.own_files(inputs.version, environment_of(inputs.workspace)) or known
    if not issubclass(kind, Immediate):
        return ""
    return inputs.workspace.fingerprints.of(kind, *damage_code(inputs.track)).code


def environment_of(workspace: Workspace, code: str = "") -> Environment:
    """Returns what providers may know about where they are; `code` is the fingerprint of one that makes up answers."""
    home = workspace.home
    private = (str(home.root), *map(str, home.suite_folders))
    return Environment(str(home.predictions), code, str(home.data.parent), private)
