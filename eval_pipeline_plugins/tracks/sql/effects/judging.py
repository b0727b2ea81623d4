"""Judges a script by the state that it leaves: the evidence on tasks that change data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from eval_pipeline.core.model import ErrorClass, Failed, Json, Outcome, Ran
from eval_pipeline.sandbox.sql.effects.state import FUNCTION, SEQUENCE, TYPE, Effects
from eval_pipeline.sandbox.sql.effects.state import SCHEMA as SCHEMA_OBJECT
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.table_comparison.graded import soft_f1
from eval_pipeline.tracks.capabilities import NO_GOLD
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
from eval_pipeline_plugins.tracks.sql.cases.source import Database
from eval_pipeline_plugins.tracks.sql.cases.words import SAFETY, SCHEMA, SYNTAX, Category
from eval_pipeline_plugins.tracks.sql.effects.comparing import (
    COLUMNS,
    EffectChange,
    StateDifference,
    change_cells,
    change_rows,
    changed,
    differences,
)
from eval_pipeline_plugins.tracks.sql.effects.running import (
    accepted_effects,
    effects_of,
    repeated_effects,
    validated_script,
)
from eval_pipeline_plugins.tracks.sql.responses.running import kept_rows, result_fingerprint
from eval_pipeline_plugins.tracks.sql.validation.validator import Validation, ValidationError

_MOST_TOLD = 4
_CATEGORIES: Mapping[ErrorClass, Category] = {
    ErrorClass.SYNTAX: SYNTAX,
    ErrorClass.COLUMN: SCHEMA,
    ErrorClass.SANDBOX: SAFETY,
}
_KINDS = tuple(f"{kind} " for kind in (FUNCTION, SEQUENCE, TYPE, SCHEMA_OBJECT))
_GIVEN_UP = (ErrorClass.TIMEOUT, ErrorClass.MEMORY)


@dataclass(frozen=True)
class JudgedEffects:
    """How a script compares with the accepted script that it matches best.

    Attributes:
        accepted: that one.
        validation: what the validator says, with what only the engine can say of a script: syntax and names.
        verdict: `match`, `different`, `error` (it does not run), or `NO_GOLD` (the accepted one does not).
        soft_f1: F1 of the cells in added and removed rows; None if one of the two does not run.
        message: in what the states differ, or why there is none.
        outside: objects that are not as they should be and that the task must not change.
        rows, expected_rows: what each script changed, as `change_rows` tells it.
    """

    accepted: str
    validation: Validation
    verdict: str
    soft_f1: float | None
    message: str
    outside: tuple[str, ...] = ()
    rows: Sequence[tuple[str, str, str]] = ()
    expected_rows: Sequence[tuple[str, str, str]] = ()


def outcome_of(sql: str, found: Effects | Failed) -> Outcome:
    """Returns the outcome of an attempt: the rows that its script added and removed, or why it does not run."""
    failure = found if isinstance(found, Failed) else found.error
    if failure is not None or isinstance(found, Failed):
        assert failure is not None
        return failure
    return Ran(shown_changes(sql, found))


def shown_changes(sql: str, effects: Effects) -> Json:
    """Returns what a script changed in the form that the record stores results in."""
    rows = change_rows(changed(effects))
    return {"sql": sql, "columns": list(COLUMNS), "rows": kept_rows(rows), "row_count": len(rows)}


def judge(gold: SqlGold, sql: str, failed: Failed | None = None) -> JudgedEffects:
    """Judges a script.

    Args:
        gold: its accepted scripts.
        sql: the script.
        failed: why it was found not to run, if so.
    """
    database, first = gold.database, gold.accepted[0]
    validation = validated_script(sql, database)
    if not validation.is_valid:
        return JudgedEffects(first, validation, "error", None, validation.errors[0].message)
    if failed is not None and failed.error_class in _GIVEN_UP:
        return JudgedEffects(first, validation, "error", None, failed.message)
    for accepted in gold.accepted:
        if (failure := _failure(accepted, gold)) is not None:
            told = f"the expected script does not run: {failure.message}"
            return JudgedEffects(accepted, validation, NO_GOLD, None, told)
    found = effects_of(sql, *_around(gold))
    if isinstance(found, Failed):
        return JudgedEffects(first, _with_failure(validation, found), "error", None, found.message)
    judged = [_against(accepted, gold, found, validation) for accepted in gold.accepted]
    best = max(judged, key=lambda one: (one.verdict == "match", one.soft_f1 or 0.0))
    if found.error is None:
        return best
    left = f"{found.error.message}; left then: {best.message}" if best.message else found.error.message
    return replace(
        best, validation=_with_failure(validation, found.error), verdict="error", soft_f1=None, message=left, outside=()
    )


def _with_failure(validation: Validation, failed: Failed) -> Validation:
    category = _CATEGORIES.get(failed.error_class)
    if category is None:
        return validation
    return Validation(False, category != SAFETY, (ValidationError(category, failed.message.splitlines()[0]),))


def _against(accepted: str, gold: SqlGold, found: Effects, validation: Validation) -> JudgedEffects:
    expected = accepted_effects(accepted, *_around(gold))
    assert isinstance(expected, Effects), "a script that does not run was told before"
    differing = (
        differences(found, expected) if found.error is None else differences(_unchecked(found), _unchecked(expected))
    )
    mine, theirs = changed(found), _accepted_changes(accepted, *_around(gold))
    score = soft_f1(change_cells(mine), change_cells(theirs)) if differing else 1.0
    message = _told(differing, gold.may_change)
    outside = tuple(one.name for one in differing if _is_outside(one, gold.may_change))
    verdict = "different" if differing else "match"
    return JudgedEffects(accepted, validation, verdict, score, message, outside, change_rows(mine), change_rows(theirs))


@lru_cache(maxsize=64)
def _accepted_changes(accepted: str, setup: str, checks: str, database: Database) -> list[EffectChange]:
    found = accepted_effects(accepted, setup, checks, database)
    return [] if isinstance(found, Failed) else changed(found)


def _around(gold: SqlGold) -> tuple[str, str, Database]:
    """Returns what runs before and after a script, and on which database."""
    return gold.setup_sql, gold.check_sql, gold.database


def _failure(accepted: str, gold: SqlGold) -> Failed | None:
    """Returns why an accepted script does not run."""
    found = accepted_effects(accepted, *_around(gold))
    return found if isinstance(found, Failed) else found.error


def _unchecked(effects: Effects) -> Effects:
    return replace(effects, checks=())


def _told(differing: Sequence[StateDifference], may_change: Sequence[str]) -> str:
    """Returns the differences in one sentence, the forbidden ones first."""
    told = sorted(differing, key=lambda one: not _is_outside(one, may_change))
    words = [f"{one}{', which may not change' * _is_outside(one, may_change)}" for one in told[:_MOST_TOLD]]
    more = len(told) - len(words)
    return "; ".join(words) + (f"; and {more} more" if more else "")


def _is_outside(one: StateDifference, may_change: Sequence[str]) -> bool:
    return not one.name.startswith("check ") and not _may_change(one.name, may_change)


def _may_change(name: str, named: Sequence[str]) -> bool:
    """Returns whether a task names an object; other kinds than tables and views have theirs in front."""
    return name in named or (name.startswith(_KINDS) and name.partition(" ")[2] in named)


def gold_problem(gold: SqlGold) -> str | None:
    """Returns why an accepted script is wrong; None if all are fine."""
    return next(filter(None, (_problem(sql, gold) for sql in gold.accepted)), None)


def _problem(sql: str, gold: SqlGold) -> str | None:
    validation = validated_script(sql, gold.database)
    if not validation.is_valid:
        return f"the validator rejects the script: {validation.errors[0].category}: {validation.errors[0].message}"
    for text, whose in ((gold.setup_sql, "setup"), (gold.check_sql, "check")):
        if text and not (validation := validated_script(text, gold.database)).is_valid:
            return f"the validator rejects the {whose}: {validation.errors[0].message}"
    if (failure := _failure(sql, gold)) is not None:
        return f"the script does not run: {failure.message}"
    alone = accepted_effects(sql, gold.setup_sql, "", gold.database)
    if isinstance(alone, Failed) or not alone.changes:
        return "the script changes nothing"
    outside = [name for name in alone.changes if not _may_change(name, gold.may_change)]
    if outside:
        return f"the script changes {', '.join(outside)}, which 'may_change' does not name"
    found, again = accepted_effects(sql, *_around(gold)), repeated_effects(sql, *_around(gold))
    assert isinstance(found, Effects)
    differing = [again] if isinstance(again, Failed) else differences(again, found)
    return f"the script does not leave the same state each time: {differing[0]}" if differing else None


def gold_result(gold: SqlGold) -> Json:
    """Returns what the first accepted script changes as an attempt's result; None if it does not run."""
    found = accepted_effects(gold.accepted[0], *_around(gold))
    return None if isinstance(found, Failed) or found.error else shown_changes(gold.accepted[0], found)


def gold_fingerprint(sql: str, gold: SqlGold) -> str | None:
    """Returns a hash of what an accepted script changes; None if it does not run."""
    found = accepted_effects(sql, *_around(gold))
    return (
        None
        if isinstance(found, Failed) or found.error
        else result_fingerprint(SqlRows(COLUMNS, change_rows(changed(found))))
    )
