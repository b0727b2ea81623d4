"""Cards of a turn: programs, their steps, the numbers they use from the page, and the earlier conversation."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from eval_pipeline.core.model import Attempt, Ran
from eval_pipeline.core.numbers import number_text
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline.tracks.shown.cards import (
    BesideCard,
    Card,
    CardCell,
    DifferenceCard,
    FactsCard,
    Mark,
    TableCard,
    Text,
    TextCard,
)
from eval_pipeline_plugins.tracks.finqa.cases.document import Document, FinqaGold, FinqaTurn, cell_text
from eval_pipeline_plugins.tracks.finqa.conversation import NOTHING_BEFORE, conversation_values, own_values, prediction
from eval_pipeline_plugins.tracks.finqa.mistakes.carried import program_text
from eval_pipeline_plugins.tracks.finqa.mistakes.used_numbers import (
    Used,
    answers_before,
    sentences_used,
    used_numbers,
    where,
)
from eval_pipeline_plugins.tracks.finqa.mistakes.why import answer_text, why
from eval_pipeline_plugins.tracks.finqa.programs.execute import StepError, Table, evaluate
from eval_pipeline_plugins.tracks.finqa.programs.matching import answers_match, is_number
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    READING,
    Argument,
    Constant,
    Literal,
    Program,
    ProgramStep,
    StepReference,
)
from eval_pipeline_plugins.tracks.finqa.responses.plan import FinqaPlan

_SHOWN = {"gold": "the right answers", "own": "its own answers", "none": "nothing"}
_MOST_ROWS, _MOST_COLUMNS, _MOST_STEPS, _MOST_NUMBERS, _MOST_SENTENCES, _MOST_CELL = 60, 20, 30, 30, 12, 200

FinqaSeen = Seen[Document, FinqaGold, FinqaPlan]
_GUESSED = "The answer shows no calculation; this one gives its number, and is a guess."


def turn_cards(seen: FinqaSeen) -> list[Card]:
    """Returns the cards of a turn; without an attempt, they show what the gold uses from the page."""
    final = seen.attempts[-1] if seen.attempts else None
    told = _told(seen, final)
    return [*_cards(seen, final, told)]


def _told(seen: FinqaSeen, final: Attempt[FinqaPlan] | None) -> Mapping[str, Any]:
    """Returns the values that the metrics receive for the turn in its conversation."""
    if final is None:
        gold = seen.turn.gold.program
        none = {"plan_program": None, "resolved_plan": None}
        return {"gold_program": gold, "resolved_gold": gold, **none, **NOTHING_BEFORE}
    asked = [(turn, attempts) for turn, attempts in seen.earlier if attempts]
    said: Sequence[tuple[FinqaTurn, Sequence[Attempt[FinqaPlan]]]] = [*asked, (seen.turn, seen.attempts)]
    conversation = conversation_values(seen.case, said, seen.history)
    return {**own_values(final, seen.turn.gold, seen.case.context), **NOTHING_BEFORE, **conversation[-1]}


def _cards(seen: FinqaSeen, final: Attempt[FinqaPlan] | None, told: Mapping[str, Any]) -> Iterator[Card]:
    page, gold = seen.case.context, seen.turn.gold
    if final is not None:
        yield from _failure(seen, final, told)
    if told["plan_program"] is not None:
        yield from _programs(told)
    else:
        yield FactsCard("Gold program", [("as written", gold.program_text)])
    yield _steps(seen, final, told)
    used = used_numbers(told["resolved_gold"], told["resolved_plan"], page)
    if used.numbers:
        yield _numbers(seen, used)
    if page.table:
        yield _document_table(page, used)
    if sentences := sentences_used(used, page):
        yield _sentences(sentences)
    if seen.earlier:
        yield _before(seen)


def _failure(seen: FinqaSeen, final: Attempt[FinqaPlan], told: Mapping[str, Any]) -> Iterator[Card]:
    """Yields a card on what went wrong and why, if anything did."""
    mode = seen.metrics.get("failure_mode")
    if not mode:
        return
    predicted, expected = prediction(final)[0], seen.turn.gold.expected
    is_right = answers_match(predicted, expected)
    facts: list[tuple[str, Text]] = [
        ("failure mode", CardCell(str(mode).replace("_", " "), Mark.RIGHT if is_right else Mark.WRONG)),
        ("why", why(str(mode), predicted, expected, told, final, seen.case.context)),
    ]
    wrong = [turn.index for turn in told["earlier"] if not turn.is_right]
    if not is_right:
        first = f"turn {wrong[0]}" if wrong else "this turn"
        facts.append(("first wrong turn of the conversation", first))
    yield FactsCard("What went wrong", [fact for fact in facts if fact[1]])


def _programs(told: Mapping[str, Any]) -> Iterator[Card]:
    gold, plan = told["gold_program"], told["plan_program"]
    remark = "" if told["guessed_plan"] is None else _GUESSED
    yield _difference("Program", gold, plan, remark)
    resolved_gold, resolved_plan = told["resolved_gold"], told["resolved_plan"]
    if (resolved_gold, resolved_plan) != (gold, plan):
        remark = "Numbers that answer earlier turns are replaced by the calculation that gave them."
        yield _difference("Program, written out over the conversation", resolved_gold, resolved_plan, remark)


def _difference(title: str, gold: Program, plan: Program, remark: str = "") -> DifferenceCard:
    return DifferenceCard(
        title, "Gold", program_text(inlined(gold)), "Answer", program_text(inlined(plan)), remark=remark
    )


def inlined(program: Program) -> Program:
    """Returns a program with the numbers that it reads inserted where they are used, as in gold programs."""
    moved: list[Argument] = []
    steps: list[ProgramStep] = []
    last = len(program.steps) - 1
    for index, step in enumerate(program.steps):
        arguments = tuple([_moved(argument, moved) for argument in step.arguments])
        if step.operation == EXTRACT and arguments and index < last:
            moved.append(arguments[0])
        else:
            steps.append(ProgramStep(step.operation, arguments, step.source))
            moved.append(StepReference(len(steps) - 1))
    return Program(tuple(steps))


def _moved(argument: Argument, moved: Sequence[Argument]) -> Argument:
    """Resolves a reference; one to a later step is left unchanged, since such a plan does not run."""
    is_known = isinstance(argument, StepReference) and 0 <= argument.step < len(moved)
    return moved[argument.step] if is_known and isinstance(argument, StepReference) else argument


def _steps(seen: FinqaSeen, final: Attempt[FinqaPlan] | None, told: Mapping[str, Any]) -> Card:
    """Shows the steps of both programs as written, with their values."""
    gold, table = seen.turn.gold, seen.case.context.table
    wanted = [value for value, _ in step_values(gold.program, table)]
    expected = {*wanted, *_operands(gold.program), *_operands(told["resolved_gold"])} - {None}
    cards: list[Card] = [_step_table("Gold", gold.program, table, None, None)]
    plan = final.artefact.program if final is not None and final.artefact is not None else None
    if plan is not None and final is not None:
        is_right = isinstance(final.outcome, Ran) and answers_match(prediction(final)[0], gold.expected)
        cards.append(_step_table("Answer", plan, table, expected, is_right))
    return BesideCard("Steps and their values", cards)


def _operands(program: Program) -> Iterator[float]:
    for step in program.steps:
        yield from (argument.value for argument in step.arguments if isinstance(argument, Literal | Constant))


def step_values(program: Program, table: Table) -> Iterator[tuple[float | str | None, str]]:
    """Yields the value of each step, or None with the reason why it has none."""
    for count in range(1, min(len(program.steps), _MOST_STEPS) + 1):
        try:
            yield evaluate(Program(program.steps[:count]), table), ""
        except StepError as error:
            yield None, str(error)


def _step_table(
    title: str, program: Program, table: Table, expected: set[Any] | None, is_right: bool | None
) -> TableCard:
    """Returns a table of steps and values.

    With `expected`, it marks values that the gold lacks, and the last step's result.
    """
    rows: list[list[Text]] = []
    has_source = any(step.source for step in program.steps)
    for index, (value, problem) in enumerate(step_values(program, table)):
        step = program.steps[index]
        shown = "" if value is None else value if isinstance(value, str) else number_text(value)
        cell: Text = CardCell("no value", Mark.WRONG, problem) if value is None else shown
        if value is not None and expected is not None:
            if index == len(program.steps) - 1:
                cell = CardCell(shown, Mark.RIGHT if is_right else Mark.WRONG)
            elif not any(_same(value, other) for other in expected):
                cell = CardCell(shown, Mark.EXTRA)
        source = [step.source[:_MOST_CELL]] if has_source else []
        rows.append([f"#{index}", _step_text(step), cell, *source])
    columns = ["step", "calculation", "value", *(["source, as the model says"] if has_source else [])]
    return TableCard(title, columns, rows, row_headers=True, left_out=len(program.steps) - len(rows))


def _step_text(step: ProgramStep) -> str:
    text = program_text(Program((step,)))
    return f"read {text}" if step.operation in READING else text


def _same(one: Any, other: Any) -> bool:
    if is_number(one) and is_number(other):
        return answers_match(abs(one), abs(other))
    return bool(one == other)


def _numbers(seen: FinqaSeen, used: Used) -> TableCard:
    """Lists every number that the programs use, who uses it, and where it comes from."""
    known: list[tuple[int, object]] = [(turn.index, turn.gold.expected) for turn, _ in seen.earlier]
    own: list[tuple[int, object]] = [
        (turn.index, prediction(attempts[-1])[0]) for turn, attempts in seen.earlier if attempts
    ]
    rows: list[list[Text]] = []
    for size, mark in islice(used.numbers.items(), _MOST_NUMBERS):
        places = where(size, used, seen.case.context)
        carried = answers_before(size, known)
        if carried is not None:
            places.append(f"the right answer to turn {carried}")
        elif (mine := answers_before(size, own)) is not None:
            places.append(f"the model's answer to turn {mine}")
        told = "; ".join(place[:_MOST_CELL] for place in places[:4]) or "neither on the page nor an earlier answer"
        rows.append([CardCell(number_text(size), mark), told])
    left_out = len(used.numbers) - len(rows)
    return TableCard("Numbers used", ["number", "from"], rows, "Sizes, whatever their sign.", True, left_out)


def _document_table(page: Document, used: Used) -> TableCard:
    """Shows the page's table with used cells marked; if it has too many rows, rows in use come first."""
    body = page.table[1:]
    kept = list(range(1, len(page.table)))
    if len(body) > _MOST_ROWS:
        marked = {row for row, _ in used.cells}
        kept = sorted(sorted(kept, key=lambda row: row not in marked)[:_MOST_ROWS])
    width = max(len(row) for row in page.table)
    columns = list(range(width))
    if width > _MOST_COLUMNS:
        in_use = {column for _, column in used.cells} | {0}
        columns = sorted(sorted(columns, key=lambda column: column not in in_use)[:_MOST_COLUMNS])
    rows = [[_cell(page, row, column, used) for column in columns] for row in kept]
    remarks = ["A number that stands in several places is marked in each."] if _is_ambiguous(page, used) else []
    if len(columns) < width:
        remarks.append(f"{len(columns)} of {width:,} columns shown.")
    names = [_cell(page, 0, column, used) for column in columns]
    return TableCard("Table of the document", names, rows, " ".join(remarks), True, len(body) - len(rows))


def _cell(page: Document, row: int, column: int, used: Used) -> Text:
    cells = page.table[row]
    text = cell_text(cells[column])[:_MOST_CELL] if column < len(cells) else ""
    mark = used.cells.get((row, column))
    return text if mark is None else CardCell(text, mark)


def _is_ambiguous(page: Document, used: Used) -> bool:
    shown = [cell_text(page.table[row][column]) for row, column in used.cells]
    return len(shown) > len(set(shown))


def _sentences(sentences: Sequence[Sequence[Text]]) -> TextCard:
    pieces: list[Text] = []
    for sentence in sentences[:_MOST_SENTENCES]:
        pieces += [*sentence, "\n"]
    cut = len(sentences) > _MOST_SENTENCES
    remark = f"{_MOST_SENTENCES} of {len(sentences):,} sentences shown." if cut else ""
    return TextCard("Sentences of the document with numbers that were used", pieces[:-1], remark)


def _before(seen: FinqaSeen) -> TableCard:
    rows: list[list[Text]] = []
    for turn, attempts in seen.earlier[-_MOST_ROWS:]:
        predicted = prediction(attempts[-1])[0] if attempts else None
        mark = Mark.RIGHT if answers_match(predicted, turn.gold.expected) else Mark.WRONG
        answered: Text = CardCell(answer_text(predicted)[:_MOST_CELL], mark) if attempts else "not asked"
        rows.append([str(turn.index), turn.question[:_MOST_CELL], turn.gold.expected_text(), answered])
    shown = _SHOWN.get(seen.history)
    remark = (
        f"Of these turns the model was shown {shown}."
        if shown
        else "What the model was shown of these turns is not known."
    )
    columns = ["turn", "question", "expected", "answered"]
    return TableCard("The conversation before", columns, rows, remark, True, len(seen.earlier) - len(rows))
