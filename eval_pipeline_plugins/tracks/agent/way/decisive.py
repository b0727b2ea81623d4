"""What of the gold decides its result: of its cells in Python only the statements that later ones need."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from eval_pipeline_plugins.tracks.agent.checking.writes import program_of
from eval_pipeline_plugins.tracks.agent.trajectory import ActStep, Trajectory

_MAKING = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.Import, ast.ImportFrom)


def decisive(gold: Trajectory) -> Trajectory:
    """Returns the gold without what its cells make and no later statement uses.

    What a cell prints counts where the next call is no cell, which may have it from there.
    """
    needed, is_cell_next, steps = set[str](), False, list[ActStep]()
    for step in reversed(gold.steps):
        call = step.calls[0] if step.kind == "tool" else None
        program = program_of(str(call.arguments.get("code", ""))) if call and call.name == "python" else None
        if call and program is not None:
            code = "\n".join(_kept(program.body, needed, prints=not is_cell_next))
            step = replace(step, calls=(replace(call, arguments={**call.arguments, "code": code}),))
        if call:
            is_cell_next = call.name == "python"
        steps.append(step)
    return replace(gold, steps=tuple(reversed(steps)))


def _kept(body: Sequence[ast.stmt], needed: set[str], *, prints: bool) -> list[str]:
    found = list[str]()
    for one in (part for statement in reversed(body) for part in _parts(statement)):
        if isinstance(one, _MAKING) and not needed & set(_made_by(one)):
            continue
        if not prints and _is_print(one):
            continue
        needed |= {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}
        found.append(ast.unparse(one))
    return found[::-1]


def _parts(statement: ast.stmt) -> Sequence[ast.stmt]:
    """Returns a statement, or `a, b = 1, 2` as one for each name."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
            pairs = zip(names, values, strict=True)
            return [ast.copy_location(ast.Assign([name], value), statement) for name, value in pairs]
    return (statement,)


def _made_by(statement: ast.stmt) -> Iterator[str]:
    """Yields the names that a statement makes; of `a.b = 1` and `a[0] = 1` the one that is changed."""
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name):
                yield name
            case (ast.Subscript() | ast.Attribute()) as part if isinstance(part.ctx, ast.Store):
                yield from (one.id for one in ast.walk(part.value) if isinstance(one, ast.Name))
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]


def _is_print(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
    return False
