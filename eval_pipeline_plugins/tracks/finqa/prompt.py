"""The parts of a prompt: system message, document, conversation so far, question."""

from collections.abc import Mapping, Sequence

from eval_pipeline.core.model import Json, Message
from eval_pipeline.tracks.texts.prompt_parts import EXAMPLES, PromptParts
from eval_pipeline_plugins.tracks.finqa.cases.document import FinqaCase, FinqaTurn
from eval_pipeline_plugins.tracks.finqa.programs.program import OPERATIONS

_NO_ANSWER = "(no answer)"

_TASK = """\
You answer questions about one page of a company filing: text, a table, text. You never do arithmetic yourself: you \
say what is to be computed from which numbers of the page, and a program computes it. Earlier questions of the \
conversation are shown with the bare values of their answers; a question may refer to them.

Conventions: use numbers as the page has them, in its units. A change is the new value minus the old one. A percentage \
change or share stays a fraction: do not multiply by 100."""

_PLAN = f"""\
Answer with one JSON object and nothing else: {{"plan": [step, ...]}}. The value of the last step is the answer.
- {{"tool": "extract", "value": 8181, "source": "table: net cash, 2009"}} takes a number from the page (or the text \
yes or no).
- {{"tool": "compute", "operation": "subtract", "args": ["#0", "#1"]}} computes; "#0" is the result of the first step.
Operations: {", ".join(sorted(OPERATIONS))}. table_* take the label of a table row; greater gives yes or no; \
percentage_change of (new, old) is (new - old) / old. Named constants such as const_100 or const_m1 may be arguments.

Example. Question: by what percentage did sales grow from 2015 (240) to 2016 (252)?
{{"plan": [{{"tool": "extract", "value": 252, "source": "sales, 2016"}}, \
{{"tool": "extract", "value": 240, "source": "sales, 2015"}}, \
{{"tool": "compute", "operation": "subtract", "args": ["#0", "#1"]}}, \
{{"tool": "compute", "operation": "divide", "args": ["#2", "#1"]}}]}}"""

_CALCULATION = """\
Answer with one JSON object and nothing else: {"calculation": "..."}, an arithmetic expression of numbers with + - * / \
** and brackets, or a single number. For a yes or no question compare: a > b.

Example. Question: by what percentage did sales grow from 2015 (240) to 2016 (252)?
{"calculation": "(252 - 240) / 240"}"""

_INSTRUCTIONS = {"plan-1": f"{_TASK}\n\n{_PLAN}", "calculation-1": f"{_TASK}\n\n{_CALCULATION}"}

_ARGUMENT: Json = {"anyOf": [{"type": "number"}, {"type": "string"}]}
_EXTRACT_STEP: Json = {
    "type": "object",
    "properties": {"tool": {"const": "extract"}, "value": _ARGUMENT, "source": {"type": "string"}},
    "required": ["tool", "value", "source"],
    "additionalProperties": False,
}
_COMPUTE_STEP: Json = {
    "type": "object",
    "properties": {
        "tool": {"const": "compute"},
        "operation": {"enum": sorted(OPERATIONS)},
        "args": {"type": "array", "items": _ARGUMENT},
    },
    "required": ["tool", "operation", "args"],
    "additionalProperties": False,
}
_SCHEMAS: Mapping[str, Mapping[str, Json]] = {
    "plan-1": {
        "type": "object",
        "properties": {"plan": {"type": "array", "items": {"anyOf": [_EXTRACT_STEP, _COMPUTE_STEP]}}},
        "required": ["plan"],
        "additionalProperties": False,
    },
    "calculation-1": {
        "type": "object",
        "properties": {"calculation": {"type": "string", "maxLength": 200}},
        "required": ["calculation"],
        "additionalProperties": False,
    },
}


_TEMPLATE = (
    Message("system", "{{ system }}"),
    EXAMPLES,
    Message("user", "{{ document }}"),
    "history",
    Message("user", "{{ question }}"),
)


def prompt_parts(case: FinqaCase, turn: FinqaTurn, history: Sequence[str], version: str) -> PromptParts:
    """Returns the parts of a turn's prompt. System message and document are the same for every turn of the case.

    Raises:
        KeyError: the version is not in `prompt_versions`.
    """
    earlier = zip(case.turns[: turn.index], history, strict=True)
    said = (
        (Message("user", before.question), Message("assistant", answer or _NO_ANSWER)) for before, answer in earlier
    )
    return PromptParts(
        _TEMPLATE,
        {"system": _INSTRUCTIONS[version], "document": case.context.text, "question": turn.question},
        {"history": [message for pair in said for message in pair]},
        shared=frozenset({"system", "document"}),
        answer_schema=_SCHEMAS[version],
    )
