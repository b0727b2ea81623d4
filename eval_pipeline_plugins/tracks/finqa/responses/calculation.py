"""Parses arithmetic expressions as programs: `(8181 - 20454) / 20454` becomes subtract, divide."""

import re

from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    MAX_STEPS,
    Argument,
    Constant,
    Literal,
    Program,
    ProgramStep,
    StepReference,
    read_argument,
)

MAX_CHARS = 2000
_MAX_DEPTH = 60

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d*)?|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)(?:\s*%)?)
    | (?P<constant>const_\w[\w.]*)
    | (?P<currency>(?:US)?\$|[€£¥₹])
    | (?P<operator>\*\*|[-+*/^()<>%=×÷−–·xX])
    )""",
    re.VERBOSE,
)
_SAME = {"^": "**", "×": "*", "·": "*", "x": "*", "X": "*", "÷": "/", "−": "-", "–": "-"}
_BINDING = {">": 1, "<": 1, "+": 2, "-": 2, "*": 3, "/": 3, "**": 5}
_UNARY = 4
_NAMES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "exp", ">": "greater", "<": "greater"}
_MINUS_ONE = Constant("const_m1", -1.0)
_END = ""

_Piece = Argument | str
"""An operand, or an operator's text."""


class CalculationError(Exception):
    """The text is not an arithmetic expression; the message says where."""


def parse_calculation(text: str) -> Program:
    """Parses an expression; a trailing `= result` is ignored.

    Raises:
        CalculationError: with one sentence.
    """
    if len(text) > MAX_CHARS:
        raise CalculationError(f"the calculation has {len(text)} characters, at most {MAX_CHARS} are read")
    parser = _Parser(_tokens(text))
    answer = parser.expression(0, 0)
    if parser.peek() != _END:
        raise CalculationError(f"the calculation cannot be read at '{_shown(parser.peek())}': expected an operator")
    if not parser.steps or answer != StepReference(len(parser.steps) - 1):
        parser.step(EXTRACT, answer)
    return Program(tuple(parser.steps))


def _tokens(text: str) -> list[_Piece]:
    tokens: list[_Piece] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise CalculationError(f"the calculation cannot be read at '{text[position : position + 30].strip()}'")
        position = match.end()
        kind, found = match.lastgroup, match[match.lastgroup or 0]
        if kind == "operator":
            if found == "=":
                break
            tokens.append(_SAME.get(found, found))
        elif kind != "currency":
            tokens.append(_operand(found))
    tokens.append(_END)
    return tokens


def _operand(text: str) -> Argument:
    operand = read_argument(text)
    if not isinstance(operand, (Literal, Constant)):
        raise CalculationError(f"the calculation cannot be read at '{text[:30]}': not a finite number or constant")
    return operand


def _shown(piece: _Piece) -> str:
    if isinstance(piece, str):
        return piece or "its end"
    return piece.name if isinstance(piece, Constant) else f"{getattr(piece, 'value', piece):g}"


class _Parser:
    """Precedence climbing over the tokens; steps are appended in the order in which they are needed."""

    def __init__(self, tokens: list[_Piece]) -> None:
        self.tokens = tokens
        self.position = 0
        self.steps: list[ProgramStep] = []

    def peek(self) -> _Piece:
        return self.tokens[self.position]

    def step(self, operation: str, *arguments: Argument) -> StepReference:
        if len(self.steps) >= MAX_STEPS:
            raise CalculationError(f"the calculation has more than {MAX_STEPS} operations")
        self.steps.append(ProgramStep(operation, arguments))
        return StepReference(len(self.steps) - 1)

    def expression(self, binding: int, depth: int) -> Argument:
        if depth > _MAX_DEPTH:
            raise CalculationError(f"the calculation is nested deeper than {_MAX_DEPTH} levels")
        left = self.operand(depth)
        compared = False
        while isinstance(operator := self.peek(), str) and _BINDING.get(operator, 0) > binding:
            bound = _BINDING[operator]
            if bound == 1 and compared:
                raise CalculationError("the calculation compares more than once")
            compared = compared or bound == 1
            self.position += 1
            # powers are right-associative: 2 ** 3 ** 2 is 2 ** 9
            right = self.expression(bound - 1 if operator == "**" else bound, depth + 1)
            pair = (right, left) if operator == "<" else (left, right)
            left = self.step(_NAMES[operator], *pair)
        return left

    def operand(self, depth: int) -> Argument:
        piece = self.peek()
        self.position += 1
        if isinstance(piece, Literal):
            return piece
        if isinstance(piece, Constant):
            return self.marked(piece)
        if piece == "(":
            inner = self.expression(0, depth + 1)
            if self.peek() != ")":
                raise CalculationError("the calculation has a bracket that is not closed")
            self.position += 1
            return self.marked(inner)
        if piece in ("-", "+"):
            inner = self.expression(_UNARY, depth + 1)
            return inner if piece == "+" else self.negated(inner)
        self.position -= 1
        raise CalculationError(f"the calculation cannot be read at '{_shown(piece)}': expected a number")

    def marked(self, operand: Argument) -> Argument:
        """Applies a percent sign after a bracket or constant; a number's own percent sign is part of its token."""
        if self.peek() != "%":
            return operand
        self.position += 1
        return self.step("divide", operand, Constant("const_100", 100.0))

    def negated(self, operand: Argument) -> Argument:
        if isinstance(operand, Literal):
            return Literal(-operand.value, operand.percent)
        return self.step("multiply", operand, _MINUS_ONE)
