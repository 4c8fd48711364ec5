"""The plain, frozen data that modules hand to each other: knowledge records in, findings out."""

# no deferred annotations here: msgspec would compile each one again when a record is first decoded
from typing import Any, Literal

import msgspec

Severity = Literal["error", "warning", "note"]
Stage = Literal["parse", "resolve", "config", "load", "capture", "run", "quality", "host"]
Status = Literal["source", "oracle", "measured", "reported"]
Known = Literal["source", "oracle", "measured", "reported", "guess"]
"""How a finding is known: as its rule is, or guessed from a log that nothing recognises."""

SEVERITIES: tuple[Severity, ...] = ("note", "warning", "error")
STAGES: tuple[Stage, ...] = ("parse", "resolve", "config", "load", "capture", "run", "quality", "host")


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all knowledge records: an unknown key is an error, and nothing changes after loading."""


class Source(Strict, frozen=True):
    """Where a claim can be checked: a file and symbol of one release, or a permanent link."""

    release: str | None = None
    file: str | None = None
    symbol: str | None = None
    url: str | None = None
    note: str | None = None


class Release(Strict, frozen=True):
    """One published version of the engine. `verified`: its own argument code was run against our rules.

    `rules: false`: only its flags and variables are known, so that the command line alone is judged.
    """

    version: str
    date: str
    verified: bool = False
    rules: bool = True


class FlagForm(Strict, frozen=True):
    """How one flag looks in a range of releases.

    `type` is int, float, str, json, flag (takes no value) or the name of the engine's own parser of the value; `nargs`
    as in argparse. `const` is what a bare flag stores. `dest` is the release's own name of the value, where the flag's
    id and its first long spelling do not both say it already. `deprecated`: what to write instead (a spelling, a
    variable, or `nothing`). `into`: the spelling has no value of its own, it writes the flag of that id. `refused`: the
    parser knows the spelling only to stop on it. `computed`: the default depends on the machine (docs/catalogues.md).
    `hidden`: the release's help text leaves it out.
    """

    versions: str
    spellings: tuple[str, ...]
    type: str = "str"
    nargs: str | int | None = None
    choices: tuple[Any, ...] | None = None
    default: Any = None
    const: Any = None
    required: bool = False
    action: str = "store"
    dest: str | None = None
    deprecated: str | None = None
    into: str | None = None
    refused: bool = False
    computed: bool = False
    hidden: bool = False


class Flag(Strict, frozen=True):
    """One server argument under its canonical id, with its form in each range of releases."""

    id: str
    forms: tuple[FlagForm, ...]


class EnvForm(Strict, frozen=True):
    """How one environment variable is read in a range of releases.

    `type`: bool, int, float, str, list (comma-separated), json. `computed`: the default depends on the machine or on
    another variable. `deprecated`: the release warns about it or moves its value; what to write instead, or `nothing`.
    """

    versions: str
    type: str = "str"
    default: Any = None
    computed: bool = False
    deprecated: str | None = None


class EnvVar(Strict, frozen=True):
    """One environment variable that the engine reads."""

    name: str
    forms: tuple[EnvForm, ...]
    note: str | None = None


class Fix(Strict, frozen=True):
    """One way to remove a finding. Empty edits with `upgrade` or `checkpoint` name what else has to change."""

    set: dict[str, Any] = {}
    env: dict[str, Any] = {}
    unset: tuple[str, ...] = ()
    upgrade: str | None = None
    checkpoint: str | None = None
    only_if: str | None = None
    cost: str | None = None


class Example(Strict, frozen=True):
    """A launch on which a rule must fire (`fail`) or stay silent (`pass`).

    `traits` (`hardware.p2p: false`) go before those of `model` and `hardware`. `todo: true` marks a known gap: the
    example must not yet behave, and the lint says when it does.
    """

    release: str
    args: str = ""
    model: str | None = None
    hardware: str | None = None
    traits: dict[str, Any] = {}
    env: dict[str, str] = {}
    todo: bool = False


class Examples(Strict, frozen=True):
    fail: tuple[Example, ...] = ()
    pass_: tuple[Example, ...] = msgspec.field(default=(), name="pass")


class Case(Strict, frozen=True):
    """One branch of `cases`: the first whose conditions all hold sets its values."""

    set: dict[str, Any]
    when: tuple[str, ...] = ()


class Rule(Strict, frozen=True):
    """One piece of knowledge: when it applies, and what it then sets, requires or forbids.

    See docs/rule-format.md for every key.
    """

    id: str
    title: str
    stage: Stage
    status: Status
    sources: tuple[Source, ...]
    checked: str
    versions: str = ">=0.5.9"
    severity: Severity | None = None
    step: str | tuple[str, ...] | None = None
    order: int = 50
    problem: str | None = None
    let: dict[str, str] = {}
    when: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    set: dict[str, Any] = {}
    cases: tuple[Case, ...] = ()
    report: Literal["given", "change"] = "given"
    leaves_open: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    message: str = ""
    fix: tuple[Fix, ...] = ()
    examples: Examples = Examples()
    withdrawn: str | None = None


class Steps(Strict, frozen=True):
    """The order in which a range of releases resolves and checks (generated by tools/write_stages.py)."""

    versions: str
    steps: tuple[str, ...]


class TableForm(Strict, frozen=True):
    """One table's content in a range of releases."""

    versions: str
    value: Any
    sources: tuple[Source, ...] = ()


class Table(Strict, frozen=True):
    """A named list or map that rules use as `@name`."""

    id: str
    description: str
    forms: tuple[TableForm, ...]


class Traits(Strict, frozen=True):
    """A catalogue entry: a model or a GPU with its traits, each group of traits with a source.

    `rare`: a GPU that a machine which nobody named is not taken for.
    """

    id: str
    traits: dict[str, Any]
    sources: tuple[Source, ...]
    aliases: tuple[str, ...] = ()
    hub_ids: tuple[str, ...] = ()
    family: str | None = None
    rare: bool = False


class TraitForm(Strict, frozen=True):
    """What a trait means: its type, unit, and the values it can take where they are few.

    `of: format`: it belongs to one checkpoint's format, not to the shape that all formats of a model share.
    """

    name: str
    type: str
    description: str
    of: Literal["format"] | None = None
    unit: str | None = None
    domain: tuple[Any, ...] | None = None


class FormatWords(Strict, frozen=True):
    """Words by which names of checkpoints say the format of the weights, and what may stand before and after them."""

    words: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Evidence(Strict, frozen=True):
    """One launch that ran, as its source gives it: a test of the engine, a cookbook, a benchmark, a vendor's page.

    `args` are those of the release, without what `Compare` calls incidental. `dated`: the release was worked out from
    the date and the spellings of the source, which names none.
    """

    id: str
    kind: Literal["ci", "cookbook", "benchmark", "docs"]
    release: str
    model: str
    hardware: str
    args: str
    source: Source
    checked: str
    env: dict[str, str] = {}
    dated: bool = False
    note: str | None = None


class Compare(Strict, frozen=True):
    """What counts when a launch is held against evidence: flags by id, variables as `env.NAME`."""

    incidental: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    same: dict[str, dict[str, Any]] = {}


class Fact(msgspec.Struct, frozen=True):
    """A value and where it comes from: given, default, a rule's id, trait, assumed, unknown."""

    name: str
    value: Any
    origin: str


class Span(msgspec.Struct, frozen=True, gc=False):
    """Where something stands in the command text: offsets in characters, end exclusive."""

    start: int
    end: int


class Finding(msgspec.Struct, frozen=True):
    """A rule that fired. Plain data: checks never format, renderers never decide."""

    rule: str
    severity: Severity
    stage: Stage
    status: Known
    title: str
    message: str
    flags: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    because: tuple[Fact, ...] = ()
    conditional_on: tuple[str, ...] = ()
    after: str | None = None
    span: Span | None = None
    fixes: tuple[Fix, ...] = ()
    sources: tuple[Source, ...] = ()
