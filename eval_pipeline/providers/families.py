"""Model families, recognised by model names: a judge favours texts of its own family (Panickssery et al. 2024)."""

import re

_FAMILIES = {
    "Claude": r"claude",
    "GPT": r"gpt|chatgpt|davinci|o[134](?=-|$)",
    "Gemini": r"gemini|gemma|palm",
    "Llama": r"(?:meta-?|tiny|code)?llama",
    "Mistral": r"mistral|mixtral|ministral|magistral|codestral|devstral|pixtral",
    "Qwen": r"qwen|qwq|qvq",
    "DeepSeek": r"deepseek",
    "Phi": r"phi(?=-|\d|$)",
    "Command": r"command|aya(?=-|$)",
    "Grok": r"grok",
    "Nova": r"nova(?=-|$)",
    "Granite": r"granite",
    "SmolLM": r"smollm",
    "Kimi": r"kimi|moonshot",
    "GLM": r"glm|chatglm",
    "Nemotron": r"nemotron",
}
"""Family → pattern at the start of a part of a model's name; a distilled model may belong to two families."""
_PATTERNS = {family: re.compile(rf"(?:^|[^a-z0-9])(?:{names})") for family, names in _FAMILIES.items()}


def families_of(*names: str) -> frozenset[str]:
    """Returns the families that the names indicate; empty if they indicate none.

    Args:
        names: model names as providers and gateways write them (`bedrock/anthropic.claude-3-haiku`, `llama3.2:1b`).
    """
    return frozenset(family for family, form in _PATTERNS.items() for name in names if form.search(name.lower()))
