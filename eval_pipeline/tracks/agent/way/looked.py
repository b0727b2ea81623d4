"""What the gold reads and an attempt never looked at."""

from collections.abc import Collection, Iterable, Sequence

from eval_pipeline.core.values import value
from eval_pipeline.tracks.agent.way.chain import WayStep
from eval_pipeline.tracks.agent.way.facts import CodeFact
from eval_pipeline.tracks.agent.way.reads import USER
from eval_pipeline.tracks.agent.way.values import folded


@value
class Unseen:
    """What was never looked at.

    Attributes:
        names: tables, files and what the user says.
        grouped: of these, files that the gold reads by a pattern of which others were looked at.
        told: by name what the gold was told there; in the same order as `names`.
        seen: what was told by that which the attempt has looked at.
    """

    names: tuple[str, ...] = ()
    grouped: frozenset[str] = frozenset()
    told: tuple[str, ...] = ()
    seen: str = ""

    def deciding(self, facts: Iterable[CodeFact]) -> list[str]:
        """Returns what may have decided the result: not that which tells of these differences less than what was seen.

        Args:
            facts: in what the attempt differs from the gold.
        """
        words = {_constant(one) for one in facts if one.kind in ("where", "number")} - {""}
        found = [one for one in self.names if one not in self.grouped]
        if words and all(f" {word}" in self.seen for word in words):
            return []  # what it did not do was told by what it looked at
        return found


def _constant(fact: CodeFact) -> str:
    return folded(fact.what.rpartition(" ")[2]).strip("%'\"")


def unseen(mine: Sequence[WayStep], gold: Sequence[WayStep], made: Collection[str] = ()) -> Unseen:
    """Returns what the gold reads and an attempt never did; `made` is what either makes by itself."""
    read = {one for step in mine for one in step.touched.reads}
    own = {one for step in (*mine, *gold) for one in step.touched.writes} | set(made)
    told, grouped = dict[str, str](), set[str]()
    for step in gold:
        code = " ".join(str(one) for one in step.step.calls[0].arguments.values())
        for name in sorted(step.touched.reads - read - own):
            told.setdefault(name, step.text)
            if name not in code and not name.startswith(USER) and step.touched.reads & read:
                grouped.add(name)
            else:
                grouped.discard(name)
    seen = " ".join(folded(step.text) for step in mine if not step.computes())
    return Unseen(tuple(told), frozenset(grouped), tuple(told.values()), f" {seen}")
