"""Digests of the nodes of a graph by what can be reached from them, whatever the nodes are called."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from eval_pipeline.fingerprints.parsed.trees import text_digest

N = TypeVar("N", bound=Hashable)


def digests(
    starts: Iterable[N],
    own: Callable[[N], str],
    edges: Callable[[N], Iterable[tuple[str, N | str]]],
    known: dict[N, str],
) -> None:
    """Computes the digests of nodes and of all that they reach, as a Merkle tree does.

    Nodes that reach each other are told apart by refinement: each takes in the digests of those that it leads to,
    until no more of them differ (the equivalence of states of Moore 1956; labels are the symbols).

    Args:
        starts: where to begin.
        own: a node's own content.
        edges: what a node leads to, with labels; a text is a target of which nothing but that text is known.
        known: digests by node, which are not computed again; the new ones are added to it.
    """
    for circle in _circles(starts, edges, known):
        inside = set(circle)
        outward: dict[N, str] = {}
        inward: dict[N, list[tuple[str, N]]] = {}
        for node in circle:
            lines, inward[node] = [own(node)], []
            for label, target in edges(node):
                if isinstance(target, str):
                    lines.append(f"{label} {target}")
                elif target in inside:
                    inward[node].append((label, target))
                else:
                    lines.append(f"{label} ={known[target]}")
            outward[node] = text_digest("\n".join([lines[0], *sorted(lines[1:])]))
        known |= _refined(outward, inward)


def _refined(outward: dict[N, str], inward: dict[N, list[tuple[str, N]]]) -> dict[N, str]:
    """Returns the digests of nodes that reach each other, from what they are and lead to otherwise."""
    now, different = outward, 0
    if not any(inward.values()):
        return now
    while len(set(now.values())) > different:
        different = len(set(now.values()))
        now = {
            node: text_digest("\n".join([outward[node], *sorted(f"{label} ={now[to]}" for label, to in inward[node])]))
            for node in now
        }
    together = " ".join(sorted(set(now.values())))  # which of them are told apart, and by what: each reaches all
    return {node: text_digest(f"{digest} {together}") for node, digest in now.items()}


def _circles(
    starts: Iterable[N], edges: Callable[[N], Iterable[tuple[str, N | str]]], known: dict[N, str]
) -> Iterable[list[N]]:
    """Yields the strongly connected components, each after those that it leads to (Tarjan 1972, without recursion)."""
    number: dict[N, int] = {}
    lowest: dict[N, int] = {}
    open_: dict[N, None] = {}

    def targets(node: N) -> list[N]:
        return [target for _, target in edges(node) if not isinstance(target, str) and target not in known]

    for start in starts:
        if start in known or start in number:
            continue
        path = [(start, iter(targets(start)))]
        number[start] = lowest[start] = len(number)
        open_[start] = None
        while path:
            node, waiting = path[-1]
            target = next(waiting, None)
            if target is None:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    yield _popped(open_, node)
            elif target not in number:
                number[target] = lowest[target] = len(number)
                open_[target] = None
                path.append((target, iter(targets(target))))
            elif target in open_:
                lowest[node] = min(lowest[node], number[target])


def _popped(stack: dict[N, None], last: N) -> list[N]:
    """Takes the nodes down to `last` off a stack."""
    taken = [stack.popitem()[0]]
    while taken[-1] != last:
        taken.append(stack.popitem()[0])
    return taken
