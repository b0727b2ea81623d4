"""Follows references from definition to definition."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from eval_pipeline.fingerprints.graphs import digests
from eval_pipeline.fingerprints.parsed.records import EFFECTS, OWN_PLACE, Module
from eval_pipeline.fingerprints.parsed.trees import text_digest
from eval_pipeline.fingerprints.resolving import Class, ResolvedPlace, Resolver

ALL = "*"
_LOCAL_IMPORT = re.compile(r"=[\w.]*:")


class Node(NamedTuple):
    """A definition; for members of a class, `context` is the class or subclass through which they are reached."""

    module: str
    name: str
    context: Class | None = None


Edge = tuple[str, Node | str]
"""What a name or path in a definition refers to: a definition of ours, or the name of something outside."""


@dataclass(slots=True)
class Leads:
    """The references of a definition, resolved.

    Attributes:
        edges: what its names refer to, which the source text alone does not determine.
        libraries: names imported from outside.
    """

    edges: set[Edge] = field(default_factory=set)
    libraries: set[str] = field(default_factory=set)

    @property
    def nodes(self) -> set[Node]:
        """The definitions of ours that it refers to."""
        return {target for _, target in self.edges if isinstance(target, Node)}


class Reacher:
    """Finds everything that definitions reach; results are cached."""

    def __init__(
        self,
        resolver: Resolver,
        data: Callable[[str, Module], str | None],
        stops: Collection[str],
        same: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Creates the object without following any references yet.

        Args:
            resolver: resolves paths.
            data: returns the digest of a module's data files.
            stops: places whose own code is part of the fingerprint but whose references are not followed; modules and
                packages named here are left out completely.
            same: digest of a root → digest of code before it that computes the same, and stands for it.
        """
        self._same = same
        self._resolver, self._data, self._stops = resolver, data, frozenset(stops)
        self._left_out = tuple(f"{stop}." for stop in stops if ":" not in stop)
        self._leads: dict[Node, Leads] = {}
        self._digests: dict[Node, str] = {}

    def digest(self, nodes: Iterable[Node]) -> str:
        """Returns the joint digest of definitions and of all that they reach, wherever these are defined."""
        nodes = list(nodes)
        digests(nodes, self._own, self._edges, self._digests)
        found = (self._digests[node] for node in nodes)
        return text_digest("\n".join(sorted(self._same.get(one, one) for one in found)))

    def _own(self, node: Node) -> str:
        """Returns the digest of a definition's source, with the data files of its module."""
        read = self._resolver.module(node.module)
        if read is None:
            return ""
        tree = "" if node.name == ALL else read.definitions[node.name].tree
        return f"{tree} {self._data(node.module, read) or ''}"

    def _edges(self, node: Node) -> Iterable[Edge]:
        for label, target in self.leads(node).edges:
            left_out = isinstance(target, Node) and f"{target.module}.".startswith(self._left_out)
            yield label, _place(target) if left_out else target

    def reached(self, nodes: Iterable[Node]) -> tuple[dict[str, str], set[str]]:
        """Returns place → digest of every definition reached, and the names imported from outside."""
        seen: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += [target for _, target in self._edges(node) if isinstance(target, Node)]
        edges: dict[str, set[str]] = {}  # of one definition, which may be reached through several classes
        libraries: set[str] = set()
        for node in seen:
            libraries |= self._leads[node].libraries
            if node.name != ALL:
                its = edges.setdefault(_place(node), {self._own(node)})
                its.update(f"{label} {_place(target)}" for label, target in self._leads[node].edges)
        return {place: text_digest("\n".join(sorted(its))) for place, its in edges.items()}, libraries

    def leads(self, node: Node) -> Leads:
        """Returns the resolved references of a definition."""
        if node not in self._leads:
            self._leads[node] = self._find(node)
        return self._leads[node]

    def _find(self, node: Node) -> Leads:
        leads, read = Leads(), self._resolver.module(node.module)
        if read is None:
            return leads
        if node.name == ALL:
            leads.edges.update((name, Node(node.module, name)) for name in read.definitions if "." not in name)
            return leads
        if EFFECTS in read.definitions and node.name != EFFECTS:
            leads.edges.add((EFFECTS, Node(node.module, EFFECTS)))
        if f"{node.module}:{node.name}" in self._stops:
            return leads
        references = [path for path in read.definitions[node.name].references if not path.startswith("?")]
        labels = _labels(references)
        for path in references:
            self._follow(node, path, labels, leads)
        if node.name in read.bases:
            self._whole(Class(node.module, node.name), read, leads)
        return leads

    def _whole(self, cls: Class, read: Module, leads: Leads) -> None:
        """Adds all members of a class and the classes of its fields, because pydantic instantiates these."""
        for member in read.members[cls.name]:
            definition = read.definitions[f"{cls.name}.{member}"]
            leads.edges.add((member, Node(cls.module, f"{cls.name}.{member}", cls)))
            for path in definition.references:
                if path.startswith("?"):
                    for found in self._resolver.chain(cls.module, path[1:]):
                        if not (self._resolver.is_class(found) and self._resolver.is_protocol(Class(*found[:2]))):
                            self._reach(found, path, leads)

    def _follow(self, node: Node, path: str, labels: Mapping[str, str], leads: Leads) -> None:
        """Adds what a path refers to."""
        if path.partition("|")[0] in OWN_PLACE:
            leads.edges.add((path, _place(node)))
        elif path.startswith("'"):
            self._place(path, leads)
        elif path == "*":
            leads.edges.add((path, Node(node.module, ALL)))
        elif path.startswith("*"):
            said, modules, classes = self._walk(node, path[1:], labels, leads)
            leads.edges.update((f"*{said}", target) for target in (*modules, *(Node(*cls) for cls in classes)))
        else:
            said, modules, classes = self._walk(node, path, labels, leads)
            leads.edges.update((said, target) for target in modules)
            for cls in classes:
                for operator in self._resolver.operators(cls):
                    leads.edges.add((f"{said} {operator.name}", Node(operator.module, operator.name, cls)))

    def _walk(
        self, node: Node, path: str, labels: Mapping[str, str], leads: Leads
    ) -> tuple[str, set[Node], set[Class]]:
        """Follows a path and adds everything on it.

        Returns its label, and what is at its end: whole modules, and the classes of instances.
        """
        root, *steps = path.split("|")
        resolver, after = self._resolver, None
        founds: list[ResolvedPlace] = []
        classes: set[Class] = set()
        if root.startswith("@"):
            classes = set(resolver.annotated(node.module, root[1:], node.context))
        elif root in {"%", "^"}:
            classes = {node.context} if node.context else set()
            after = Class(node.module, node.name.partition(".")[0]) if root == "^" else None
        elif root.startswith("="):
            start, _, name = root[1:].partition(":")
            founds = list(resolver.imported(start, name))
        else:
            founds = list(resolver.name(node.module, root))
        said = labels[root]
        for found in founds:
            self._reach(found, said, leads)
        for step in steps:
            following: list[ResolvedPlace] = []
            for found in founds:
                if not (found.name or found.outside):
                    following += resolver.attribute(found.module, step)
            said += "." + step
            for found in following:
                self._reach(found, said, leads)
            known = classes | resolver.classes_of(founds)
            classes = self._step(known, step, after, said, leads)
            founds, after = following, None
        modules = {Node(found.module, ALL) for found in founds if not (found.name or found.outside)}
        return said, modules, classes | resolver.classes_of(founds)

    def _step(self, classes: Iterable[Class], step: str, after: Class | None, said: str, leads: Leads) -> set[Class]:
        """Adds an attribute of each class that has it; returns the classes of its values."""
        types: set[Class] = set()
        for cls in classes:
            found, following = self._resolver.step(cls, step, after)
            types |= following
            if found is not None:
                leads.edges.add((said, Node(found.module, found.name, cls)))
        return types

    def _reach(self, found: ResolvedPlace, said: str, leads: Leads) -> None:
        """Adds the target of a name."""
        if found.outside:
            leads.edges.add((said, str(found)))
            leads.libraries.add(found.module.partition(".")[0])
        elif found.name:
            leads.edges.add((said, Node(found.module, found.name)))

    def _place(self, path: str, leads: Leads) -> None:
        """Adds the object that a text constant names, if it is one of ours."""
        sources = self._resolver.sources
        if not self._resolver.is_ours(path[1:].partition(":")[0]):
            return
        module, colon, name = path[1:].partition(":")
        if path.endswith(".*"):
            leads.edges.update((path, Node(inner, ALL)) for inner in sources.submodules(path[1:-2]))
        elif sources.file(module) is not None:
            nodes = place_nodes(self._resolver, module, name) if colon and name != ALL else [Node(module, ALL)]
            leads.edges.update((path, node) for node in nodes)


def _labels(paths: Iterable[str]) -> dict[str, str]:
    """Returns the label of each path's start: without the module of an import, unless two then look the same."""
    starts = {path.lstrip("*").partition("|")[0] for path in paths}
    short = {start: _LOCAL_IMPORT.sub("=:", start) for start in starts}
    number = Counter(short.values())
    return {start: label if number[label] == 1 else start for start, label in short.items()}


def _place(target: Node | str) -> str:
    return target if isinstance(target, str) else f"{target.module}:{target.name}"


def place_nodes(resolver: Resolver, module: str, qualified: str) -> list[Node]:
    """Returns the definitions that `module:Qual.name` refers to; empty if it is unknown."""
    first, *steps = qualified.split(".")
    nodes: list[Node] = []
    for found in resolver.name(module, first):
        if found.outside:
            continue
        if not found.name:
            if not steps:
                nodes.append(Node(found.module, ALL))
            else:
                nodes += place_nodes(resolver, found.module, ".".join(steps))
        elif not steps:
            nodes.append(Node(found.module, found.name))
        elif resolver.is_class(found):
            cls = Class(found.module, found.name)
            if (member := resolver.member(cls, steps[0])) is not None:
                nodes.append(Node(member.module, member.name, cls))
    return nodes
