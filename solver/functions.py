"""Functions of a shell script: the tokens of a body, and the values of `$1`, `$@` and their like in a call."""

from __future__ import annotations

from solver.expansion import Variables, Word
from solver.shell import Token

POSITIONS = ("@", "*", "#", *"123456789")
_RESERVED = frozenset(("if", "while", "until", "then", "do", "else", "elif", "!", "time"))


def bound(arguments: tuple[Word, ...]) -> Variables:
    """The values of `$@` and `$1` to `$9`; behind a word that may be several, no position is known."""
    found: Variables = {"@": arguments, "*": arguments}
    open_ended = next((i for i, word in enumerate(arguments) if word.splits), len(arguments))
    for number in range(9):
        if number < open_ended:
            word = arguments[number]
            found[str(number + 1)] = None if word.unknown else word.text
        elif open_ended < len(arguments):
            found[str(number + 1)] = None
    return found


def defined(pending: list[Token]) -> str | None:
    """The name of the function whose body a `{` opens: `name() {` or `function name {`."""
    words = [token.text for token in pending[:-1]]
    if len(words) >= 2 and words[-1] == "()":
        return words[-2]
    return words[-1] if len(words) >= 2 and words[-2] == "function" else None


def body_end(stream: list[Token], index: int) -> int:
    """Index of the `}` of the block that starts at `index`; braces count where a command may begin."""
    depth, starts = 1, True
    while index < len(stream):
        token = stream[index]
        if token.kind == "word" and starts and token.text in ("{", "}"):
            depth += 1 if token.text == "{" else -1
            if not depth:
                return index
        starts = token.kind == "operator" or (starts and token.text in _RESERVED) or token.text == "{"
        index += 1
    return index
