"""Python source -> the launches it starts: lists of arguments and command texts that name the engine.

A list is one command, and so is a text; what the same block adds to it later belongs to it, what may be added
elsewhere leaves the launch open. A text that is printed, raised, compared or explains an option starts nothing. A name
has the value of the only constant that the file gives it; every other one is unknown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import msgspec

from solver.errors import RequestError
from solver.gate.arguments import Argument, joined, launches_in, replaced
from solver.gate.found import Finds, Found, Hints
from solver.gate.python_texts import Names, Places, dotted
from solver.gate.text import Text
from solver.release import image_version

_LAUNCH = re.compile(r"launch_server|sglang(?:\.cli\.main)?['\"\s,]+serve\b")
_FLAG_AND_VALUE = re.compile(r"--[\w-]+[ =]+\S.*", re.DOTALL)
_PERCENT = re.compile(r"%(?:\(\w+\))?[-+#0 ]*[\d.]*[sdifgr]")
_FIELD = re.compile(r"\{[^{}\n]*\}")
_SAYS = frozenset(
    (
        *("print", "info", "warning", "warn", "error", "debug", "exception", "critical", "log", "echo", "secho"),
        *("write", "fail", "skip", "exit", "add_argument", "ArgumentParser", "Option", "Argument", "Field"),
        *("search", "match", "fullmatch", "compile", "findall", "sub", "replace", "count", "startswith", "endswith"),
    )
)
"""Functions whose texts are for a reader, or are looked for."""
_EXPLAINS = frozenset(("help", "description", "epilog", "usage", "title", "doc"))
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")


_END = Argument(None, Text("", ()), raw=True)


def find(source: Text) -> Finds:
    """The launches of a program; one that does not parse has none."""
    if source.text.startswith("\ufeff"):
        source = source.cut(1, len(source.text))
    if not _LAUNCH.search(source.text):
        return Finds()
    try:
        return _Program(ast.parse(source.text), source).find()
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # the last for sums of thousands of terms
        return Finds()


class _Program:
    """One program under way. `read`: nodes that belong to a command already."""

    def __init__(self, tree: ast.Module, source: Text) -> None:
        self.tree = tree
        self.source = source
        self.places = Places(source, Names(tree))
        self.finds = Finds()
        self.read: set[int] = set()
        self.env = _variables(tree)
        self.hints = Hints(image=_image(tree))

    def find(self) -> Finds:
        for node in ast.walk(self.tree):
            for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
                if isinstance(block, list):
                    self._block(block)
        self._rest(self.tree, None)
        return self.finds

    # ---------------------------------------------------------- what is put together

    def _block(self, block: Sequence[ast.stmt]) -> None:
        """Commands that are assigned to a name, with what the block adds to the name afterwards."""
        for index, statement in enumerate(block):
            target, value = _assigned(statement)
            if target is None or value is None or not self._is_command(value):
                continue
            parts, is_open = [value], False
            for later in block[index + 1 :]:
                added = _added(later, target)
                if added is not None:
                    parts += added
                elif _assigned(later)[0] == target:
                    break
                elif not isinstance(later, ast.FunctionDef | ast.ClassDef) and _grows(later, target):
                    is_open = True
            self._command(parts, is_open)

    def _is_command(self, node: ast.expr) -> bool:
        """Whether an expression is a list or a text that names the engine."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._is_command(node.left) or self._is_command(node.right)
        if isinstance(node, ast.List | ast.Tuple):
            texts = [self.places.text_of(item).text for item in node.elts if _is_text(item)]
            whole = [text for text in texts if " " in text and _LAUNCH.search(text)]
            if len(whole) > isinstance(node, ast.List):
                return False  # a list of commands, or a row of a table
            return bool(_LAUNCH.search("\n".join(texts)))
        return _is_text(node) and bool(_LAUNCH.search(self.places.text_of(node).text))

    # ------------------------------------------------------------------ what is left

    def _rest(self, node: ast.AST, parent: ast.AST | None) -> None:
        """Commands that stand where they are used. What only speaks of a launch is passed over."""
        if id(node) in self.read or _speaks(node, parent):
            return
        if isinstance(node, ast.expr) and self._is_command(node):
            self._command([node], False, parent)
            return
        for child in () if isinstance(node, ast.JoinedStr) else ast.iter_child_nodes(node):
            self._rest(child, node)

    def _command(self, parts: Sequence[ast.expr], is_open: bool, parent: ast.AST | None = None) -> None:
        self.read.update(id(node) for part in parts for node in ast.walk(part))
        arguments = [argument for part in parts for argument in self.places.arguments(part)]
        if _is_shell_text(parts[0], arguments):
            arguments = [msgspec.structs.replace(a, raw=True) for a in arguments]
        separator = "\n" if _is_lines(arguments) else " "
        text, items = joined([*arguments, _END] if separator == "\n" else arguments, separator)
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mod):
            text = replaced(text, _PERCENT, lambda match: None)
        elif isinstance(parent, ast.Attribute) and parent.attr == "format":
            text = replaced(text, _FIELD, lambda match: None)
        fallback = self.places.span(parts[0])
        try:
            found = launches_in(
                "python", text, fallback, env=self.env, hints=self.hints, items=items,
            )  # fmt: skip
        except RequestError:
            return  # a text that is no command
        self.finds.found += [_opened(f, is_open) for f in found if (f.launch.words or is_open) and not _is_prose(f)]


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is a text that the program writes out."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and (_is_text(node.left) or _is_text(node.right))
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_prose(found: Found) -> bool:
    """Whether a text tells how to start the server: an ellipsis or a bracket stands for what is left out."""
    return any(word.text in ("...", "…", "...)", "…)") for word in found.launch.words)


def _opened(found: Found, is_open: bool) -> Found:
    return msgspec.structs.replace(found, partial=True) if is_open else found


def _is_shell_text(first: ast.expr, arguments: Sequence[Argument]) -> bool:
    """Whether the parts are joined by blanks rather than handed over one by one."""
    if not isinstance(first, ast.List | ast.Tuple | ast.BinOp) or not arguments:
        return bool(arguments)
    head = arguments[0].text.text
    return bool(_LAUNCH.search(head) and " " in head) or any(
        _FLAG_AND_VALUE.fullmatch(a.text.text) or a.text.text.endswith("\\") for a in arguments
    )


def _is_lines(arguments: Sequence[Argument]) -> bool:
    """Whether the parts are the lines of a script, which their last characters tell."""
    return any(a.raw and a.text.text.endswith("\\") for a in arguments)


def _assigned(statement: ast.stmt) -> tuple[str | None, ast.expr | None]:
    """The name that a statement assigns to, and what."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return dotted(statement.targets[0]), statement.value
    if isinstance(statement, ast.AnnAssign):
        return dotted(statement.target), statement.value
    return None, None


def _added(statement: ast.stmt, target: str) -> list[ast.expr] | None:
    """What a statement adds to the end of a command; None where it does something else."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return [statement.value] if dotted(statement.target) == target else None
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        value = statement.value
        is_same = _assigned(statement)[0] == target == dotted(value.left)
        return [value.right] if is_same and isinstance(value.op, ast.Add) else None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == target and len(call.args) == 1:
            argument = call.args[0]
            if call.func.attr == "append":
                return [ast.copy_location(ast.List([argument], ast.Load()), argument)]
            return [argument] if call.func.attr == "extend" else None
    return None


def _grows(statement: ast.stmt, target: str) -> bool:
    """Whether something inside of a statement, such as a branch, may add to a command."""
    inside = (node for node in ast.walk(statement) if isinstance(node, ast.stmt))
    return any(_added(node, target) is not None or _assigned(node)[0] == target for node in inside)


def _speaks(node: ast.AST, parent: ast.AST | None) -> bool:
    """Whether a node is for a reader, or is looked for: a docstring, a message, a help text, a comparison."""
    if isinstance(node, ast.Raise | ast.Assert | ast.Compare):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in _EXPLAINS
    if isinstance(node, ast.Call):
        name = (dotted(node.func) or "").rpartition(".")[2]
        return name in _SAYS or name.endswith(("Error", "Exception", "Warning"))
    return isinstance(parent, ast.Subscript) and node is parent.slice


def _variables(tree: ast.Module) -> dict[str, str | None]:
    """Environment variables that the program sets: known where a line of the module itself does it, else open."""
    found: dict[str, str | None] = {}
    for node in ast.walk(tree):
        keys = node.keys if isinstance(node, ast.Dict) else []
        keys += [t.slice for t in node.targets if isinstance(t, ast.Subscript)] if isinstance(node, ast.Assign) else []
        found |= {key.value: None for key in keys if _names_variable(key)}  # type: ignore[union-attr]  # a constant
    for line in tree.body:
        if not isinstance(line, ast.Assign) or not isinstance(line.targets[0], ast.Subscript):
            continue
        target, value = line.targets[0], line.value
        if dotted(target.value) == "os.environ" and isinstance(target.slice, ast.Constant):
            is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
            found[str(target.slice.value)] = value.value if is_text else None  # type: ignore[attr-defined]  # a constant
    return found


def _names_variable(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and isinstance(key.value, str) and bool(_VARIABLE.fullmatch(key.value))


def _image(tree: ast.Module) -> str | None:
    """The image of the engine that a program names, if there is one only."""
    texts = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    found = {text for text in texts if len(text) < 200 and image_version(text)}
    return found.pop() if len(found) == 1 else None
