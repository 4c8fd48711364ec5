"""What a manifest says around a command: variables with their places, the image and GPUs."""

from __future__ import annotations

import re

import msgspec

from solver.gate.found import Hints
from solver.gate.nodes import Node, get, pairs, scalars, text_at
from solver.gate.text import Text
from solver.records import Span
from solver.wrappers import Env


class Scope(msgspec.Struct, frozen=True):
    """What holds for everything below a mapping. `env`: None where a value is not known."""

    env: Env = {}
    places: dict[str, Span] = {}
    hints: Hints = Hints()


_SAYING = frozenset(("image", "container", "nodeSelector", "resources", "deploy", "gpus"))
"""Keys that say something of the image, of GPUs or their name."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def with_env(scope: Scope, node: Node | None, source: Text) -> Scope:
    """The scope with the variables of an `env:`, `environment:` or `variables:` value.

    Read are a mapping, a list of `NAME=value` texts, and a list of {name, value}; a value from elsewhere is unknown.
    """
    if node is None:
        return scope
    env, places = dict(scope.env), dict(scope.places)
    for name, value, place in _variables(node):
        if not _NAME.fullmatch(name):
            continue
        env[name] = value
        if spot := source.place(place):
            places[name] = spot
    return msgspec.structs.replace(scope, env=env, places=places)


def _variables(node: Node) -> list[tuple[str, str | None, Span]]:
    if node.kind == "map":
        return [(name, _plain(value), Span(key.start, value.end)) for name, key, value in pairs(node)]
    found: list[tuple[str, str | None, Span]] = []
    for item in node.value if node.kind == "list" else ():
        place = Span(item.start, item.end)
        if item.kind == "scalar":
            name, equals, text = item.value.partition("=")
            found.append((name, text if equals else None, place))
        elif name := text_at(item, "name"):
            value = get(item, "value")
            end = max(node.end for node in (get(item, "name"), value) if node is not None)
            found.append((name, _plain(value) if value else None, Span(item.start, end)))
    return found


def _plain(node: Node) -> str | None:
    """The text of a value; null and what is no scalar are unknown."""
    if node.kind != "scalar" or (node.style == "plain" and node.value in ("", "~", "null")):
        return None
    text: str = node.value
    return text


def narrowed(scope: Scope, node: Node) -> Scope:
    """The scope below a mapping: what it says of the image, of GPUs and their name."""
    if _SAYING.isdisjoint(node.fields):
        return scope
    hints = scope.hints
    changes = {
        "image": _image(node),
        "gpus": _gpus(node),
        "gpu": text_at(node, "nodeSelector", "nvidia.com/gpu.product"),
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    if not changes:
        return scope
    return msgspec.structs.replace(scope, hints=msgspec.structs.replace(hints, **changes))


def _image(node: Node) -> str | None:
    image = get(node, "image") or get(node, "container")
    if image is None or image.kind == "scalar":
        return image.value if image else None
    repository, tag = (
        text_at(image, "repository") or text_at(image, "name") or text_at(image, "image"),
        text_at(image, "tag"),
    )
    return f"{repository}:{tag}" if repository and tag else repository


def _gpus(node: Node) -> int | None:
    """GPUs of a container: its limits, or what a compose service reserves. `all` says nothing about the number."""
    limits = get(node, "resources", "limits") or get(node, "resources", "requests")
    counts = [
        _number(value.value) for name, _, value in pairs(limits) if name.endswith("/gpu") and value.kind == "scalar"
    ]
    known = [count for count in counts if count is not None]
    if known:
        return sum(known)
    devices = get(node, "deploy", "resources", "reservations", "devices") or get(node, "gpus")
    if devices is None or devices.kind == "scalar":
        return _number(devices.value) if devices else None
    found = [_devices(device) for device in devices.value] if devices.kind == "list" else []
    return sum(n for n in found if n) if found and None not in found else None


def _devices(device: Node) -> int | None:
    ids = scalars(get(device, "device_ids"))
    if not ids:
        return _number(text_at(device, "count"))
    if any("$" in item.value for item in ids):
        return None  # one reference may stand for several, as in "${GPUS:-0,1}"
    return sum(len(item.value.split(",")) for item in ids)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None
