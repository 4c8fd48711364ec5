"""Effective values and traits -> the computed figures that rules may name as `estimate.x`, each with its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ESTIMATES: dict[str, Callable[[Any], Any]] = {}
