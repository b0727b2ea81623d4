"""Which family a model is of, by its name: a judge favours what its own family writes (Panickssery et al. 2024)."""

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
"""Family → how a part of a model's name begins; a distilled model is of both families that its name tells."""
_PATTERNS = {family: re.compile(rf"(?:^|[^a-z0-9])(?:{names})") for family, names in _FAMILIES.items()}


def families_of(*names: str) -> frozenset[str]:
    """The families that any of the names tells; none for names that tell nothing.

    Args:
        names: of models, as providers and gateways write them (`bedrock/anthropic.claude-3-haiku`, `llama3.2:1b`).
    """
    return frozenset(family for family, form in _PATTERNS.items() for name in names if form.search(name.lower()))
