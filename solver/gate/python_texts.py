"""Expressions of a Python program -> texts and arguments with their places; what is computed is a reference.

literal := prefix quote (character | escape | {expression} in an f-string)* quote
text    := literal+ | text + text | name | str(text)
"""

from __future__ import annotations

import ast
import re
from collections import Counter

from solver.gate.arguments import Argument
from solver.gate.found import UNKNOWN
from solver.gate.text import Builder, Text
from solver.records import Span

_LITERAL = re.compile(r"([A-Za-z]{0,2})('''|\"\"\"|'|\")")
_LINE_END = re.compile(r"\r\n|\r|\n")
_PLAIN = re.compile(r"[^\\{}'\"]+")
_ESCAPE = re.compile(r"\\(?:\r\n|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|N\{[^}]*\}|[0-7]{1,3}|.)", re.DOTALL)
_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "\n": "", "\r\n": ""}
_CONVERSION = re.compile(r"(?:![rsa])?(?::[^:]*)?=?$")
_SIMPLE = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
LONGEST_NAME = 40


def dotted(node: ast.expr) -> str | None:
    """`a.b` for a name or an attribute of one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return None


class Names:
    """What the names of a program stand for: the one constant, or the one list, that the file assigns to it."""

    def __init__(self, tree: ast.Module) -> None:
        bound: Counter[str] = Counter()
        values: dict[str, ast.expr] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                bound[node.id] += 1
            elif isinstance(node, ast.arg):
                bound[node.arg] += 1
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                values[node.targets[0].id] = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = dotted(node.func.value)
                if name and node.func.attr in ("append", "extend", "insert", "remove", "pop"):
                    bound[name] += 1
        self._values = {name: value for name, value in values.items() if bound[name] == 1}

    def constant(self, name: str) -> str | None:
        """The text or number that a name always is."""
        value = self._values.get(name)
        is_plain = isinstance(value, ast.Constant) and type(value.value) in (str, int, float)
        return str(value.value) if is_plain else None  # type: ignore[union-attr]  # a constant

    def list(self, name: str) -> ast.List | ast.Tuple | None:
        """The list that a name always is."""
        value = self._values.get(name)
        return value if isinstance(value, ast.List | ast.Tuple) else None


class Places:
    """Texts of a program's expressions with their places in the source."""

    def __init__(self, source: Text, names: Names) -> None:
        self.source = source
        self.names = names
        self._lines = [0, *(match.end() for match in _LINE_END.finditer(source.text))]

    # ---------------------------------------------------------------- places

    def _offset(self, line: int, column: int) -> int:
        """`column` counts bytes of UTF-8."""
        start = self._lines[line - 1]
        end = start + column
        text = self.source.text[start:end]
        return end if text.isascii() else start + len(text.encode()[:column].decode(errors="ignore"))

    def _range(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def span(self, node: ast.expr) -> Span:
        """Where an expression stands in the file."""
        span = Span(*self._range(node))
        return self.source.place(span) or span

    # ------------------------------------------------------------- arguments

    def arguments(self, node: ast.expr) -> list[Argument]:
        """The arguments that an expression is: those of a list, or one."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and self._has_list(node):
            return [*self.arguments(node.left), *self.arguments(node.right)]
        if isinstance(node, ast.List | ast.Tuple):
            return [argument for item in node.elts for argument in self._element(item)]
        if isinstance(node, ast.Name) and (known := self.names.list(node.id)):
            return self.arguments(known)
        text = self.text_of(node)
        return [Argument(None, text, raw=True)]

    def _has_list(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp):
            return self._has_list(node.left) or self._has_list(node.right)
        return isinstance(node, ast.List | ast.Tuple)

    def _element(self, node: ast.expr) -> list[Argument]:
        if isinstance(node, ast.Starred):
            return self.arguments(node.value)
        if dotted(node) == "sys.executable":
            return [Argument(None, self._stands_for(node, "python"))]
        return [Argument(None, self.text_of(node), self.span(node))]

    # ----------------------------------------------------------------- texts

    def text_of(self, node: ast.expr) -> Text:
        """What an expression is as text."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            builder = Builder(self.source)
            builder.add(self.text_of(node.left))
            builder.add(self.text_of(node.right))
            return builder.finish()
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return self._literals(*self._range(node))
        if isinstance(node, ast.Constant):
            return self._stands_for(node, str(node.value))
        if isinstance(node, ast.Call) and dotted(node.func) == "str" and len(node.args) == 1:
            return self.text_of(node.args[0])
        known = self.names.constant(node.id) if isinstance(node, ast.Name) else None
        return self._stands_for(node, reference(ast.unparse(node)) if known is None else known)

    def _stands_for(self, node: ast.expr, text: str) -> Text:
        builder = Builder(self.source)
        builder.replace(*self._range(node), text)
        return builder.finish()

    def _literals(self, start: int, end: int) -> Text:
        """The literals of a stretch, one after the other as the compiler joins them."""
        builder = Builder(self.source)
        text = self.source.text
        at = start
        while at < end:
            opening = _LITERAL.match(text, at)
            if opening:
                at = self._literal(builder, opening)
            elif text[at] == "#":
                line_end = text.find("\n", at)
                at = end if line_end < 0 else line_end
            else:
                at += 1
        return builder.finish()

    def _literal(self, builder: Builder, opening: re.Match[str]) -> int:
        """Read one literal; the offset after it."""
        text, quote = self.source.text, opening[2]
        prefix = opening[1].lower()
        at = opening.end()
        while at < len(text) and not text.startswith(quote, at):
            if text[at] == "\\":
                at = self._escape(builder, at, "r" in prefix)
            elif "f" in prefix and text.startswith(("{{", "}}"), at):
                builder.replace(at, at + 2, text[at])
                at += 2
            elif "f" in prefix and text[at] == "{":
                end = _closing(text, at)
                builder.replace(at, end, self._value(text[at + 1 : end - 1]))
                at = end
            else:
                plain = _PLAIN.match(text, at)
                end = plain.end() if plain else at + 1
                builder.take(at, end)
                at = end
        return at + len(quote)

    def _escape(self, builder: Builder, at: int, is_raw: bool) -> int:
        match = _ESCAPE.match(self.source.text, at)
        end = match.end() if match else at + 1
        written = self.source.text[at + 1 : end]
        if is_raw:
            builder.take(at, end)
        elif written in _CHARACTERS:
            builder.replace(at, end, _CHARACTERS[written])
        elif written[:1] in "xuUN01234567":
            builder.replace(at, end, ast.literal_eval(f'"\\{written}"'))
        else:
            builder.take(at, end)
        return end

    def _value(self, expression: str) -> str:
        """What stands for the expression in an f-string."""
        plain = _CONVERSION.sub("", expression.strip(), count=1).strip()
        if _NUMBER.fullmatch(plain):
            return plain
        known = self.names.constant(plain) if _SIMPLE.fullmatch(plain) else None
        return reference(plain) if known is None else known


def reference(expression: str) -> str:
    """How a value that only the running program knows is written in a command."""
    return f"{UNKNOWN}{re.sub(r'[^A-Za-z0-9_.-]', '', expression)[:LONGEST_NAME] or 'value'}}}"


def _closing(text: str, at: int) -> int:
    """The offset after the brace that closes the one at `at`, brackets and literals inside passed over."""
    depth = 0
    while at < len(text):
        if text[at] in "{[(":
            depth += 1
        elif text[at] in "}])":
            depth -= 1
            if not depth:
                return at + 1
        elif text[at] in "'\"":
            end = text.find(text[at], at + 1)
            at = len(text) if end < 0 else end
        at += 1
    return at
