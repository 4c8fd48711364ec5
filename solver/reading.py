"""Arguments and one release's flags -> what argparse would store, and every problem it (and its user) would have.

argparse stops at its first error; here reading goes on. A value that was refused is left out of `given`; a flag that is
misspelled with underscores is read as the flag it means.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from solver.config_file import merge_config
from solver.expansion import Word
from solver.facts import make_room
from solver.options import Index, Option, count_values, dest_of, index, takes_no_value
from solver.problems import REFUSALS, Problem
from solver.records import FlagForm, Span
from solver.serving import read_serve
from solver.values import adapter, convert, expected

__all__ = ["REFUSALS", "Problem", "Reading", "read_flags"]


PLAIN = (str, int, float, bool)
"""Types of values that several readings may share."""


class Reading(msgspec.Struct, frozen=True):
    """What a command gives: typed values by canonical id, where they stand, and how the flag was typed."""

    given: dict[str, Any]
    spans: dict[str, Span]
    spelled: dict[str, str]
    unknown: tuple[str, ...]
    problems: tuple[Problem, ...]


def read_flags(
    words: Sequence[Word],
    flags: Mapping[str, FlagForm],
    *,
    serve: bool = False,
    features: Collection[str] = (),
    read_file: Callable[[str], str] | None = None,
    known: Index | None = None,
) -> Reading:
    """Read the arguments as the release's parser does. `flags`: canonical id -> its form in this release.

    `serve`: the entry point is `sglang serve`. `features` of the release, data like all engine knowledge:
    `serve-positional-model`, `serve-model-type`, `serve-model-alias` (see solver/serving.py), `config-switches`,
    `config-mappings`, `config-spellings` (see solver/config_file.py). `read_file` opens a `--config` file; without it
    what the file gives is unknown. `known`: the look-up tables of `flags`, where they are at hand.
    """
    reader = _Reader(flags, known or index(flags))
    if serve:
        words, found = read_serve(words, features)
        reader.problems += found
    if "--config" in [word.text for word in words]:
        reader.file = next((after.span for word, after in pairwise(words) if word.text == "--config"), None)
        words, found = merge_config(words, flags, read_file, features)
        reader.problems += found
    reader.read(words)
    return reader.finish()


class Settled(NamedTuple):
    """What a flag with certain words after it stores, and how many of them it takes."""

    target: str
    seen: frozenset[str]
    spelled: str
    value: Any
    taken: int


class _Reader:
    """Goes through the arguments once and collects."""

    def __init__(self, flags: Mapping[str, FlagForm], known: Index) -> None:
        self.flags = flags
        self.index = known
        self.seen: set[str] = set()
        self.values: dict[str, list[Any]] = {}
        self.origins: dict[str, Span | None] = {}
        self.spans: dict[str, Span] = {}
        self.spelled: dict[str, str] = {}
        self.unknown: dict[str, None] = {}
        self.problems: list[Problem] = []
        self.file: Span | None = None  # where `--config FILE` stands: what it gives may be given again

    def read(self, words: Sequence[Word]) -> None:
        options = self._classify(words)
        at, count = 0, len(words)
        while at < count:
            option = options[at]
            following = at + 1
            while following < count and options[following] is None and words[following].text != "--":
                following += 1
            if option is None:
                self._stray(words[at])
                at += 1
            else:
                at += 1 + self._again(words[at], option, words[at + 1 : following])

    def _classify(self, words: Sequence[Word]) -> list[Option | None]:
        """The option that each word names; after `--` nothing is one."""
        options: list[Option | None] = []
        for word in words:
            text = word.text
            if text == "--":
                break
            options.append(self.index.find(text) if text.startswith("-") else None)
        return options + [None] * (len(words) - len(options))

    def _stray(self, word: Word) -> None:
        if word.unknown:
            self._problem("unknown-words", None, word.text, [word])
        elif word.text[:1].isspace():
            self._problem("blank-after-backslash", None, word.text, [word])
        elif not any(
            problem.kind == "blank-after-backslash" for problem in self.problems
        ):  # else it is the same mistake
            self._problem("unexpected-value", None, word.text, [word], spelled="")

    def _again(self, word: Word, option: Option, following: Sequence[Word]) -> int:
        """The same as `_option`, looked up where the flag was read before with the same words after it."""
        texts: tuple[str, ...] = (word.text,)
        unknown = word.unknown
        for value_word in following:
            texts += (value_word.text,)
            unknown = unknown or value_word.unknown
        kept = self.index.settled
        if texts not in kept:
            make_room(kept)
            kept[texts] = self._settled(option, texts)
        settled: Settled | None = kept[texts]
        if settled is None or settled.target in self.values or unknown:
            return self._option(word, option, following)
        target, seen, spelled, value, taken = settled
        self.seen |= seen
        self.spelled[target] = spelled
        self.unknown.pop(target, None)
        self.values[target] = [value]
        start = self.origins[target] = word.span
        end = following[taken - 1].span if taken else start
        if start and end:
            self.spans[target] = Span(start.start, end.end)
        return taken

    def _settled(self, option: Option, texts: tuple[str, ...]) -> Settled | None:
        """What these words store; None where they do not store just one plain value, or are not faultless."""
        alone = _Reader(self.flags, self.index)
        word, *following = map(Word, texts)
        taken = alone._option(word, option, following)
        [(target, values)] = alone.values.items() if len(alone.values) == 1 else [("", [None])]
        if alone.problems or not target or type(values[-1]) not in PLAIN:
            return None
        return Settled(target, frozenset(alone.seen), alone.spelled[target], values[-1], taken)

    def _option(self, word: Word, option: Option, following: Sequence[Word]) -> int:
        """Read one option; how many of the words that follow are its own."""
        name = word.text.partition("=")[0]
        if not option.spelling and not option.candidates and word.unknown and ("$" in name or "`" in name):
            self._problem("unknown-words", None, word.text, [word])
            return 0
        if not option.spelling and (meant := self._dashed(option, name)):
            flag = self.index.spellings[meant.spelling]
            self._problem("underscore-spelling", flag, name, [word], instead=meant.spelling)
            option = meant
        if not option.spelling:
            return self._unread(word, option, name, following)
        flag = self.index.spellings[option.spelling]
        if flag == "help" and flag not in self.flags:
            self._problem("help", None, word.text, [word])
            return 0
        return self._known(flag, word, option, following)

    def _dashed(self, option: Option, name: str) -> Option | None:
        """The flag meant by a spelling with underscores, where dashes make it one."""
        if "_" not in name or option.candidates:
            return None
        meant = self.index.find(name.replace("_", "-"))
        return Option(meant.spelling, option.value) if meant and meant.spelling.startswith("--") else None

    def _unread(self, word: Word, option: Option, name: str, following: Sequence[Word]) -> int:
        """An option that names no flag, or several; the words after it are taken for its values."""
        values = [w.text for w in following] if option.value is None else [option.value]
        if option.candidates:
            candidates = list(option.candidates)
            self._problem("ambiguous-abbreviation", None, name, [word], candidates=candidates, values=values)
        else:
            self._problem("unknown-flag", None, name, [word], nearest=_nearest(name, self.index), values=values)
        return len(following)

    def _known(self, flag: str, word: Word, option: Option, following: Sequence[Word]) -> int:
        form = self.flags[flag]
        target = self.index.owners.get(dest_of(form), flag)
        spelled = word.text.partition("=")[0]
        self.seen |= {flag, target}
        if flag == "config":  # the one spelling that is read has been taken out before
            self._problem("config-ignored", flag, word.text, [word])
        if form.deprecated:
            kind = "refused-flag" if form.refused else "deprecated-spelling"
            self._problem(kind, flag, spelled, [word], instead=form.deprecated)
        explicit = option.value is not None
        taken = count_values(form, 1 if explicit else len(following))
        if explicit and takes_no_value(form):
            self._problem("unexpected-value", flag, option.value or "", [word], spelled=spelled)
            return 0
        if taken is None or (explicit and taken != 1):
            self._problem("missing-value", flag, spelled, [word], expected=expected(form.type), count=form.nargs or 1)
            return 0 if explicit else len(following)
        values = [Word(option.value or "", word.span, word.unknown)] if explicit else list(following[:taken])
        self._store(flag, target, form, option.spelling, spelled, [word], values)
        return 0 if explicit else taken

    def _store(
        self, flag: str, target: str, form: FlagForm, spelling: str, spelled: str, at: list[Word], values: list[Word]
    ) -> None:
        """Convert, check and keep one flag's values."""
        whole = [*at, *values]
        self.spelled[target] = spelled
        if span := _around(whole):
            self.spans[target] = span
        if any(value.unknown for value in values):
            self.unknown[target] = None
            self.values.pop(target, None)
            return
        typed: list[Any] = []
        for value in values:
            try:
                item = convert(form.type, value.text)
                item = adapter(value.text) if form.action == "LoRAPathAction" else item
            except ValueError:
                self._problem("invalid-type", flag, value.text, [value], spelled=spelled, expected=expected(form.type))
                return
            if form.choices is not None and item not in form.choices:
                self._problem("invalid-choice", flag, value.text, [value], spelled=spelled, choices=list(form.choices))
                return
            typed.append(item)
        if form.action != "DeprecatedAction":  # it warns and stores nothing
            self.unknown.pop(target, None)
            self._keep(target, form, _stored(form, spelling, typed), spelled, whole)

    def _keep(self, target: str, form: FlagForm, value: Any, spelled: str, words: list[Word]) -> None:
        before = self.values.get(target, [])
        kept = self.values[target] = [] if self.file and self.origins.get(target) == self.file else before
        self.origins[target] = words[0].span
        if form.action in ("append", "extend"):
            merged = [*(kept[-1] if kept else []), *(value if form.action == "extend" else [value])]
            self.values[target] = [merged]
            return
        kept.append(value)
        if any(earlier != value for earlier in kept):
            self.problems = [p for p in self.problems if p.kind != "repeated-flag" or p.flag != target]
            self._problem("repeated-flag", target, spelled, words, values=list(kept), kept=value)

    def _problem(self, kind: str, flag: str | None, given: str, words: Sequence[Word], **detail: Any) -> None:
        self.problems.append(Problem(kind, flag, given, detail, _around(words)))

    def finish(self) -> Reading:
        missing = [flag for flag in self.index.required if flag not in self.seen]
        if missing and not any(p.kind in ("unknown-words", "config-unread", "help") for p in self.problems):
            for flag in missing:
                self._problem("missing-required", flag, self.flags[flag].spellings[0], [])
        given = {flag: kept[-1] for flag, kept in self.values.items() if kept}
        return Reading(given, self.spans, self.spelled, tuple(self.unknown), tuple(self.problems))


def _stored(form: FlagForm, spelling: str, typed: list[Any]) -> Any:
    """What the flag's action stores."""
    if form.action == "BooleanOptionalAction":
        return not spelling.startswith("--no-")
    if form.action == "DeprecatedStoreConstAction":
        return form.const
    if takes_no_value(form):
        return form.const if form.const is not None else form.action != "store_false"
    if form.nargs == "?":
        return typed[0] if typed else form.const
    return typed[0] if form.nargs is None else typed


def _around(words: Sequence[Word]) -> Span | None:
    spans = [word.span for word in words if word.span]
    return Span(min([s.start for s in spans]), max([s.end for s in spans])) if spans else None


def _nearest(name: str, known: Index) -> list[str]:
    """Spellings close to an unknown one, best first."""
    if name not in known.near:
        import difflib  # only a wrong command pays for it

        make_room(known.near)
        known.near[name] = difflib.get_close_matches(name.replace("_", "-"), list(known.spellings), n=3, cutoff=0.75)
    return known.near[name]
