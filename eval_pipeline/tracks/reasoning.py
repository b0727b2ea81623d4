"""What a model thought aloud, apart from what it answered: drafts in it are no answers.

Read are the forms that open models write into their text: `<think>` and its kin (DeepSeek-R1, Qwen3, GLM-4.5,
Phi-4-reasoning), `[THINK]` (Magistral), `◁think▷` (Kimi), `<|START_THINKING|>` (Command A), `<|begin_of_thought|>`
(Sky-T1), the channels of gpt-oss (OpenAI, "Harmony response format"), and Granite's "Here is my thought process:".
"""

import re
from collections.abc import Iterator

from eval_pipeline.core.values import value

_WORDS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|seed:think|antthinking"
_OPEN = re.compile(
    rf"<(?P<word>{_WORDS})(?:\s[^<>]*)?>|\[(?P<think>THINK)\]|(?P<kimi>◁think▷)|<\|(?P<start>START_THINKING)\|>"
    r"|<\|(?P<begin>begin_of_thought)\|>",
    re.IGNORECASE,
)
_CLOSE = re.compile(rf"</(?:{_WORDS})\s*>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>", re.IGNORECASE)
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)(?:(?!<\|message\|>).)*<\|message\|>(?P<said>.*?)(?=<\|(?:end|return|start|call|channel)\|>|\Z)",
    re.DOTALL,
)
_GRANITE = re.compile(
    r"\s*Here is my thought process:?(?P<thought>.*?)Here is my response:?(?P<said>.*)", re.DOTALL | re.IGNORECASE
)
_GRANITE_OPEN = re.compile(r"\s*Here is my thought process:", re.IGNORECASE)
_WRAPPING = re.compile(
    r"\A\s*(?:<\|START_RESPONSE\|>|<\|begin_of_solution\|>|<response>|<answer>)"
    r"|(?:<\|END_RESPONSE\|>|<\|end_of_solution\|>|</response>|</answer>|<\|im_end\|>|<\|eot_id\|>|<\|return\|>|</s>)\s*\Z",
    re.IGNORECASE,
)
_FENCE = re.compile("```|~~~")
_HINT = re.compile(r"<\||think|thought|reason|reflect|scratchpad|analysis>|<answer|</s>", re.IGNORECASE)


@value
class Said:
    """A response in its parts.

    Attributes:
        reasoning: what was thought aloud; empty where nothing was.
        answer: the rest.
        cut_off: the response ends within the reasoning, so that there is no answer.
    """

    reasoning: str
    answer: str
    cut_off: bool = False


def apart(text: str) -> Said:
    """Takes the reasoning out of a response.

    Of several parts outside of reasoning the last one that says something is the answer. Within a fence of code nothing
    is taken for reasoning. A closing mark without an opening one ends reasoning that the prompt has begun.
    """
    if not _HINT.search(text):
        return Said("", text)
    if "<|channel|>" in text:
        return _channels(text)
    if (granite := _GRANITE.fullmatch(text)) is not None:
        return Said(granite["thought"].strip(), _unwrapped(granite["said"]))
    if _GRANITE_OPEN.match(text):
        return Said(text.strip(), "", cut_off=True)
    thought, said, is_open = _parts(text)
    if not thought:
        return Said("", _unwrapped(text))
    answers = [part for part in map(_unwrapped, said) if part.strip()]
    answer = answers[-1] if answers else ""
    return Said("\n\n".join(part.strip() for part in thought), answer, cut_off=is_open and not answers)


def _channels(text: str) -> Said:
    found = [(match["name"].lower(), match["said"]) for match in _CHANNEL.finditer(text)]
    finals = [said for name, said in found if name == "final"]
    thought = "\n\n".join(said.strip() for name, said in found if name != "final")
    return Said(thought, _unwrapped(finals[-1]) if finals else "", cut_off=not finals)


def _parts(text: str) -> tuple[list[str], list[str], bool]:
    """Parts that were thought and parts that were said, each in order, and whether the last thought has no end."""
    thought: list[str] = []
    said: list[str] = []
    at, is_open = 0, False
    for is_opening, start, end in _marks(text):
        if is_opening and not is_open:
            said.append(text[at:start])
            at, is_open = end, True
        elif not is_opening:
            # Without an opening mark all that came before was thought.
            thought.append("".join([*said, text[at:start]]) if not is_open else text[at:start])
            said = said if is_open else []
            at, is_open = end, False
    (thought if is_open else said).append(text[at:])
    return thought, said, is_open


def _marks(text: str) -> Iterator[tuple[bool, int, int]]:
    """Opening and closing marks outside of fences, in order: (is opening, start, end)."""
    found = sorted(
        [(match.start(), match.end(), True) for match in _OPEN.finditer(text)]
        + [(match.start(), match.end(), False) for match in _CLOSE.finditer(text)]
    )
    fences = [match.start() for match in _FENCE.finditer(text)]
    is_open = False
    for start, end, is_opening in found:
        # What is thought may draft fences, and leave them open.
        if is_opening and not is_open and sum(fence < start for fence in fences) % 2:
            continue
        fences = [fence for fence in fences if fence >= end] if not is_opening else fences
        is_open = is_opening
        yield is_opening, start, end


def _unwrapped(text: str) -> str:
    while (found := _WRAPPING.search(text)) is not None:
        text = text[: found.start()] + text[found.end() :]
    return text
