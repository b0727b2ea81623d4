"""The chain as a picture: without arrows that follow from others; and what goes past a stage to later ones."""

from collections.abc import Mapping

from eval_pipeline.chain.stage import Chain, before
from eval_pipeline.store.schemas import Table


def arrows(chain: Chain) -> dict[str, tuple[str, ...]]:
    """By stage, those that come directly before it: not those that come before one of these anyway."""
    direct = {stage.name: before(chain, stage) for stage in chain}
    above = _above(direct)
    return {
        name: tuple(source for source in sources if not any(source in above[other] for other in sources))
        for name, sources in direct.items()
    }


def passed_by(chain: Chain) -> dict[str, tuple[Table, ...]]:
    """By stage, tables that are older than what it makes, and that later stages read though no arrow says so.

    Whoever marks by arrows what is out of date has to count these with what the stage makes: else a product that is the
    same as before would end the marking, though what goes past it has changed.
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
    for name, sources in direct.items():  # those before a stage come before it in the chain
        found[name] = set(sources).union(*(found[source] for source in sources))
    return found
