"""Checks whether a judge is independent of the model that it judged: judges favour texts of their own family."""

import re

from eval_pipeline.core.model import Json
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.store.tables import GENERATIONS, JUDGEMENTS
from eval_pipeline.workspace.inputs import Inputs

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
"""Family → pattern at the start of a part of a model's name; a distilled model may belong to two families.

That judges favour their own: Panickssery et al. 2024.
"""
_PATTERNS = {family: re.compile(rf"(?:^|[^a-z0-9])(?:{names})") for family, names in _FAMILIES.items()}


def families_of(*names: str) -> frozenset[str]:
    """Returns the families that the names indicate; empty if they indicate none.

    Args:
        names: model names as providers and gateways write them (`bedrock/anthropic.claude-3-haiku`, `llama3.2:1b`).
    """
    return frozenset(family for family, form in _PATTERNS.items() for name in names if form.search(name.lower()))


def check_judge_family(inputs: Inputs) -> CheckVerdict:
    """Checks that judge and judged model belong to different model families, as far as their names tell."""
    header = inputs.header(JUDGEMENTS)
    rows = inputs.read(JUDGEMENTS, ["model", "asked"]).to_pylist() if header else []
    judges = sorted({row["model"] for row in rows if row["asked"] and row["model"]})
    if not judges:
        return CheckVerdict(True, "no judge was asked")
    version = inputs.version
    served = filter(None, inputs.read(GENERATIONS, ["served_model"])["served_model"].unique().to_pylist())
    judged = sorted({name for name in (version.model, version.priced_as or "", *served) if name})
    same = sorted(families_of(*judges) & families_of(*judged))
    facts: dict[str, Json] = {"judges": judges, "judged": judged, "families": same}
    if same:
        return CheckVerdict(
            False,
            f"the judge {', '.join(judges)} and the model it judged ({', '.join(judged)}) are both of the family "
            f"{', '.join(same)}: judges favour their own kind; let another family judge, or trust the evidence",
            facts,
            warning=True,
        )
    return CheckVerdict(True, "as far as names tell, judge and judged are of different families", facts)
