"""Measured accepted tokens per pass in; the value to reckon with for a model, method and number of draft steps out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from solver.records import Source, Strict

Text = Literal["coding", "chat", "random", "predictable", "unstated"]

# The engine runs a checkpoint's own MTP layer under three names.
METHODS = {"nextn": "mtp", "eagle": "mtp", "mtp": "mtp", "eagle3": "eagle3", "dspark": "dspark", "dflash": "dflash"}


class Row(Strict, frozen=True):
    """One measured acceptance. `steps` null: the source does not say, so no setting can use the row.

    `from_position`: read off per-position rates measured with more steps; a chain of drafts allows that downwards only.
    """

    method: str
    steps: int | None
    accepted: float
    engine: str
    text: Text
    source: Source
    topk: int = 1
    from_position: bool = False
    note: str | None = None


class Family(Strict, frozen=True):
    """Acceptance rows of one family; `models`: lower-case beginnings, whole words, of checkpoint names."""

    id: str
    models: tuple[str, ...]
    rows: tuple[Row, ...]


class Acceptance(msgspec.Struct, frozen=True):
    """Tokens per target pass, the verified one included, with the range of all rows for the same steps."""

    value: float
    low: float
    high: float
    steps: int
    rows: tuple[Row, ...]


def checkpoint_name(model: str | Mapping[str, Any]) -> str:
    """The name that acceptance rows are found by: the hub name without its owner, else the catalogue id."""
    name = model if isinstance(model, str) else str(model.get("hub_id") or model.get("id") or "")
    return name.rsplit("/", 1)[-1].lower()


def find_family(model: str | Mapping[str, Any], acceptance: tuple[Family, ...]) -> Family | None:
    """The family with the longest matching beginning, so that a named variant wins over its line."""
    name = checkpoint_name(model)
    best = max(
        (
            (len(start), family)
            for family in acceptance
            for start in family.models
            if f"{name}-".startswith(f"{start}-")
        ),
        key=lambda found: found[0],
        default=None,
    )
    return best[1] if best else None


def accepted_tokens(
    model: str | Mapping[str, Any],
    steps: int,
    acceptance: tuple[Family, ...],
    method: str = "mtp",
    engine: str = "sglang",
    topk: int = 1,
) -> Acceptance | None:
    """Accepted tokens per pass (DESIGN section 6): the same engine's rows first, then the lowest; None without a row.

    Rows on predictable prompts widen the range but are the value only when nothing else was measured.
    """
    family = find_family(model, acceptance)
    wanted = METHODS.get(method.lower(), method.lower())
    rows = [r for r in family.rows if (r.method, r.steps, r.topk) == (wanted, steps, topk)] if family else []
    if not rows:
        return None
    fair = [r for r in rows if r.text != "predictable"] or rows
    value = min(r.accepted for r in [r for r in fair if r.engine == engine] or fair)
    figures = [r.accepted for r in rows]
    return Acceptance(value, min(figures), max(figures), steps, tuple(rows))


def measured_steps(
    model: str | Mapping[str, Any], acceptance: tuple[Family, ...], method: str = "mtp"
) -> tuple[int, ...]:
    """The numbers of draft steps that have a row, ascending: the only ones a solver may choose."""
    family = find_family(model, acceptance)
    wanted = METHODS.get(method.lower(), method.lower())
    found = {r.steps for r in family.rows if r.method == wanted and r.topk == 1 and r.steps} if family else set()
    return tuple(sorted(found))
