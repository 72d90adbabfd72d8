"""Mutants of a module: the same code with one small thing wrong, each of which some test should notice."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Final

_SWAPPED: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}
_OPPOSITES: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LONGEST: Final = 100
_IGNORED: Final = {"annotation", "returns", "decorator_list", "type_params", "bases"}
"""Fields whose code has no effect when the program runs, or whose effect is none of a test's business."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a module.

    Attributes:
        name: the function, what stood there, and what stands there now; unique in its module, and the same as
            long as the code around it is.
        line: where.
        code: the module with the change.
    """

    name: str
    line: int
    code: CodeType


def mutants(source: str, path: str) -> Iterator[Mutant]:
    """All mutants of a module, one at a time.

    Annotations, type aliases, docstrings, decorators and the texts of errors stay as they are.

    Args:
        source: of the module.
        path: of the module, for tracebacks.
    """
    tree = ast.parse(source)
    seen: Counter[str] = Counter()
    for change in list(_changes(tree, "")):
        before = change.shown
        change.put(change.new)
        name = f"{change.where or 'module'}: {before} → {change.shown}"
        seen[name] += 1
        if seen[name] > 1:
            name += f" ({seen[name]})"
        code = compile(ast.fix_missing_locations(tree), path, "exec")
        change.put(change.old)
        yield Mutant(name, change.line, code)


@dataclass(frozen=True, slots=True)
class _Change:
    """One node to put in the place of another.

    Attributes:
        where: name of the function.
        line: of the source.
        owner: holds the node in a field, or in a list of it.
        field: the field.
        index: place in the list.
        old: the node.
        new: what takes its place.
    """

    where: str
    line: int
    owner: ast.AST
    field: str
    index: int | None
    old: ast.AST
    new: ast.AST

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.index] = node

    @property
    def shown(self) -> str:
        """The code around the place as it is at the moment."""
        held = getattr(self.owner, self.field)
        node = held if self.index is None else held[self.index]
        around = self.owner if isinstance(self.owner, ast.expr | ast.AugAssign | ast.keyword) else node
        text = " ".join(ast.unparse(around).split())
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _changes(node: ast.AST, where: str) -> Iterator[_Change]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        where = f"{where}.{node.name}".lstrip(".")
    for field, held in ast.iter_fields(node):
        if field in _IGNORED or (field == "keywords" and isinstance(node, ast.ClassDef)):
            continue
        for index, child in enumerate(held) if isinstance(held, list) else [(None, held)]:
            if not isinstance(child, ast.AST) or _is_left_alone(child):
                continue
            line = getattr(child, "lineno", getattr(node, "lineno", 0))
            for new in _instead(node, field, child):
                yield _Change(where, line, node, field, index, child, new)
            if not isinstance(child, ast.Raise):
                yield from _changes(child, where)


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Expr(ast.Constant()) | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case (
            ast.Assign([ast.Name("__all__")]) | ast.Assign(value=ast.Call(ast.Name("TypeVar" | "ParamSpec")))
        ):
            return True
        case ast.AnnAssign(annotation=ast.Name("TypeAlias")) | ast.If(ast.Name("TYPE_CHECKING")):
            return True
    return False


def _instead(owner: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in the place of a node by mistake."""
    match node:
        case _ if type(node) in _SWAPPED:
            yield _SWAPPED[type(node)]()
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(str() as value):
            yield ast.Constant(f"{value}-")
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.Name(name, ast.Load()) if (
            name in _OPPOSITES and isinstance(owner, ast.Call) and field == "func"
        ):
            yield ast.Name(_OPPOSITES[name], ast.Load())
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()) | ast.Raise() | ast.AugAssign():
            yield ast.Pass()
    if field == "test" and not isinstance(node, ast.Compare | ast.UnaryOp):
        yield ast.UnaryOp(ast.Not(), node)
