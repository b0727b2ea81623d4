"""Writes cases in StatGPT's form, which `importers.statgpt` reads back."""

from collections.abc import Mapping, Sequence

from eval_pipeline.core.model import Json


def statgpt_case(raw: Mapping[str, Json], targets: Sequence[Mapping[str, Json] | None]) -> dict[str, Json]:
    """Returns a case in StatGPT's form.

    Args:
        raw: the case in the suite's file format.
        targets: for each turn its target if it is another one than in the file, since people have overridden it.
    """
    conversation = [
        {"role": turn["role"], "content": turn["content"], "target": _target(turn["target"], other)}
        for turn, other in zip(raw["conversation"], targets, strict=True)
    ]
    kept = {name: raw[name] for name in ("id", "name", "tags", "comments", "source") if raw.get(name)}
    rejected = raw.get("rejected_datasets")
    return kept | {"conversation": conversation} | ({"rejected_datasets": rejected} if rejected else {})


def _target(written: Mapping[str, Json], other: Mapping[str, Json] | None) -> dict[str, Json]:
    told = other or written
    target: dict[str, Json] = {"is_out_of_scope": bool(told.get("is_out_of_scope"))}
    target |= {name: written[name] for name in ("tool_calls", "datasets_selection") if name in written}
    target["indicator_selection"] = told.get("indicator_selection") or []
    return target | ({"alternatives": told["alternatives"]} if told.get("alternatives") else {})
