"""A configuration that broke the reading -> the error that names the key to blame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from solver.errors import RequestError
from solver.traits.config import Config, Json, config_of

#: What values of the wrong type or size raise where no getter looked at them.
BROKEN = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, StopIteration, RuntimeError)
Path = tuple[str, ...]


def misfit(config: Config, attempt: Callable[[Config], Any]) -> RequestError:
    """The key without which the configuration can be read, the innermost one, in a single line."""
    where = config.path / "config.json"
    if config.modelopt is not None and _passes(attempt, config_of(config.path, config.top)):
        return RequestError(f"{config.path / 'hf_quant_config.json'}: holds values of types that no exporter writes")
    for path in sorted(_keys(config.top), key=lambda path: -len(path)):
        if _passes(attempt, config_of(config.path, _without(config.top, path), config.modelopt)):
            value = _value(config.top, path)
            return RequestError(f"{where}: {'.'.join(path)} = {value!r:.60} does not go with the rest of this config")
    return RequestError(f"{where}: several of its values have types or sizes that no model has")


def _passes(attempt: Callable[[Config], Any], config: Config) -> bool:
    try:
        attempt(config)
    except (RequestError, *BROKEN):
        return False
    return True


def _keys(top: Json) -> Iterator[Path]:
    for key, value in top.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, inner) for inner in value)


def _without(top: Json, path: Path) -> Json:
    rest = {key: value for key, value in top.items() if key != path[0]}
    if len(path) > 1:
        rest[path[0]] = {key: value for key, value in top[path[0]].items() if key != path[1]}
    return rest


def _value(top: Json, path: Path) -> Any:
    return top[path[0]] if len(path) == 1 else top[path[0]][path[1]]
