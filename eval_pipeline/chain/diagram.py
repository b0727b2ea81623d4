"""Draws the chain of stages as a diagram for the documentation."""

from eval_pipeline.chain.lineage import arrows
from eval_pipeline.chain.stage import Chain


def mermaid(chain: Chain) -> str:
    """Returns a Mermaid flow chart of the stages, without arrows implied by others."""
    lines = ["flowchart LR"]
    for name, sources in arrows(chain).items():
        lines += [f"  {source} --> {name}" for source in sorted(sources)]
    return "\n".join(lines)
