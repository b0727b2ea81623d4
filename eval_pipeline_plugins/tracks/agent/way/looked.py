"""What the gold reads and an attempt never looked at, or did not compute from."""

import re
from collections.abc import Iterable, Sequence

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldOfSuite
from eval_pipeline_plugins.tracks.agent.way.chain import WayStep
from eval_pipeline_plugins.tracks.agent.way.facts.told import CodeFact
from eval_pipeline_plugins.tracks.agent.way.values import folded

_MOST_BYTES = 20_000
_SIGN = re.compile(r"[A-Za-z]{1,4}[-_:]")
"""What keys begin with, as a note may tell."""


@value
class Unseen:
    """What was never looked at.

    Attributes:
        names: tables, files and what the user says.
        grouped: of these, files that the gold reads by a pattern of which others were looked at.
        told: what is told there, in the order of `names`.
        seen: what was told by that which the attempt has looked at.
    """

    names: tuple[str, ...] = ()
    grouped: frozenset[str] = frozenset()
    told: tuple[str, ...] = ()
    seen: str = ""
    noted: str = ""

    def deciding(self, facts: Iterable[CodeFact]) -> list[str]:
        """Returns what may have decided the result: not where only what was seen tells of all these differences.

        Args:
            facts: in what the attempt differs from the gold.
        """
        facts = list(facts)
        words = {_constant(one) for one in facts if one.kind in ("where", "case", "number", "factor")} - {""}
        columns = {folded(one.what.split()[0]) for one in facts if one.kind == "where" and one.what}
        words |= {one for one in columns if not _says(self.seen, one)}
        signs = {folded(one.what) for one in facts if one.kind == "text" and _SIGN.fullmatch(one.what)}
        lacking = {one.what for one in facts if one.kind == "from"}
        new = [word for word in words if not _says(self.seen, word)]
        return [
            name
            for name, told in zip(self.names, self.told, strict=True)
            if name in lacking
            or any(_says(told, sign) for sign in signs)
            or (name in self.grouped and any(_says(told, word) and not _says(self.noted, word) for word in words))
            or (name not in self.grouped and (not words or new or any(_says(told, word) for word in words)))
        ]


def _says(told: str, word: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", told) is not None


def _constant(fact: CodeFact) -> str:
    return folded(fact.what.rpartition(" ")[2]).strip("%'\"")


def unseen(mine: Sequence[WayStep], gold: Sequence[WayStep], world: WorldOfSuite) -> Unseen:
    """Returns what the gold reads and an attempt never did, if neither makes it."""
    read = {one for step in mine for one in step.touched.reads}
    own = {one for step in (*mine, *gold) for one in step.touched.writes}
    told, grouped = dict[str, str](), set[str]()
    for step in gold:
        code = " ".join(str(one) for one in step.step.calls[0].arguments.values())
        for name in sorted(
            (step.deciding or step).touched.reads - read - own - set(world.databases)
        ):  # their tables are told
            told[name] = _text_of(name, world) or f"{told.get(name, '')} {folded(step.text)}"
            if name not in code and step.touched.reads & read:
                grouped.add(name)
            else:
                grouped.discard(name)
    seen = " ".join(folded(step.text) for step in mine if not step.computes())
    noted = " ".join(
        folded(step.text)
        for step in mine
        if step.touched.reads and all("." in one for one in step.touched.reads) and not step.facts
    )
    return Unseen(tuple(told), frozenset(grouped), tuple(told.values()), f" {seen}", f" {noted}")


def _text_of(name: str, world: WorldOfSuite) -> str:
    """Returns the text of a file of the world; nothing for a large one and for what is no file."""
    path = world.folder() / name
    if name not in world.listing() or path.stat().st_size > _MOST_BYTES:
        return ""
    return f" {folded(path.read_bytes().decode('utf-8', 'replace'))}"
