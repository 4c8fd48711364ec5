"""What does not depend on the release, part by part: models, machines, evidence, measured figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from solver.compiled import Core
from solver.known import Known
from solver.records import FormatWords, Release, TraitForm, Traits

if TYPE_CHECKING:
    from solver.evidence import Part, Ran, Shelf
    from solver.signatures import Logs

SHELVES_KEPT = 1024


class Records(Mapping[str, Traits]):
    """Catalogue entries by id or another name, each decoded when it is asked for; ids alone are listed."""

    def __init__(self, raw: dict[str, msgspec.Raw], names: Mapping[str, str] | None = None) -> None:
        self._raw = raw
        self._names = names or {}
        self._decoded: dict[str, Traits] = {}

    def __getitem__(self, key: str) -> Traits:
        ident = self._names.get(key, key)
        if ident not in self._decoded:
            self._decoded[ident] = msgspec.msgpack.decode(self._raw[ident], type=Traits)
        return self._decoded[ident]

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


class Index:
    """What does not depend on the release, read part by part when it is first needed."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._parts: dict[str, Any] = {}
        self._shelves: dict[tuple[str | None, ...], Shelf] = {}

    def _part(self, name: str, kind: Any) -> Any:
        if name not in self._parts:
            self._parts[name] = msgspec.msgpack.decode(self._read(name), type=kind)
        return self._parts[name]

    @property
    def core(self) -> Core:
        found: Core = self._part("core", Core)
        return found

    @property
    def hash(self) -> str:
        return self.core.hash

    @property
    def releases(self) -> tuple[Release, ...]:
        return self.core.releases

    @property
    def traits(self) -> dict[str, TraitForm]:
        return self.core.traits

    @cached_property
    def release_order(self) -> dict[str, int]:
        """Release -> its place among the known ones."""
        return {r.version: place for place, r in enumerate(self.releases)}

    @cached_property
    def with_rules(self) -> tuple[str, ...]:
        """The releases of which more than the command line is known, in order."""
        return tuple(r.version for r in self.releases if r.rules)

    @cached_property
    def domains(self) -> dict[str, tuple[Any, ...]]:
        """Trait -> the few values it can have, where they are few."""
        return {name: t.domain for name, t in self.traits.items() if t.domain is not None}

    @property
    def goals(self) -> dict[str, Any]:
        return self.core.goals

    @property
    def hub_ids(self) -> dict[str, str]:
        """Hub id in small letters -> model id."""
        return self.core.hub_ids

    @property
    def format_words(self) -> FormatWords:
        return self.core.format_words

    @cached_property
    def models(self) -> Records:
        return Records(self._part("models", dict[str, msgspec.Raw]))

    @cached_property
    def hardware(self) -> Records:
        return Records(self._part("hardware", dict[str, msgspec.Raw]), self.core.gpu_names)

    @property
    def data(self) -> dict[str, Any]:
        """Links, acceptance and costs by their path below the knowledge."""
        found: dict[str, Any] = self._part("data", dict[str, Any])
        return found

    def evidence(self, architecture: str) -> Part:
        """The launches on record for an architecture; nothing else of the evidence is read."""
        from solver.evidence import Part

        if architecture not in self.core.evidence:
            return Part(frozenset(), frozenset(), (), {}, ())
        found: Part = self._part(f"evidence-{architecture}", Part)
        return found

    def shelf(self, architecture: str, machine: str | None, release: str) -> Shelf:
        """The launches on record for an architecture on one kind of machine, kept for the next that asks."""
        key = (architecture, machine, release)
        if key not in self._shelves:
            from solver.evidence import Shelf

            if len(self._shelves) >= SHELVES_KEPT:
                self._shelves.clear()
            self._shelves[key] = Shelf(self.evidence(architecture), machine, self.release_order, release)
        return self._shelves[key]

    def record(self, ident: str) -> Ran | None:
        """One launch on record by its id, whatever its architecture."""
        records = (r for architecture in self.core.evidence for r in self.evidence(architecture).records)
        return next((r for r in records if r.id == ident), None)

    @property
    def logs(self) -> Logs:
        """Signatures, phases, and which module reads which flags."""
        from solver.signatures import Logs

        found: Logs = self._part("logs", Logs)
        return found

    @property
    def known_flags(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        found: Known = self._part("known", Known)
        return found.flags

    @property
    def known_env(self) -> dict[str, tuple[str, ...]]:
        found: Known = self._part("known", Known)
        return found.env

    @property
    def known_advice(self) -> dict[str, str]:
        found: Known = self._part("known", Known)
        return found.advice

    @property
    def known_stored(self) -> dict[str, Any]:
        found: Known = self._part("known", Known)
        return found.stored

    @property
    def known_choices(self) -> dict[str, dict[str, tuple[str, str]]]:
        found: Known = self._part("known", Known)
        return found.choices
