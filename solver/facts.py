"""A read command, traits and a release -> `Facts`: every value that rules start from, with its origin."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from solver.compiled import Program
from solver.conditions import Unknown
from solver.records import EnvForm, Span

TRUE_WORDS = ("1", "true", "yes", "y", "t", "on")
FALSE_WORDS = ("0", "false", "no", "n", "f", "off", "")
TRAIT_SPACES = ("model", "hardware", "software")


class Facts(msgspec.Struct, frozen=True):
    """What is known before the engine resolves anything.

    `given`: canonical flag id -> value; `env`: variable -> text as set; the trait maps hold only what is known.
    `doubtful`: flags whose value in the command cannot be known (an unset shell variable).
    """

    release: str
    given: dict[str, Any]
    env: dict[str, str]
    model: dict[str, Any]
    hardware: dict[str, Any]
    software: dict[str, Any] = {}
    request: dict[str, Any] = {}
    doubtful: tuple[str, ...] = ()
    spans: dict[str, Span] = {}
    domains: Mapping[str, tuple[Any, ...]] = {}
    """Trait with its namespace -> the few values it can have."""


def typed_env(form: EnvForm | None, text: str | None) -> Any:
    """The value of a variable as the engine reads it: its default when unset, None when the text does not parse."""
    if form is None:
        return None
    if text is None:
        return form.default
    try:
        match form.type:
            case "bool":
                word = text.strip().lower()
                return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None
            case "int":
                return int(text)
            case "float":
                return float(text)
    except ValueError:
        return None
    return text


def env_text(value: Any) -> str:
    """A variable's value as it is written in a shell: booleans as 1 and 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)


MISSING = object()
"""What stands for a fact without a value where values are compared."""
KEPT_AT_MOST = 4096
BASES_KEPT_AT_MOST = 512


def make_room(kept: dict[Any, Any]) -> None:
    """Forget all that a look-up keeps before it becomes too much: a batch may be long."""
    if len(kept) >= KEPT_AT_MOST:
        kept.clear()


class Keys(dict[str, Hashable]):
    """Dotted name of a fact -> what its value is compared by (see `key_of`). Few facts of a release are ever asked for:
    what is not given, set or written is looked up when it is, and noted for the launches that follow."""

    __slots__ = ("_known", "_unset")

    def __init__(self, known: dict[str, Hashable], unset: Unset) -> None:
        super().__init__(known)
        self._known, self._unset = known, unset

    def __missing__(self, name: str) -> Hashable:
        unset = self._unset
        key = self._known[name] = unset.asked[name] = unset.keys.get(name, MISSING)
        return key


class Unset(NamedTuple):
    """What the facts of a release are compared by while nothing is given: flags and variables; those asked for."""

    keys: dict[str, Hashable]
    asked: dict[str, Hashable]


def key_of(value: Any) -> Hashable:
    """What a value is compared by. Every value has a key, and equal ones of other types (1, 1.0, true) other keys."""
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value  # type: ignore[no-any-return]
    return (kind, value) if kind is float or kind is bool else (kind, repr(value))


_dotted: dict[str, str] = {}


def dotted(space: str, name: str) -> str:
    """The name of a fact with its namespace, one object for all: it is looked up all the time."""
    whole = f"{space}.{name}"
    return _dotted.setdefault(whole, whole)


def keys_of(space: str, values: Mapping[str, Any]) -> dict[str, Hashable]:
    """The keys of a namespace by dotted name."""
    return {dotted(space, name): key_of(value) for name, value in values.items()}


_bases: dict[tuple[int, int], tuple[Program, Mapping[str, Any], dict[str, Hashable]]] = {}
_trait_keys: dict[int, tuple[Mapping[str, Any], dict[str, Hashable]]] = {}


def _known_of(program: Program, model: Mapping[str, Any]) -> dict[str, Hashable]:
    """The keys that launches of a model begin with; those of a batch share a model's traits."""
    key = (id(program), id(model))
    kept = _bases.get(key)
    if kept is None:
        if len(_bases) >= BASES_KEPT_AT_MOST:
            _bases.clear()
        keys = program.unset.asked | keys_of("model", model)
        kept = _bases[key] = (program, model, keys)  # with both, so that their ids stay their own
    return kept[2]


def _keys_of_machine(traits: Mapping[str, Any]) -> dict[str, Hashable]:
    """The keys of a machine's traits; launches of a batch share the mapping, and then its keys."""
    kept = _trait_keys.get(id(traits))
    if kept is None:
        make_room(_trait_keys)
        kept = _trait_keys[id(traits)] = (traits, keys_of("hardware", traits))
    return kept[1]


def gatherer(names: Iterable[tuple[str, str]]) -> Callable[[Keys], Hashable]:
    """A function that gets the keys of some facts in one go."""
    wanted = [dotted(*name) for name in names]
    return itemgetter(*wanted) if wanted else lambda keys: ()


class State:
    """The values at one point of the engine's resolution; what rules read and write.

    `spaces["env"]` has the variables that are set or were written; a release knows a thousand.
    """

    __slots__ = ("_changed", "_keys", "_program", "asked", "domains", "estimates", "origins", "spaces")

    def __init__(self, program: Program, facts: Facts, estimates: Mapping[str, Any]) -> None:
        flags = program.unset_flags.copy()
        flags.update(facts.given)
        for flag_id in facts.doubtful:
            flags[flag_id] = Unknown((f"flag.{flag_id}",), program.flags[flag_id].choices)
        env = {n: typed_env(program.env[n], text) for n, text in facts.env.items() if n in program.env}
        self.spaces: dict[str, dict[str, Any]] = {
            "flag": flags,
            "given": dict(facts.given),
            "env": env,
            "model": facts.model,
            "hardware": facts.hardware,
            "software": facts.software,
            "request": facts.request,
            "let": {},
        }
        self.origins: dict[tuple[str, str], str] = {("flag", name): "given" for name in facts.given}
        self.origins.update({("env", name): "given" for name in facts.env})
        self.domains = facts.domains
        self.estimates = estimates
        self._program = program
        self._changed = [*self.origins, *(("flag", name) for name in facts.doubtful)]
        self._keys: Keys | None = None
        self.asked: tuple[Any, Any] | None = None
        """The formula that was asked last since the last write, and its arguments (see `estimates`)."""

    @property
    def keys(self) -> Keys:
        """What the values are compared by now; most runs of a single launch never ask."""
        if self._keys is None:
            spaces = self.spaces
            keys = self._keys = Keys(_known_of(self._program, spaces["model"]), self._program.unset)
            keys.update(_keys_of_machine(spaces["hardware"]))
            for space in ("given", "software", "request"):
                for name, value in spaces[space].items():
                    keys[f"{space}.{name}"] = key_of(value)
            for space, name in self._changed:
                keys[f"{space}.{name}"] = key_of(spaces[space].get(name))
        return self._keys

    def values(self, space: str) -> dict[str, Any]:
        """Every flag or variable with its value now."""
        return {**self._program.unset_env, **self.spaces[space]} if space == "env" else self.spaces[space]

    def write(self, fact: tuple[str, str], value: Any) -> None:
        """Give a flag or variable another value."""
        space, name = fact
        self.spaces[space][name] = value
        self.asked = None
        if self._keys is None:
            self._changed.append(fact)
        else:
            self._keys[f"{space}.{name}"] = key_of(value)

    def get(self, space: str, name: str) -> Any:
        """The value of a dotted name now; traits nobody stated are Unknown, anything else absent is null."""
        if space == "estimate":
            return self.estimates[name](self)
        try:
            return self.spaces[space][name]
        except KeyError:
            if space == "env":
                return self._program.unset_env.get(name)
            whole = dotted(space, name)
            return Unknown((whole,), self.domains.get(whole)) if space in TRAIT_SPACES else None

    def origin(self, space: str, name: str) -> str:
        """Where a value comes from: given, default, a rule's id, trait, unknown."""
        if space in TRAIT_SPACES:
            return "trait" if name in self.spaces[space] else "unknown"
        if space in ("estimate", "request", "given"):
            return {"estimate": "computed", "request": "request", "given": "given"}[space]
        return self.origins.get((space, name), "default")
