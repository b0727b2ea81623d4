"""Dependencies between stages for display: direct arrows only, and the tables that bypass a stage."""

from collections.abc import Mapping

from eval_pipeline.chain.stage import Chain, before
from eval_pipeline.store.schemas import Table


def arrows(chain: Chain) -> dict[str, tuple[str, ...]]:
    """Returns for each stage its direct predecessors, without those that also precede another one of them."""
    direct = {stage.name: before(chain, stage) for stage in chain}
    above = _above(direct)
    return {
        name: tuple(source for source in sources if not any(source in above[other] for other in sources))
        for name, sources in direct.items()
    }


def passed_by(chain: Chain) -> dict[str, tuple[Table, ...]]:
    """Returns for each stage the tables of earlier stages that later ones read although no arrow shows it.

    Whoever follows the arrows to find outdated results must treat these tables as part of the stage's product.
    Otherwise the search would stop at a product that is unchanged, although a table that bypasses it has changed.
    """
    shown, direct = arrows(chain), {stage.name: before(chain, stage) for stage in chain}
    above = _above(direct)
    found: dict[str, tuple[Table, ...]] = {}
    for stage in chain:
        below = {name for name, sources in above.items() if stage.name in sources}
        hidden = {source for name in below for source in direct[name] if source not in shown[name]}
        passing = hidden & above[stage.name]
        found[stage.name] = tuple(table for other in chain if other.name in passing for table in other.writes)
    return found


def _above(direct: Mapping[str, tuple[str, ...]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, sources in direct.items():  # predecessors come earlier in the chain
        found[name] = set(sources).union(*(found[source] for source in sources))
    return found
