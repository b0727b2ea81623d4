"""What people ask of an evaluation: addresses of filtered turns, and of evaluations side by side."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.links import compare_path
from eval_pipeline.view.addresses import turns_address
from eval_pipeline.view.evaluation import (
    earlier_days,
    is_row,
    leaderboard,
    listed,
    model_versions_of,
    of_earlier,
    scope_of,
    table_of,
)
from eval_pipeline.view.filtering.filter import DESCENDING, FLAKY, UNREADABLE, UNREVIEWED
from eval_pipeline.view.published import Row, StoreView
from eval_pipeline.workspace.asked.scope import FULL

_WEEK = timedelta(days=7)
_FEWEST_DATES = 3
"""On fewer dates no turn can have turned back."""


@dataclass(frozen=True, slots=True)
class QuestionLink:
    """A question that people ask of an evaluation.

    Attributes:
        words: the question.
        address: the page that answers it; empty if nothing can.
        why_not: why nothing can.
    """

    words: str
    address: str = ""
    why_not: str = ""


def broken(before: Partition, now: Partition) -> str:
    """Returns the address of the turns that were right before and are wrong now."""
    return compare_path([before, now], {"group": "rw"})


def grown_failures(before: Partition, now: Partition) -> str:
    """Returns the address of the table with how answers fail before and now, what grew significantly first."""
    return f"{compare_path([before, now])}#how-wrong"


def lost_by_tag(first: Partition, second: Partition) -> str:
    """Returns the address of the table with how many turns only the first has right, by tag."""
    return f"{compare_path([first, second])}#by-tag"


def dearest_wrong(partition: Partition, cost: str = "usd") -> str:
    """Returns the address of the wrong turns, the dearest first; `cost` is the column with what they cost."""
    return turns_address(partition, {"verdict": "wrong", "sort": cost, "order": DESCENDING})


def limited(partition: Partition, name: str) -> str:
    """Returns the address of the turns that meet a condition of `filter.ONLY`."""
    return turns_address(partition, {"only": name})


def questions(look: StoreView, partition: Partition) -> list[QuestionLink]:
    """Returns what people ask of an evaluation; cached for each state of the store."""
    return look.remembered(("questions", partition), lambda: list(_questions(look, partition)))


def _questions(look: StoreView, now: Partition) -> Iterator[QuestionLink]:
    if days := earlier_days(look, now):
        last, week = (replace(now, eval_date=day, evaluation="") for day in (days[0], week_before(now.eval_date, days)))
        yield QuestionLink(f"what broke since {last.eval_date}", broken(last, now))
        yield QuestionLink(f"which failure mode grew since {week.eval_date}", grown_failures(week, now))
    else:
        yield QuestionLink("what broke, and which failure mode grew", why_not=_why_no_earlier(look, now))
    cost, samples = _cost_and_samples(look, now)
    dear = {"address": dearest_wrong(now, cost)} if cost else {"why_not": "neither dollars nor tokens are known"}
    yield QuestionLink("dearest wrong answers", **dear)
    if other := _best_other(look, now):
        words = f"what {other.model_version} gets right and this one wrong, by tag"
        yield QuestionLink(words, lost_by_tag(other, now))
    else:
        yield QuestionLink("what others get right, by tag", why_not="no other model version of this scope")
    dates = model_versions_of(look, now.suite).get(now.model_version, ())
    known = samples > 1 or len(dates) >= _FEWEST_DATES
    flaky = {"address": limited(now, FLAKY)} if known else {"why_not": "one sample, on fewer than three dates"}
    yield QuestionLink("flaky turns", **flaky)
    yield QuestionLink("what could not be read", limited(now, UNREADABLE))
    yield QuestionLink("what nobody has reviewed", limited(now, UNREVIEWED))
    if other := _other_prompt(look, now):
        yield QuestionLink("what its prompt changed", compare_path([other, now]))
    else:
        yield QuestionLink("what its prompt changed", why_not="asked with one prompt only")


def week_before(day: date, days: list[date]) -> date:
    """Returns the newest of some earlier dates, newest first, that is a week before; the oldest if none is."""
    return next((one for one in days if one <= day - _WEEK), days[-1])


def _why_no_earlier(look: StoreView, now: Partition) -> str:
    days = model_versions_of(look, now.suite).get(now.model_version, ())
    if all(day >= now.eval_date for day in days):
        return "no date before this one"
    return "on no date before this one was it asked the same part of the suite"


def _cost_and_samples(look: StoreView, now: Partition) -> tuple[str, int]:
    """Returns the column with what turns cost, tokens where no price is known or nothing; and samples a turn."""
    sql = f"""SELECT count(usd) AS usd, count(tokens) AS tokens, max(sample) + 1 AS samples
        FROM {table_of(now, "turn_results")} WHERE suite = ? AND model_version = ? AND eval_date = ?{of_earlier(now)}"""
    row = look.row(sql, [now.suite, now.model_version, now.eval_date]) or {}
    return next((name for name in ("usd", "tokens") if row.get(name)), ""), row.get("samples") or 0


def _best_other(look: StoreView, now: Partition) -> Partition | None:
    """Returns the most accurate evaluation of another model version; only of the same scope, else it tells nothing."""
    rows = [row for row in leaderboard(look).get(now.suite, ()) if not row["retired"]]
    scope = scope_of(look, now)
    others = (row for row in rows if row["model_version"] != now.model_version and (row["scope"] or FULL) == scope)
    return next((Partition(now.suite, row["model_version"], row["eval_date"]) for row in others), None)


def _other_prompt(look: StoreView, now: Partition) -> Partition | None:
    """Returns the evaluation of the same settings with another prompt that is the newest up to then, or else of all."""
    rows = [row for row in listed(look, now.suite) if row["prompt_hash"] is not None]
    mine = next((row for row in rows if is_row(now, row)), None)
    if mine is None:
        return None
    others = [row for row in rows if _is_other_prompt(row, mine)]
    if not others:
        return None
    chosen = max(others, key=lambda row: (row["eval_date"] <= now.eval_date, row["eval_date"], row["begun_at"]))
    return Partition(now.suite, chosen["model_version"], chosen["eval_date"], "" if chosen["newest"] else chosen["id"])


def _is_other_prompt(row: Row, mine: Row) -> bool:
    """Whether an evaluation has the settings and scope of another, whatever it is called, but not its prompt."""
    same = all(row[name] == mine[name] for name in ("settings_hash", "scope"))
    return bool(same and row["prompt_hash"] != mine["prompt_hash"])
