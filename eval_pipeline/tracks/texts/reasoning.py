"""Separates a model's reasoning from its answer, because drafts in the reasoning are not answers.

The forms used by open models are recognised: `<think>` and similar tags (DeepSeek-R1, Qwen3, GLM-4.5, Phi-4-reasoning),
`[THINK]` (Magistral), `◁think▷` (Kimi), `<|START_THINKING|>` (Command A), `<|begin_of_thought|>` (Sky-T1), the channels
of gpt-oss (OpenAI, "Harmony response format"), and Granite's "Here is my thought process:".
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

from eval_pipeline.core.values import value

_WORDS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|seed:think|antthinking"
_OPEN = re.compile(
    rf"<(?P<word>{_WORDS})(?:\s[^<>]*)?>|\[(?P<think>THINK)\]|(?P<kimi>◁think▷)|<\|(?P<start>START_THINKING)\|>"
    r"|<\|(?P<begin>begin_of_thought)\|>",
    re.IGNORECASE,
)
_CLOSE = re.compile(rf"</(?:{_WORDS})\s*>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>", re.IGNORECASE)
_TOKEN = re.compile(r"<\|(channel|message|end|return|start|call)\|>")
_NAME = re.compile(r"\s*(\w+)")
_GRANITE = re.compile(
    r"\s*Here is my thought process:?(?P<thought>.*?)Here is my response:?(?P<said>.*)", re.DOTALL | re.IGNORECASE
)
_GRANITE_OPEN = re.compile(r"\s*Here is my thought process:", re.IGNORECASE)
_BEFORE = re.compile(r"\s*(?:<\|START_RESPONSE\|>|<\|begin_of_solution\|>|<response>|<answer>)", re.IGNORECASE)
_AFTER = re.compile(
    r"(?:<\|END_RESPONSE\|>|<\|end_of_solution\|>|</response>|</answer>|<\|im_end\|>|<\|eot_id\|>|<\|return\|>|</s>)\Z",
    re.IGNORECASE,
)
_LONGEST_AFTER = len("<|end_of_solution|>")
_FENCE = re.compile("```|~~~")
_HINTS = ("<|", "think", "thought", "reason", "reflect", "scratchpad", "analysis>", "<answer", "</s>")
_HINT = re.compile("|".join(map(re.escape, _HINTS)), re.IGNORECASE)


@value
class SplitResponse:
    """A response split into its parts.

    Attributes:
        reasoning: may be empty.
        answer: the rest.
        cut_off: whether the response ends within the reasoning, so that there is no answer.
    """

    reasoning: str
    answer: str
    cut_off: bool = False


def apart(text: str) -> SplitResponse:
    """Separates the reasoning from a response.

    Of several parts outside the reasoning, the last non-empty one is the answer. Tags inside code fences are ignored. A
    closing tag without an opening one ends reasoning that the prompt has begun.
    """
    if not _hints(text):
        return SplitResponse("", text)
    if "<|channel|>" in text:
        return _channels(text)
    if (granite := _GRANITE.fullmatch(text)) is not None:
        return SplitResponse(granite["thought"].strip(), _unwrapped(granite["said"]))
    if _GRANITE_OPEN.match(text):
        return SplitResponse(text.strip(), "", cut_off=True)
    thought, said, is_open = _parts(text)
    if not thought:
        return SplitResponse("", _unwrapped(text))
    answers = [part for part in map(_unwrapped, said) if part.strip()]
    answer = answers[-1] if answers else ""
    return SplitResponse("\n\n".join(part.strip() for part in thought), answer, cut_off=is_open and not answers)


def _hints(text: str) -> bool:
    """Whether the text may have a mark of reasoning; nearly all responses have none, and are read several times."""
    if not text.isascii():  # letters such as ſ count as other letters, which only the expression knows
        return _HINT.search(text) is not None
    lower = text.lower()
    return any(map(lower.__contains__, _HINTS))


def _channels(text: str) -> SplitResponse:
    found = list(_messages(text))
    finals = [said for name, said in found if name == "final"]
    thought = "\n\n".join(said.strip() for name, said in found if name != "final")
    return SplitResponse(thought, _unwrapped(finals[-1]) if finals else "", cut_off=not finals)


def _messages(text: str) -> Iterator[tuple[str, str]]:
    """Yields channel name and text of each message, in one pass; hostile text may have many that never begin."""
    channel: str | None = None
    begun: int | None = None
    for token in _TOKEN.finditer(text):
        if token[1] == "message":
            begun = token.end() if begun is None and channel is not None else begun
            continue
        if begun is not None and channel is not None:
            yield channel, text[begun : token.start()]
            channel = begun = None
        if token[1] == "channel" and channel is None:
            name = _NAME.match(text, token.end())
            channel = name[1].lower() if name else None
    if begun is not None and channel is not None:
        yield channel, text[begun:]


def _parts(text: str) -> tuple[list[str], list[str], bool]:
    """Returns the reasoning parts and the other parts, each in order, and if the last reasoning part is unclosed."""
    thought: list[str] = []
    said: list[str] = []
    at, is_open = 0, False
    for is_opening, start, end in _marks(text):
        if is_opening and not is_open:
            said.append(text[at:start])
            at, is_open = end, True
        elif not is_opening:
            # Without an opening tag, everything before is reasoning.
            thought.append("".join([*said, text[at:start]]) if not is_open else text[at:start])
            said = said if is_open else []
            at, is_open = end, False
    (thought if is_open else said).append(text[at:])
    return thought, said, is_open


def _marks(text: str) -> Iterator[tuple[bool, int, int]]:
    """Yields opening and closing tags outside of fences, in order: (is opening, start, end)."""
    found = sorted(
        [(match.start(), match.end(), True) for match in _OPEN.finditer(text)]
        + [(match.start(), match.end(), False) for match in _CLOSE.finditer(text)]
    )
    fences = [match.start() for match in _FENCE.finditer(text)]
    is_open, since = False, 0
    for start, end, is_opening in found:
        # Reasoning may contain drafts of fences and leave them open.
        if is_opening and not is_open and (bisect_left(fences, start) - since) % 2:
            continue
        since = since if is_opening else bisect_left(fences, end)
        is_open = is_opening
        yield is_opening, start, end


def _unwrapped(text: str) -> str:
    start, end = 0, len(text)
    while (found := _BEFORE.match(text, start)) is not None:
        start = found.end()
    while True:
        last = end
        while last > start and text[last - 1].isspace():
            last -= 1
        if (found := _AFTER.search(text, max(start, last - _LONGEST_AFTER), last)) is None:
            return text[start:end]
        end = found.start()
