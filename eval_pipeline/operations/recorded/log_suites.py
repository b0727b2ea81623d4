"""Imports a log whole: a suite from what was asked and expected, and a model version for each model that answered.

Into a suite that exists, only the answers are imported.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.ids import canonical_json, text_hash
from eval_pipeline.core.model import Json
from eval_pipeline.operations.imports.importing import ImportedColumns, ImportedSuite, import_at_arms_length
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline.operations.recorded.importing import ImportedPredictions, import_predictions
from eval_pipeline.operations.recorded.logs import read_any_log
from eval_pipeline.operations.recorded.mapping import FieldMapping, is_there, value_at
from eval_pipeline.operations.recorded.placing import QUESTIONS, TurnPlaces
from eval_pipeline.operations.recorded.traffic import TrafficChoices, conversations, read_traffic
from eval_pipeline.operations.recorded.wanted import Wanted
from eval_pipeline.providers.standins.recorded import NAME as RECORDED
from eval_pipeline.suites.cases import read_cases
from eval_pipeline.workspace.workspace import Workspace

TASK_FIELDS = ("question", "expected", "id", "tags")
"""Fields of a `LoggedTask` that `--map` may name beside those of an answer."""
_FINAL = re.compile(r"(?s).*####[ \t]*(\S[^\n]*?)\s*")
"""The solutions of GSM8K and its kin, which end in `#### 42`."""

_LETTER = re.compile("[A-Z]")
"""The right answers of questions with choices."""
_CONTAINS = "contains"
_MOST_WORDS = 4
_ASSENT = {"yes", "no", "true", "false"}
_CHOICE = re.compile(r"(?m)^([A-Z])[.)] ")
_UNTELLING = {"scenario_state", "eval_results_table", "results", "output", "cases", "logs"}
"""Names of files that tools always give, so that the folder's says more."""


@dataclass(frozen=True, slots=True)
class ImportedLog:
    """The result of importing a log.

    Attributes:
        form: what it was recognised as.
        suite: name of the suite with its tasks.
        made: that suite, if it was made.
        notes: what was done on the way, in sentences.
        versions: the model versions, each with its answers.
        judged: answers with a verdict of the log's own.
    """

    form: str
    suite: str
    made: ImportedSuite | None
    notes: tuple[str, ...]
    versions: tuple[ImportedPredictions, ...]
    judged: int


@dataclass(frozen=True, slots=True)
class LogChoices:
    """What the user said about a log; what is empty is told by the log itself.

    Attributes:
        suite: name of the suite, which is made if there is none.
        model_version: name of the model version; a log of several models has none.
        tasks: field of `LoggedTask` → path in an entry.
        answer_form: form of the answers of a suite that is made.
    """

    suite: str = ""
    model_version: str = ""
    tasks: Mapping[str, str] | None = None
    answer_form: str | None = None


def parted(told: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Parts texts `OURS=THEIRS` into those of a task and those of an answer."""
    pairs = [(text, *text.partition("=")) for text in told]
    tasks = {ours.strip(): theirs.strip() for _, ours, _, theirs in pairs if ours.strip() in TASK_FIELDS and theirs}
    return tasks, [text for text, ours, *_ in pairs if ours.strip() not in tasks]


def import_log(
    workspace: Workspace, source: Path, choices: LogChoices, wanted: Wanted, traffic: TrafficChoices | None = None
) -> ImportedLog:
    """Imports a log's answers, and makes the suite that they answer unless it exists.

    Of `traffic`, conversations are drawn, what is right need not be known, and all models are one model version.

    Raises:
        UsageError: there is no such file; a name or a field does not fit.
        InputError: the log cannot be read, has no answers, or does not tell what is right.
    """
    notes = list[str]()
    if traffic is None:
        form, entries = read_any_log(source)
    else:
        form, entries, notes = read_traffic(source, traffic)
    wanted = replace(wanted, form=form)
    FieldMapping(dict(choices.tasks or {})).check([entry.found for entry in entries])
    entries = [_with_task(entry, choices.tasks or {}, wanted) for entry in entries]
    suite = choices.suite or _suite_name(source, entries)
    made = None
    if traffic is not None and suite in workspace.suites:
        raise UsageError(f"the suite '{suite}' exists: another --suite names the one to make of the traffic")
    if suite not in workspace.suites:
        cases, entries = _cases(source, entries, notes, golds=traffic is None)
        made = _made(source, form, suite, cases, choices.answer_form, notes)
        workspace = Workspace(workspace.home)
    else:
        notes.append(f"the suite '{suite}' exists: the answers were assigned to its cases")
        entries = _placed(workspace, suite, entries)
    name = choices.model_version or (f"{suite}-answers" if traffic is not None else "")
    versions = []
    try:
        for version, own in _by_model(workspace, entries, name, wanted, form).items():
            of_all = traffic is not None
            made_of = import_predictions(workspace, source, suite, version, wanted, entries=own, of_several=of_all)
            versions.append(made_of)
            workspace = Workspace(workspace.home)
    except BaseException:
        if made is not None and not versions:
            shutil.rmtree(made.folder)
        raise
    judged = sum("source_correct" in wanted.mapped.applied(entry.given, entry.found) for entry in entries)
    return ImportedLog(form, suite, made, tuple(notes), tuple(versions), judged)


def _with_task(entry: Entry, tasks: Mapping[str, str], wanted: Wanted) -> Entry:
    """Returns the entry with the fields of its task that the user named, and without the fields of no answer."""
    named = {ours: value for ours, path in tasks.items() if is_there(value := value_at(entry.found, path))}
    task = entry.task or LoggedTask("", "")
    if "case_id" in wanted.mapped.fields and is_there(own := value_at(entry.found, wanted.mapped.fields["case_id"])):
        named.setdefault("id", own)
    if "question" in named:
        task = replace(task, question=_text(named["question"]))
    if "expected" in named:
        told = named["expected"]
        task = replace(task, expected=tuple(told) if isinstance(told, list) else (told,))
    if "id" in named:
        task = replace(task, id=_text(named["id"]))
    if isinstance(named.get("tags"), list | str):
        told = named["tags"]
        task = replace(task, tags=tuple(map(str, told)) if isinstance(told, list) else (told,))
    return replace(entry, task=task)


def _cases(
    source: Path, entries: Sequence[Entry], notes: list[str], *, golds: bool = True
) -> tuple[list[dict[str, Json]], list[Entry]]:
    """Returns the cases that the entries tell, and the entries that answer one.

    With `golds`, only those count that tell what is right.

    Raises:
        InputError: no entry tells question and right answer.
    """
    usable = [entry for entry in entries if entry.task and entry.task.question and (entry.task.expected or not golds)]
    if not usable:
        raise InputError([Problem(str(source), None, "", _lacking(entries))])
    if left := len(entries) - len(usable):
        notes.append(f"{left:,} of {len(entries):,} entries do not tell question and right answer, and are left out")
    final = [_FINAL.fullmatch(str(entry.task.expected[0])) for entry in usable if entry.task and entry.task.expected]
    solved = len(final) == len(usable) and all(final)
    if solved:
        notes.append("of the solutions, what stands after '####' is the right answer")
    several = len({entry.task.group for entry in usable if entry.task}) > 1
    cases: dict[str, dict[str, Json]] = {}
    kept = []
    for own in conversations(iter(usable)):
        tasks = [entry.task for entry in own if entry.task]
        task, turns = tasks[0], [_turn(one, solved) for one in tasks]
        case: dict[str, Json] = turns[0] if task.turn is None else {"turns": turns}
        case |= {"tags": tags} if (tags := list(dict.fromkeys(tag for one in tasks for tag in one.tags))) else {}
        case |= {"cluster": task.cluster} if task.cluster else {}
        case |= {"sampled": dict(task.sampled)} if task.sampled else {}
        told = canonical_json(case)
        name = " ".join(task.id.split()) or f"case-{text_hash(task.question)[:8]}"
        name = f"{task.group}-{name}" if several and task.group else name
        if name in cases and canonical_json(cases[name]) != told:  # as of rows that count from 0 in each part
            name = f"{name}-{text_hash(told)[:8]}"
        cases[name] = case
        for number, entry in enumerate(own):
            given = {**entry.given, "case_id": name, "turn_index": number}
            kept.append(replace(entry, given=given, conversation=()))
    return [{"id": name, **case} for name, case in cases.items()], kept


def _turn(task: LoggedTask, solved: bool) -> dict[str, Json]:
    """Returns question and answers of a task; the answer is null if the log does not know it."""
    right = task.expected
    if solved and (matched := _FINAL.fullmatch(str(right[0]))):
        right = (matched[1],)
    further = {"accept": list(right[1:])} if right[1:] else {}
    return {"question": task.question, "answer": right[0] if right else None, **further}


def _lacking(entries: Sequence[Entry]) -> str:
    asked = any(entry.task and entry.task.question for entry in entries)
    what, ours = ("right answer", "expected") if asked else ("question", "question")
    names = sorted({name for entry in entries[:100] for name in entry.found})
    return (
        f"no entry tells its {what}: --map {ours}=FIELD says where it is (there are {', '.join(names[:30])}); "
        "or --suite names a suite that exists, whose questions were answered"
    )


def _made(
    source: Path,
    form: str,
    suite: str,
    cases: Sequence[Mapping[str, Json]],
    answer_form: str | None,
    notes: list[str],
) -> ImportedSuite:
    labels: tuple[str, ...] = ()
    turns: list[Any] = [turn for case in cases for turn in (case.get("turns") or [case])]
    known = [turn for turn in turns if turn["answer"] is not None]
    if answer_form is None and known and all(_LETTER.fullmatch(str(turn["answer"])) for turn in known):
        answer_form = "label"
        last = max(letter for turn in known for letter in (*_CHOICE.findall(str(turn["question"])), turn["answer"]))
        labels = tuple(chr(code) for code in range(ord("A"), ord(str(last)) + 1))
    right = [answer for turn in known for answer in (turn["answer"], *turn.get("accept", ()))]
    short, assents = _are_short(right), [one for one in right if str(one).lower() in _ASSENT]
    if short and assents:  # both are in "yes and no"
        notes.append(f"an answer has to be the right one, not only to contain it, as '{assents[0]}' is among those")
    elif short:
        notes.append("the right answers are names and the like: an answer is right if it contains one (`contains`)")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "cases.jsonl"
        file.write_text("".join(canonical_json(case) + "\n" for case in cases), encoding="utf-8")
        origin = f"{source.name} (a log, {form})"
        columns = ImportedColumns({}, answer_form, origin, labels, _CONTAINS if short and not assents else "")
        return import_at_arms_length("text", file, suite, None, (), columns)


def _are_short(right: Sequence[Json]) -> bool:
    """Whether right answers are names and the like, which an answer in a sentence may give, too."""
    return bool(right) and all(isinstance(one, str) and len(one.split()) <= _MOST_WORDS for one in right)


def _placed(workspace: Workspace, suite: str, entries: Sequence[Entry]) -> list[Entry]:
    """Returns the entries with what finds their case in a suite: its id, if it has that, or else the question."""
    known = TurnPlaces.of(suite, read_cases(workspace.suite(suite))).cases
    found = []
    for entry in entries:
        task = entry.task or LoggedTask("", "")
        names = (task.id, f"{task.group}-{task.id}", f"case-{text_hash(task.question)[:8]}")
        name = next((name for name in names if name in known), None)
        own: dict[str, Any] = {} if name is None or "case_id" in entry.given else {"case_id": name}
        own |= {} if name is None or task.turn is None else {"turn_index": task.turn}
        asked: dict[str, Any] = {QUESTIONS: [task.question]} if task.question and QUESTIONS not in entry.found else {}
        found.append(replace(entry, given={**entry.given, **own}, found={**entry.found, **asked}))
    return found


def _by_model(
    workspace: Workspace, entries: Sequence[Entry], name: str, wanted: Wanted, form: str
) -> dict[str, list[Entry]]:
    """Returns the entries by the name of their model version: of one model, and of one prompt if it has several."""
    if name:
        return {name: list(entries)}
    parts: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        of_all = wanted.mapped.applied(entry.given, entry.found)
        told = (str(of_all.get("model") or wanted.told.model or ""), str(of_all.get("prompt_version") or ""))
        if all(str(of_all.get(field)) == value for field, value in wanted.only.items()):
            parts.setdefault(told, []).append(entry)
    found: dict[str, list[Entry]] = {}
    for (model, prompt), own in parts.items():
        several = sum(other == model for other, _ in parts) > 1
        called = "-".join(filter(None, [model.rpartition("/")[2] or f"{form}-answers", prompt if several else ""]))
        slug = re.sub(r"[^A-Za-z0-9._:-]+", "-", called).strip("-.:_")[:100] or f"{form}-answers"
        there = workspace.model_versions.get(slug)
        if slug in found or (there is not None and there.provider != RECORDED):
            slug = f"{slug}-{text_hash(canonical_json([model, prompt]))[:6]}"
        found[slug] = own
    return found


def _suite_name(source: Path, entries: Sequence[Entry]) -> str:
    groups = {entry.task.group for entry in entries if entry.task and entry.task.group}
    told = groups.pop().rpartition("/")[2] if len(groups) == 1 else source.name.lstrip(".").partition(".")[0]
    told = source.resolve().parent.name if told in _UNTELLING else told
    name = re.sub(r"[^a-z0-9_]+", "_", told.lower()).strip("_")
    return (name if name[:1].isalpha() else f"log_{name}")[:60]


def _text(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def sentences(imported: ImportedLog) -> Iterator[str]:
    """Yields what was imported, for people."""
    answers = sum(version.predictions for version in imported.versions)
    yield f"recognised as {imported.form}"
    if imported.made is not None:
        yield f"{shown.counted(imported.made.cases, 'case', 'cases')} imported to {imported.made.folder}"
    yield from (f"note: {sentence}" for sentence in imported.notes)
    if imported.judged:
        yield (
            f"the log's own verdict is kept of {imported.judged:,} of {answers:,} answers: `eval-pipeline query "
            '"SELECT * FROM source_agreement"` compares it with ours after the run'
        )
    else:
        yield "the log has no verdict of its own"
