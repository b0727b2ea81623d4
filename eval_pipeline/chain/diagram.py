"""The chain as a picture: what the documentation shows is drawn from the stages themselves."""

from eval_pipeline.chain.stage import Chain, before


def mermaid(chain: Chain) -> str:
    """A flow chart of the stages; arrows that follow from others are left out."""
    direct = {stage.name: set(before(chain, stage)) for stage in chain}
    above: dict[str, set[str]] = {}
    for stage in chain:  # those before a stage come before it in the chain
        above[stage.name] = direct[stage.name].union(*(above[name] for name in direct[stage.name]))
    lines = ["flowchart LR"]
    for name, sources in direct.items():
        needed = [source for source in sources if not any(source in above[other] for other in sources)]
        lines += [f"  {source} --> {name}" for source in sorted(needed)]
    return "\n".join(lines)
