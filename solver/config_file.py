"""`--config FILE` among the arguments -> the arguments with the file's keys in front, as the engine merges them.

Only the separate spelling `--config FILE` is looked at; `--config=FILE` is parsed and then never read. Keys become
`--key value` as they are written, so a key with underscores is refused like any such spelling. What a release can
convert comes as feature names: `config-switches` (true gives the bare flag and false nothing, whatever the flag is, and
no action is refused), `config-mappings` (nested keys become JSON; before that, Python's repr) and `config-spellings`
(keys may be any spelling of a flag, and any action with one value will do).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from solver.expansion import Word
from solver.options import dest_of, spellings_of, takes_no_value
from solver.problems import Problem
from solver.records import FlagForm

_HANDLED = frozenset(("store", "store_true"))


def merge_config(
    words: Sequence[Word],
    flags: Mapping[str, FlagForm],
    read_file: Callable[[str], str] | None,
    features: Collection[str],
) -> tuple[list[Word], list[Problem]]:
    """The merged arguments (those from the file stand where `--config` does), and what is wrong with the file."""
    at = next(i for i, word in enumerate(words) if word.text == "--config")
    option, rest = words[at], [*words[:at], *words[at + 2 :]]
    if any(word.text == "--config" for word in rest):
        others, _ = merge_config(rest, flags, None, features)
        return others, [_refused(option, "only one --config file is allowed")]
    if at + 1 == len(words):
        return rest, [Problem("missing-value", "config", "--config", {"expected": "a file", "count": 1}, option.span)]
    file = words[at + 1]
    if read_file is None or file.unknown:
        return rest, [Problem("config-unread", "config", file.text, {}, file.span)]
    try:
        content = _load(file.text, read_file)
        arguments = [text for key, value in content.items() for text in arguments_of_key(key, value, flags, features)]
    except ValueError as error:
        return rest, [_refused(file, str(error))]
    return [*(Word(text, file.span) for text in arguments), *rest], []


def _refused(word: Word, reason: str) -> Problem:
    return Problem("config-refused", "config", word.text, {"reason": reason}, word.span)


def _load(path: str, read_file: Callable[[str], str]) -> dict[str, Any]:
    import yaml  # only launches with a configuration file pay for it

    if not path.lower().endswith((".yaml", ".yml")):
        raise ValueError(f"{path} is not named .yaml or .yml")
    try:
        content = yaml.safe_load(read_file(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read ({error.__class__.__name__})") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ValueError(f"{path} must hold a mapping of flag names to values")
    return content


def arguments_of_key(key: str, value: Any, flags: Mapping[str, FlagForm], features: Collection[str]) -> list[str]:
    """One key and its value as arguments. Raises ValueError where the engine does not convert the flag's action."""
    plain = "config-switches" in features
    forms = [form for form in flags.values() if key.replace("-", "_") in _keys(form, features)]
    if not plain and forms and not any(_is_handled(form, features) for form in forms):
        raise ValueError(f"{key} cannot be set in a configuration file")
    if isinstance(value, bool):
        switch = plain or any(form.action == "store_true" for form in forms)
        return [f"--{key}"] * value if switch else [f"--{key}", str(value).lower()]
    if isinstance(value, list):
        return [f"--{key}", *map(str, value)] if value else []
    if isinstance(value, dict) and "config-mappings" in features:
        return [f"--{key}", json.dumps(value)]
    return [f"--{key}", str(value)]


def _keys(form: FlagForm, features: Collection[str]) -> set[str]:
    """The keys by which the engine recognises a flag."""
    keys = {dest_of(form)}
    if "config-spellings" in features:
        keys |= {spelling[2:].replace("-", "_") for spelling in spellings_of(form)}
    return keys


def _is_handled(form: FlagForm, features: Collection[str]) -> bool:
    single = "config-spellings" in features and form.nargs is None and not takes_no_value(form)
    return form.action in _HANDLED or single
