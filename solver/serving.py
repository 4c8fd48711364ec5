"""The arguments of `sglang serve` -> the arguments its language-model server parses.

What the subcommand does before argparse depends on the release, so it comes as feature names:

- `serve-positional-model`: a first argument without dashes is the model;
- `serve-model-type`: `--model-type KIND` is taken out (it picks the language or the diffusion server);
- `serve-model-alias`: `--model` is looked at too; without it only the spelling `--model-path` is found.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from solver.expansion import Word
from solver.problems import Problem


def read_serve(words: Sequence[Word], features: Collection[str]) -> tuple[list[Word], list[Problem]]:
    """The remaining arguments, and what the subcommand itself refuses."""
    problems: list[Problem] = []
    kept = _without_model_type(words, problems) if "serve-model-type" in features else list(words)
    if "serve-positional-model" in features:
        if kept and not kept[0].text.startswith("-"):
            kept.insert(0, Word("--model-path", kept[0].span))
    elif not _names_model(kept, features) and not any(word.text in ("-h", "--help") for word in kept):
        problems += _unnamed(kept)
    return kept, problems


def _without_model_type(words: Sequence[Word], problems: list[Problem]) -> list[Word]:
    kept: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word.text == "--model-type":
            if at + 1 == len(words):
                detail = {"expected": "a text", "count": 1}
                problems.append(Problem("missing-value", None, word.text, detail, word.span))
            at += 1
        elif not word.text.startswith("--model-type="):
            kept.append(word)
        at += 1
    return kept


def _names_model(words: Sequence[Word], features: Collection[str]) -> bool:
    names = ("--model-path", "--model") if "serve-model-alias" in features else ("--model-path",)
    if any(word.unknown and not word.text.startswith("--") for word in words):
        return True
    return any(word.text.partition("=")[0] in names for word in words)


def _unnamed(words: Sequence[Word]) -> list[Problem]:
    """An alias that argparse would understand, but that the subcommand does not look for."""
    detail = {"instead": "--model-path"}
    aliases = [word for word in words if word.text.partition("=")[0] == "--model"]
    return [Problem("serve-model-unseen", "model_path", "--model", detail, word.span) for word in aliases]
