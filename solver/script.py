"""Tokens of a shell script -> its simple commands, each with the environment that reaches it.

Control structures are read, not run: both sides of an `if` are looked at, and what only one side assigns is unknown
after it. A function is read where it is called, with the arguments it gets there; one that nothing calls, once at the
end. Redirections are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from solver.expansion import LONGEST, Value, Variables, Word, expand, expand_all, known_text, open_part, text_of
from solver.functions import POSITIONS, body_end, bound, defined
from solver.shell import Piece, Token, is_redirection, tokens


class Command(NamedTuple):
    """One simple command, or a here-document's body and offset.

    `sources` are the tokens its words came from; `env` maps exported names to their value, None where unknown.
    """

    words: tuple[Word, ...]
    sources: tuple[Token, ...]
    env: dict[str, str | None]
    unexported: tuple[str, ...]
    document: tuple[str, int] | None = None


_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OPENING = {"if": "fi", "for": "done", "select": "done", "while": "done", "until": "done", "case": "esac"}
_PASSED_OVER = frozenset(  # `$`: a prompt copied with the command
    ("if", "while", "until", "then", "do", "else", "elif", "{", "}", "!", "time", "fi", "done", "esac", "$")
)
_WHOLE = frozenset(("for", "select", "case", "function"))
_DECLARING = frozenset(("export", "declare", "typeset", "readonly", "local"))
_TESTS = frozenset(("[", "[[", "test", "grep", "command", "which", "!"))
_MOST_CALLS = 100
_LIST_ENDS = frozenset(("\n", ";", "&", ";;", ";&", ";;&"))


def commands(text: str, env: Mapping[str, str | None] | None = None) -> Iterator[Command]:
    """The simple commands of a script in order, and its here-documents. `env`: what is exported already."""
    return _Script(env or {}).read_all(tokens(text))


class _Script:
    """What the shell would know while it goes through a script."""

    def __init__(self, env: Mapping[str, str | None]) -> None:
        self.variables: Variables = dict(env)
        self.exported: set[str] = set(env)
        self.all_exported = False
        self.blocks: list[tuple[str, Variables, Variables, set[str]]] = []
        """Per open block: its end, the values before it of what it assigns, and a subshell's outside."""
        self.guarded: Variables = {}  # values before; assigned behind a test in the current && and || list
        self.is_guarded = False
        self.commands: dict[str, tuple[Word, ...]] = {}
        """Arrays that name the engine: one is kept where a branch not taken would leave another."""
        self.functions: dict[str, list[Token]] = {}
        self.called: list[str] = []
        self.calling: set[str] = set()

    def read_all(self, stream: list[Token]) -> Iterator[Command]:
        """The commands of a whole script."""
        yield from self.read(stream)
        for name in [name for name in self.functions if name not in self.called]:
            yield from self._call(name, None)

    def read(self, stream: list[Token]) -> Iterator[Command]:
        pending: list[Token] = []
        index = 0
        while index < len(stream):
            token = stream[index]
            index += 1
            if token.kind == "word":
                pending.append(token)
                if token.text == "{" and (name := defined(pending)):
                    end = body_end(stream, index)
                    self.functions[name] = stream[index:end]
                    pending, index = [], end + 1
            elif token.kind == "document":
                yield Command((), (), self._env(), (), (token.text, token.start))
            elif is_redirection(token.text):
                index += index < len(stream) and stream[index].kind == "word"
            elif token.text == "(" and pending and pending[-1].end == token.start:
                index = self._parenthesis(stream, index, pending)
            elif token.text == "\n" and pending and pending[-1].text == "()":
                continue  # the brace of a function may stand on the next line
            else:
                yield from self._command(pending, token.text)
                pending = []
                self._after(token.text)
        yield from self._command(pending, "\n")

    def _parenthesis(self, stream: list[Token], index: int, pending: list[Token]) -> int:
        """`NAME=(` starts an array, `name()` a function; the index after it."""
        end = index
        while end < len(stream) and stream[end].text != ")":
            end += 1
        if _ASSIGNMENT.fullmatch(pending[-1].text):
            self._assign_array(pending.pop().text, [t for t in stream[index:end] if t.kind == "word"])
        else:
            start, after = stream[index - 1].start, stream[index - 1].end
            pending.append(Token("word", "()", start, after, (Piece("text", "()", "()", start, True),)))
        return min(end + 1, len(stream))

    def _assign_array(self, target: str, elements: list[Token]) -> None:
        name = target.rstrip("+=")
        words = expand_all(elements, self.variables)[0]
        before = self.variables.get(name)
        if target.endswith("+=") and name in self.variables:
            words = (*(before if isinstance(before, tuple) else (_scalar(name, before),)), *words)
        self._set(name, words if len(words) <= LONGEST else None)

    def _command(self, pending: list[Token], operator: str) -> Iterator[Command]:
        pending = self._strip(pending)
        prefix: dict[str, str | None] = {}
        while pending and (assigned := self._assignment(pending[0], prefix)):
            prefix[assigned[0]] = known_text(assigned[1]) if len(pending) > 1 else assigned[1]
            pending = pending[1:]
        if not pending:
            for name, value in prefix.items():
                self._set(name, value)
            return
        first = pending[0].text
        if first in _DECLARING:
            self._declare(first, pending[1:])
        elif first == "shift":
            self._shift(pending[1:])
        elif first in self.functions:
            yield from self._call(first, [word for token in pending[1:] for word in expand(token, self.variables)])
        elif first in ("set", "unset"):
            self._builtin(first, [token.text for token in pending[1:]])
        else:
            yield self._made(pending, prefix)
        self.is_guarded = self.is_guarded or operator == "||" or (operator == "&&" and first in _TESTS)

    def _call(self, name: str, arguments: list[Word] | None) -> Iterator[Command]:
        """The commands of a function. `arguments` are None where nothing calls it."""
        if name in self.calling or len(self.called) >= _MOST_CALLS:
            return
        self.called.append(name)
        before = {position: self.variables.pop(position, None) for position in POSITIONS}
        if arguments is not None:
            self._bind(tuple(arguments))
        self.calling.add(name)
        yield from self.read(self.functions[name])
        self.calling.discard(name)
        for position, value in before.items():
            self.variables.pop(position, None)
            if value is not None:
                self.variables[position] = value

    def _bind(self, arguments: tuple[Word, ...]) -> None:
        for position in POSITIONS:
            self.variables.pop(position, None)
        self.variables.update(bound(arguments))

    def _shift(self, words: list[Token]) -> None:
        arguments = self.variables.get("@")
        count = int(words[0].text) if words and words[0].text.isdigit() else 1
        if isinstance(arguments, tuple):
            if any(word.splits for word in arguments[:count]):
                self.variables.update(dict.fromkeys(POSITIONS))
            else:
                self._bind(arguments[count:])

    def _made(self, pending: list[Token], prefix: dict[str, str | None]) -> Command:
        words, sources = expand_all(pending, self.variables)
        unexported = tuple(name for name in self.variables if name not in self.exported and name not in prefix)
        return Command(words, sources, self._env() | prefix, unexported)

    def _env(self) -> dict[str, str | None]:
        known = self.variables
        return {n: known_text(known.get(n)) for n in known if n in self.exported}

    def _strip(self, pending: list[Token]) -> list[Token]:
        """Remove the reserved words in front of a command and keep account of blocks."""
        while pending:
            word = pending[0].text
            if word in _OPENING:
                self.blocks.append((_OPENING[word], {}, {}, set()))
            if word in _WHOLE:
                if word != "case" and word != "function" and len(pending) > 1:
                    self._set(pending[1].text, None)
                return []
            if word in ("else", "elif", "fi", "done", "esac"):
                self._leave(word)
            if word not in _PASSED_OVER:
                return pending
            pending = pending[1:]
        return pending

    def _leave(self, word: str) -> None:
        """A branch ends: what it assigned holds only if it was taken."""
        if not self.blocks or self.blocks[-1][0] == ")":
            return
        names = self.blocks[-1][1]
        self._forget(names)
        if word == self.blocks[-1][0]:
            self.blocks.pop()
            for name, value in names.items() if self.blocks else ():
                self.blocks[-1][1].setdefault(name, value)

    def _after(self, operator: str) -> None:
        if operator == "(":
            self.blocks.append((")", {}, dict(self.variables), set(self.exported)))
        elif operator == ")" and self.blocks and self.blocks[-1][0] == ")":
            _, _, self.variables, self.exported = self.blocks.pop()
        elif operator in (";;", ";&", ";;&") and self.blocks:
            self._forget(self.blocks[-1][1])
        if operator in _LIST_ENDS:
            self._forget(self.guarded)
            self.guarded, self.is_guarded = {}, False

    def _forget(self, before: Variables) -> None:
        """What may or may not have been assigned is unknown; of an array that only grew, what it grew by."""
        for name, earlier in before.items():
            value = self.variables.get(name)
            if isinstance(earlier, tuple) and isinstance(value, tuple) and value[: len(earlier)] == earlier:
                self.variables[name] = (*earlier, Word(f"${{{name}[@]}}", unknown=True, splits=True))
            elif isinstance(earlier, str) and isinstance(value, str) and value.startswith(f"{earlier} "):
                self.variables[name] = f"{earlier} {open_part(name)}"
            elif name in self.variables:
                self.variables[name] = self.commands.get(name)

    def _set(self, name: str, value: Value) -> None:
        before = self.variables.get(name)
        self.variables[name] = value
        if isinstance(value, tuple) and any("sglang" in word.text for word in value):
            self.commands[name] = value
        if self.all_exported:
            self.exported.add(name)
        if self.blocks:
            self.blocks[-1][1].setdefault(name, before)
        if self.is_guarded:
            self.guarded.setdefault(name, before)

    def _assignment(self, token: Token, prefix: Mapping[str, str | None]) -> tuple[str, str | None] | None:
        """`NAME=value` or `NAME+=value` -> name and value; None where the word is something else."""
        head = token.pieces[0]
        match = _ASSIGNMENT.match(head.text) if head.kind == "text" and not head.quoted else None
        if match is None:
            return None
        rest = Piece("text", head.text[match.end() :], "", head.start, True)
        value = text_of((rest, *token.pieces[1:]), self.variables)
        if match[2] and value is not None:
            before = prefix.get(match[1], self.variables.get(match[1], ""))
            value = before + value if isinstance(before, str) and len(before) <= LONGEST else None
        return match[1], value

    def _declare(self, builtin: str, arguments: list[Token]) -> None:
        """`export`, `declare -x` and their like."""
        options = "".join(t.text for t in arguments if t.text.startswith(("-", "+")))
        exports = (builtin == "export" and "-n" not in options) or "x" in options
        for token in arguments:
            if assigned := self._assignment(token, {}):
                self._set(*assigned)
            elif not _NAME.fullmatch(token.text):
                continue
            name = assigned[0] if assigned else token.text
            if exports:
                self.variables.setdefault(name, None)
                self.exported.add(name)
            elif "-n" in options:
                self.exported.discard(name)

    def _builtin(self, builtin: str, arguments: list[str]) -> None:
        """`set -a` exports whatever is assigned from here on; `unset` forgets names."""
        if builtin == "unset":
            for name in arguments:
                self.variables.pop(name, None)
                self.exported.discard(name)
            return
        for option in arguments:
            if option in ("-o", "+o") and "allexport" in arguments:
                self.all_exported = option == "-o"
            elif re.fullmatch(r"[-+][a-z]*a[a-z]*", option):
                self.all_exported = option[0] == "-"


def _scalar(name: str, value: str | None) -> Word:
    return Word(f"${{{name}}}" if value is None else value, unknown=value is None)
