"""A message template and values -> a sentence. Templates hold `{flag.x}`; no format-string features are available."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

_HOLE = re.compile(r"\{([a-z]+(?:\.[A-Za-z0-9_]+)?)\}")


@cache
def holes(template: str) -> tuple[str, ...]:
    """The names that a template mentions."""
    return tuple(_HOLE.findall(template))


@cache
def _parts(template: str) -> tuple[str, ...]:
    """Text and names in turn, beginning with text."""
    return tuple(_HOLE.split(template.strip()))


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Replace each `{name}` by its value in words; a name without a value reads `unknown`."""
    parts = list(_parts(template))
    parts[1::2] = [say(values[name]) if name in values else "unknown" for name in parts[1::2]]
    return "".join(parts).strip()


def say(value: Any) -> str:
    """A value in words: null is `unset`, lists are joined, floats lose their tail."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict) and set(value) == {"one_of"}:
        return " or ".join(say(v) for v in value["one_of"])
    if isinstance(value, dict) and set(value) == {"unknown"}:
        return "unknown"
    if isinstance(value, list | tuple):
        return ", ".join(say(v) for v in value)
    return str(value)


def listed(items: list[str] | tuple[str, ...], last: str = "and") -> str:
    """`a, b and c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


FIGURES = frozenset(
    (
        "token_latency_us",
        "pcie_roundtrips_per_token",
        "accepted_tokens",
        "kv_tokens",
        "gpus_used",
        "throughput",
        "weights_gib",
    )
)
"""Figures that have a unit."""


def figure(name: str, value: Any) -> str:
    """A figure with its unit; times are estimates."""
    if value is None:
        return "unknown"
    match name:
        case "token_latency_us":
            return f"{value / 1000:.2f} ms per token"
        case "pcie_roundtrips_per_token":
            return f"{value:.1f} transfer steps per token"
        case "accepted_tokens":
            return f"{value:.2f} tokens per pass"
        case "kv_tokens":
            return f"{value:,.0f} tokens of KV cache"
        case "gpus_used":
            return f"{value:g} GPUs"
        case "throughput":
            return f"{value:.1f} tokens per second"
        case "weights_gib":
            return f"{value:.1f} GiB of weights per GPU"
    return f"{value:,.0f}" if isinstance(value, float) and abs(value) >= 10_000 else say(value)
