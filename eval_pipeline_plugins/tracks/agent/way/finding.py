"""The evidence of the kind `way`: what each call read, what was never looked at, and the first wrong step."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eval_pipeline.core.model import Json
from eval_pipeline.core.system.programs import CRASHED
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase
from eval_pipeline_plugins.tracks.agent.cases.settings import ForbiddenCheck
from eval_pipeline_plugins.tracks.agent.checking.answer import is_refusal
from eval_pipeline_plugins.tracks.agent.checking.forbidden import done_wrong, writes_to
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER, LIMITS, Trajectory
from eval_pipeline_plugins.tracks.agent.way.answered import UNTOLD, FirstWrong, of_answer
from eval_pipeline_plugins.tracks.agent.way.chain import WayStep, decided_way, sharing, until_answer, way_of
from eval_pipeline_plugins.tracks.agent.way.changed import of_state
from eval_pipeline_plugins.tracks.agent.way.looked import Unseen, unseen
from eval_pipeline_plugins.tracks.agent.way.values import FigureRatio

Failed = Sequence[tuple[str, Mapping[str, Any]]]
"""The checks that are not passed: their kinds and details."""


def way_details(
    case: AgentCase, attempt: Trajectory, gold: Trajectory, end_state: Mapping[str, Json], failed: Failed
) -> dict[str, Json]:
    """Returns the details of the evidence: `reads` by step, `never_looked`, and where it went wrong.

    Args:
        case: the case.
        attempt: what was done.
        gold: what the gold does.
        end_state: what the attempt has changed.
        failed: the checks that are not passed; of a right attempt none, and nothing is looked for.
    """
    try:
        mine = (decided_way if failed else way_of)(attempt, case.context)
        theirs = decided_way(gold, case.context)
        unread = unseen(mine, theirs, case.context.world)
        found = first_wrong(case, attempt, (mine, theirs), end_state, failed) if failed else UNTOLD
    except (ArithmeticError, RecursionError, ValueError):  # code is as deep, and figures as large, as models like
        mine, unread, found = [], Unseen(), UNTOLD
    reads: dict[str, Json] = {str(one.place): sorted(one.touched.reads) for one in mine if one.touched.reads}
    return {
        "reads": reads,
        "never_looked": list(unread.names),
        "mode": found.mode,
        "step": found.step,
        "words": found.words,
    }


def first_wrong(
    case: AgentCase,
    attempt: Trajectory,
    ways: tuple[Sequence[WayStep], Sequence[WayStep]],
    end_state: Mapping[str, Json],
    failed: Failed,
) -> FirstWrong:
    """Tells where a failed attempt went wrong; arguments as of `way_details`, with the ways of attempt and gold."""
    mine, theirs = sharing(*ways)
    kinds = dict(reversed(failed))
    last = len(attempt.steps) - 1 if attempt.steps else None
    if attempt.ended in LIMITS:
        return FirstWrong("out_of_budget", _repeated(mine, last), attempt.why or "a limit was reached")
    if "forbidden" in kinds:
        return _forbidden(case, attempt, mine, end_state)
    if attempt.ended == CRASHED:
        return FirstWrong(CRASHED, last, attempt.why or "its program failed")
    if "answer" in kinds:
        return _of_answers(case, attempt, mine, theirs, kinds["answer"])
    if attempt.ended == "gave_up" and not end_state:
        return FirstWrong("gave_up", last, "it ended without an answer")
    if mine and mine[-1].name == ANSWER and not end_state and _says_no(mine[-1].answer):
        return FirstWrong("gave_up", mine[-1].place, "it says that it cannot be done")
    if attempt.is_script:
        return UNTOLD
    wrong, beside = _named_in(failed, theirs, mine)
    shown = " ".join(str(told.get("words") or "") for _, told in failed)
    return of_state(mine, theirs, wrong, beside, unseen(mine, theirs, case.context.world), _scale(failed), shown)


def _says_no(answer: Json) -> bool:
    return is_refusal(answer) or (isinstance(answer, str) and _CANNOT.search(answer) is not None)


_CANNOT = re.compile(
    r"\b(?:can ?not|can't|could not|couldn't) (?!be \w+ (?:wrong|worse))\w+|\bunable to\b"
    r"|\b(?:did not|didn't) manage\b",
    re.IGNORECASE,
)
"""Says that nothing was done, where something was to be done and nothing is."""


def _repeated(mine: Sequence[WayStep], last: int | None) -> int | None:
    seen = set[str]()
    for one in mine:
        key = repr((one.name, sorted(one.step.calls[0].arguments.items(), key=repr), one.step.text))
        if key in seen:
            return one.place
        seen.add(key)
    return last


def _forbidden(
    case: AgentCase, attempt: Trajectory, mine: Sequence[WayStep], end_state: Mapping[str, Json]
) -> FirstWrong:
    checks = [one for one in case.turns[0].gold.checks if isinstance(one, ForbiddenCheck)]
    found = ((check, wrong) for check in checks for wrong in done_wrong(check, attempt, end_state, case.context.world))
    check, wrong = next(found, (None, None))
    if check is None or wrong is None:
        return UNTOLD
    if wrong.call is not None:
        return FirstWrong("forbidden", mine[wrong.call - 1].place, wrong.words)
    at = next((one for one in mine if writes_to(one.touched.writes, check)), None)
    at = at or next((one for one in mine if wrong.path in str(one.step.calls[0].arguments)), None)
    return FirstWrong("forbidden", None if at is None else at.place, wrong.words)


def _of_answers(
    case: AgentCase, attempt: Trajectory, mine: Sequence[WayStep], theirs: Sequence[WayStep], told: Mapping[str, Any]
) -> FirstWrong:
    gold, number = case.turns[0].gold, int(told.get("number", 0))
    until = until_answer(mine, number)
    last = len(attempt.steps) - 1 if attempt.steps else None
    if not until or until[-1].name != ANSWER or number >= len(attempt.answers()):
        mode = "gave_up" if attempt.ended == "gave_up" else None
        return FirstWrong(mode, last if mode else None, "it ended without an answer")
    answer = until[-1]
    is_last = number == len(gold.accepted) - 1
    if gold.unanswerable and is_last:
        return FirstWrong("invented", answer.place, "it answers what cannot be answered")
    if told.get("declined"):
        return FirstWrong("gave_up", answer.place, "it says that there is no answer")
    if attempt.is_script:
        return UNTOLD
    right = until_answer(theirs, number)
    question = [case.turns[0].question, *case.context.then][number]
    found = of_answer(until, right, gold.accepted[number], question, unseen(mine, right, case.context.world))
    earlier = until_answer(mine, number - 1)[-1].place if number else -1
    if found.step is None or found.step > earlier or found.mode == "not_looked":
        return found
    later = [one for one in until if one.place > earlier and one.computes()] or [answer]
    return replace(found, step=later[0].place)  # the answer before was right


def _named_in(failed: Failed, theirs: Sequence[WayStep], mine: Sequence[WayStep]) -> tuple[list[str], list[str]]:
    """Returns the files and tables that checks speak of: those that are wrong, and those changed beside."""
    beside = [name for _, told in failed for words in told.get("beside") or () for name in _names(str(words))]
    words = " ".join(str(told.get("words") or "") for _, told in failed)
    written = {one for step in theirs for one in step.touched.writes}
    own = {one for step in mine for one in step.touched.writes} - written
    named, others = ([one for one in sorted(names) if _is_in(one, words)] for names in (written, own))
    if others and not named:  # all that the gold changes is right
        return [], [*beside, *others]
    return named or sorted(written), beside


def _scale(failed: Failed) -> FigureRatio | None:
    """Returns the ratio of a figure that is wrong to the right one, by the words of the checks."""
    found = (
        re.search(r": (-?\d+(?:\.\d+)?) for (-?\d+(?:\.\d+)?)(?![\w.-])", str(told.get("words"))) for _, told in failed
    )
    pairs = [(float(one[1]), float(one[2])) for one in found if one is not None]
    return next((FigureRatio(one / other) for one, other in pairs if other), None)


def _is_in(name: str, words: str) -> bool:
    return re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", words, re.IGNORECASE) is not None


def _names(words: str) -> Iterator[str]:
    """Yields what a sentence on a difference is about: a path, or a table without its database."""
    if (table := re.match(r"(?:the table )?\w+\.(\w+)(?::| was made)", words)) is not None:
        yield table[1]
    elif (path := re.match(r"(\S+) was (?:removed|changed|made)", words)) is not None:
        yield path[1]
