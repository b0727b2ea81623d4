"""The chain as a picture: what the documentation shows is drawn from the stages themselves."""

from eval_pipeline.chain.lineage import arrows
from eval_pipeline.chain.stage import Chain


def mermaid(chain: Chain) -> str:
    """A flow chart of the stages; arrows that follow from others are left out."""
    lines = ["flowchart LR"]
    for name, sources in arrows(chain).items():
        lines += [f"  {source} --> {name}" for source in sorted(sources)]
    return "\n".join(lines)
