"""One argument's text -> the value that a flag's type stores for it, as the engine's parser converts it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_SHORT = re.compile(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)")
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def convert(type_name: str, text: str) -> Any:
    """The typed value. A type that is not known here keeps the text. Raises ValueError where the text does not fit."""
    try:
        return _CONVERTERS.get(type_name, str)(text)
    except (TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(str(error)) from error


def expected(type_name: str) -> str:
    """What a type takes, in words."""
    return _WORDS.get(type_name, "a text")


def _short_int(text: str) -> int:
    """An integer, or one with a suffix: 25.6k is 25,600 and 1Ki is 1,024; binary suffixes take no fraction."""
    text = text.strip()
    match = _SHORT.fullmatch(text)
    if match is None:
        return int(text)
    number, suffix = match.groups()
    return int(number) * _BINARY[suffix] if suffix in _BINARY else int(Decimal(number) * _DECIMAL[suffix])


def _strict_json(text: str) -> Any:
    """JSON without the NaN and Infinity that Python's reader lets through."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _json_object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _nullable(text: str) -> str | None:
    return None if text in ("", "None") else text


def adapter(text: str) -> Any:
    """One LoRA adapter: a path, `name=path`, or a JSON object with `lora_name` and `lora_path`."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return text
    value = _json_object(text)
    if not {"lora_name", "lora_path"} <= value.keys():
        raise ValueError("lora_name and lora_path are missing")
    return value


_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "json": json.loads,
    "loads": json.loads,
    "json_list_type": _strict_json,
    "parse_cuda_graph_config_arg": _json_object,
    "human_readable_int": _short_int,
    "nullable_str": _nullable,
}
_WORDS = {
    "int": "an integer",
    "float": "a number",
    "json": "JSON",
    "loads": "JSON",
    "json_list_type": "JSON",
    "parse_cuda_graph_config_arg": "a JSON object",
    "human_readable_int": "an integer, also with k, M, G, T, Ki, Mi, Gi or Ti",
    "flag": "no value",
}
