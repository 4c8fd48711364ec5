"""`Knowledge` -> one `Program` per release, kept in a cache that is rebuilt when a YAML file is newer.

Reading thousands of YAML lines costs more than a whole answer may take, so the hot path reads one small binary file
per release. The cache lies beside the knowledge when it was built into a wheel, else in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from solver.conditions import Node, fold_release, literal, parse
from solver.records import EnvForm, FlagForm, Release, Rule, TraitForm, Traits

if TYPE_CHECKING:
    from solver.knowledge import Knowledge

FORMAT = 6
"""Raised whenever the layout of the cache changes."""
SEALED = "_compiled"
"""The cache folder inside a wheel's knowledge."""
INSTALL_SLACK_S = 60.0
"""Installers write files one after another: a YAML file this much newer than the sealed cache was edited."""
STAGE_RANK = {"parse": 0, "resolve": 1, "config": 2, "load": 3, "capture": 4, "run": 5, "quality": 6, "host": 7}


class Set(msgspec.Struct, frozen=True, array_like=True):
    """One value a rule writes."""

    space: str
    name: str
    value: Node


class Branch(msgspec.Struct, frozen=True, array_like=True):
    """The first branch whose conditions hold writes its values."""

    when: tuple[Node, ...]
    sets: tuple[Set, ...]


class CompiledRule(msgspec.Struct, frozen=True, array_like=True):
    """One rule in a release, at its place in the engine's order, with conditions parsed and releases folded away."""

    id: str
    severity: str | None
    stage: str
    report: str
    let: tuple[tuple[str, Node], ...]
    when: tuple[Node, ...]
    require: tuple[Node, ...]
    forbid: tuple[Node, ...]
    branches: tuple[Branch, ...]
    leaves_open: tuple[str, ...]
    about: tuple[str, ...]


class Program(msgspec.Struct, frozen=True):
    """All that a release needs at run time: its flags, variables, tables, and rules in order."""

    release: str
    flags: dict[str, FlagForm]
    env: dict[str, EnvForm]
    tables: dict[str, Any]
    rules: tuple[CompiledRule, ...]
    problems: dict[str, str]
    """Kind of reading problem -> rule id."""
    levers: tuple[Any, ...]
    arguments: dict[str, dict[str, Node]]
    """Formula -> argument -> expression."""


class Index(msgspec.Struct, frozen=True):
    """What does not depend on the release."""

    hash: str
    releases: tuple[Release, ...]
    models: dict[str, Traits]
    hub_ids: dict[str, str]
    hardware: dict[str, Traits]
    traits: dict[str, TraitForm]
    goals: dict[str, Any]
    data: dict[str, Any]
    known_flags: dict[str, tuple[str, tuple[str, ...]]]
    """Spelling -> canonical id, and the releases that have it."""
    known_env: dict[str, tuple[str, ...]]


# ------------------------------------------------------------------ compile


def compile_rule(rule: Rule, release: str) -> CompiledRule:
    """Parse a rule's conditions for one release."""
    from packaging.version import Version

    def node(text: str) -> Node:
        return fold_release(parse(text), Version, release)

    def value(raw: Any) -> Node:
        return fold_release(literal(raw), Version, release)

    def sets(values: dict[str, Any]) -> tuple[Set, ...]:
        return tuple(Set(*_target(name), value(raw)) for name, raw in values.items())

    branches = tuple(Branch(tuple(map(node, c.when)), sets(c.set)) for c in rule.cases)
    if rule.set:
        branches = (Branch((), sets(rule.set)),)
    return CompiledRule(
        id=rule.id,
        severity=rule.severity,
        stage=rule.stage,
        report=rule.report,
        let=tuple((name, node(text)) for name, text in rule.let.items()),
        when=tuple(map(node, rule.when)),
        require=tuple(map(node, rule.require)),
        forbid=tuple(map(node, rule.forbid)),
        branches=branches,
        leaves_open=rule.leaves_open,
        about=rule.about,
    )


def _target(name: str) -> tuple[str, str]:
    return ("env", name[4:]) if name.startswith("env.") else ("flag", name)


def compile_release(knowledge: Knowledge, release: str) -> Program:
    """The program of one release: rules that hold there, in the engine's own order."""
    from packaging.version import Version

    from solver.knowledge import form_in, holds

    steps = form_in(knowledge.steps, release)
    place = {name: i for i, name in enumerate(steps.steps)} if steps else {}

    def position(rule: Rule) -> tuple[int, int, int, str]:
        names = (rule.step,) if isinstance(rule.step, str) else rule.step or ()
        found = next((place[n] for n in names if n in place), len(place))
        return STAGE_RANK[rule.stage], found, rule.order, rule.id

    rules = [r for r in knowledge.rules.values() if not r.withdrawn and holds(r.versions, release)]
    ordered = sorted((r for r in rules if not r.problem), key=position)
    return Program(
        release=release,
        flags={i: f for i, flag in knowledge.flags.items() if (f := form_in(flag.forms, release))},
        env={n: f for n, var in knowledge.env.items() if (f := form_in(var.forms, release))},
        tables={i: f.value for i, table in knowledge.tables.items() if (f := form_in(table.forms, release))},
        rules=tuple(compile_rule(r, release) for r in ordered),
        problems={r.problem: r.id for r in rules if r.problem},
        levers=tuple(msgspec.to_builtins(lever) for lever in knowledge.levers if holds(lever.versions, release)),
        arguments={
            a.formula: {name: fold_release(parse(text), Version, release) for name, text in a.arguments.items()}
            for a in knowledge.arguments
            if holds(a.versions, release)
        },
    )


def index_of(knowledge: Knowledge, content_hash: str) -> Index:
    """Everything that does not depend on the release."""
    from solver.knowledge import form_in

    releases = [r.version for r in knowledge.releases]
    spellings: dict[str, tuple[str, list[str]]] = {}
    for flag in knowledge.flags.values():
        for release in releases:
            form = form_in(flag.forms, release)
            for spelling in form.spellings if form else ():
                spellings.setdefault(spelling, (flag.id, []))[1].append(release)
    return Index(
        hash=content_hash,
        releases=knowledge.releases,
        models=knowledge.models,
        hub_ids={hub.lower(): m.id for m in knowledge.models.values() for hub in m.hub_ids},
        hardware=knowledge.hardware,
        traits=knowledge.traits,
        goals={g.id: msgspec.to_builtins(g) for g in knowledge.goals.values()},
        data=knowledge.data,
        known_flags={s: (i, tuple(r)) for s, (i, r) in spellings.items()},
        known_env={n: tuple(r for r in releases if form_in(v.forms, r)) for n, v in knowledge.env.items()},
    )


# -------------------------------------------------------------------- cache


class Store:
    """Programs, index and rule texts of one knowledge folder, from the cache where it is fresh."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = _fresh_folder(root)
        self._memory: dict[str, bytes] = {} if self._folder else _build(root)
        if not self._folder:
            self._folder = _keep(root, self._memory)
        self._texts: dict[str, msgspec.Raw] | None = None
        self._index: Index | None = None

    def _read(self, name: str) -> bytes:
        if name in self._memory:
            return self._memory[name]
        assert self._folder is not None
        return (self._folder / name).read_bytes()

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = msgspec.msgpack.decode(self._read("index"), type=Index)
        return self._index

    def program(self, release: str) -> Program:
        """The program of a known release."""
        return msgspec.msgpack.decode(self._read(f"release-{release}"), type=Program)

    def rule(self, rule_id: str) -> Rule | None:
        """A rule with its words and sources, or None."""
        if self._texts is None:
            self._texts = msgspec.msgpack.decode(self._read("texts"), type=dict[str, msgspec.Raw])
        raw = self._texts.get(rule_id)
        return None if raw is None else msgspec.msgpack.decode(raw, type=Rule)

    def rule_ids(self) -> tuple[str, ...]:
        """All rule ids, sorted."""
        self.rule("")
        return tuple(sorted(self._texts or ()))


def stamp(root: Path) -> list[tuple[str, int, int]]:
    """Name, size and change time (ns) of every YAML file below a folder, sorted."""
    found: list[tuple[str, int, int]] = []
    stack = [str(root)]
    cut = len(str(root)) + 1
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    stack.append(entry.path)
                elif entry.name.endswith(".yaml"):
                    stat = entry.stat()
                    found.append((entry.path[cut:], stat.st_size, stat.st_mtime_ns))
    found.sort()
    return found


def _cache_folder(root: Path) -> Path:
    base = os.environ.get("FLAGWISE_CACHE") or os.path.join(  # noqa: PTH118  # a string is all that is needed here
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),  # noqa: PTH111
        "flagwise",
    )
    return Path(base) / hashlib.blake2b(str(root).encode(), digest_size=8).hexdigest()


def _fresh_folder(root: Path) -> Path | None:
    now = stamp(root)
    sealed = root / SEALED
    if _sealed_is_fresh(sealed, now):
        return sealed
    folder = _cache_folder(root)
    try:
        kept = msgspec.msgpack.decode((folder / "stamp").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    return folder if kept == _stamp_value(now) else None


def _stamp_value(files: list[tuple[str, int, int]]) -> list[Any]:
    code = Path(__file__).parent
    own = [[n, (code / n).stat().st_mtime_ns] for n in ("compiled.py", "conditions.py", "records.py", "knowledge.py")]
    return [FORMAT, own, [list(f) for f in files]]


def _sealed_is_fresh(sealed: Path, now: list[tuple[str, int, int]]) -> bool:
    try:
        built = (sealed / "sizes").stat().st_mtime
        sizes = msgspec.msgpack.decode((sealed / "sizes").read_bytes())
    except OSError:
        return False
    if sizes != [FORMAT, [[name, size] for name, size, _ in now]]:
        return False
    return all(changed / 1e9 <= built + INSTALL_SLACK_S for _, _, changed in now)


def _build(root: Path) -> dict[str, bytes]:
    from solver.knowledge import load

    knowledge = load(root)
    digest = hashlib.blake2b(digest_size=8)
    for name, _, _ in stamp(root):
        digest.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
    encode = msgspec.msgpack.encode
    files = {f"release-{r.version}": encode(compile_release(knowledge, r.version)) for r in knowledge.releases}
    files["index"] = encode(index_of(knowledge, digest.hexdigest()))
    files["texts"] = encode({r.id: r for r in knowledge.rules.values()})
    return files


def _keep(root: Path, files: dict[str, bytes]) -> Path | None:
    """Write the cache; a place that cannot be written is no error (the next run compiles again)."""
    folder = _cache_folder(root)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in [*files.items(), ("stamp", msgspec.msgpack.encode(_stamp_value(stamp(root))))]:
            part = folder / f".{name}.{os.getpid()}"
            part.write_bytes(content)
            part.replace(folder / name)
    except OSError:
        return None
    return folder


def seal(root: Path, target: Path) -> None:
    """Write the cache that a wheel carries (called by the build hook)."""
    target.mkdir(parents=True, exist_ok=True)
    for name, content in _build(root).items():
        (target / name).write_bytes(content)
    sizes = [FORMAT, [[name, size] for name, size, _ in stamp(root)]]
    (target / "sizes").write_bytes(msgspec.msgpack.encode(sizes))


def default_root() -> Path:
    """The knowledge folder: `FLAGWISE_KNOWLEDGE`, else the installed package `knowledge`."""
    given = os.environ.get("FLAGWISE_KNOWLEDGE")
    if given:
        return Path(given)
    import knowledge

    return Path(knowledge.__path__[0])


