"""A finding's fix and its launch in a file -> the edits that make it there.

Errors: Unmendable, with the reason, where the fix changes something that is not written in the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from solver.compiled import Program
from solver.expansion import Word
from solver.gate.edits import Edit, Editor, Unmendable
from solver.gate.found import Found
from solver.gate.judge import Judged, env_place
from solver.handoff.command import flag_words
from solver.options import count_values, find_option
from solver.quoting import quote
from solver.records import Finding, Fix


class Occurrence(msgspec.Struct, frozen=True):
    """One flag as it stands in a launch: its canonical id (None: unknown), how it is spelled, and its words."""

    flag: str | None
    spelled: str
    name: int
    values: tuple[int, ...]

    @property
    def words(self) -> tuple[int, ...]:
        return (self.name, *self.values)


def occurrences(words: Sequence[Word], program: Program) -> list[Occurrence]:
    """The flags of a launch in order, as the release's parser takes their values."""
    spellings = program.options.spellings
    options = [find_option(word.text, spellings) for word in words]
    found: list[Occurrence] = []
    for index, option in enumerate(options):
        if option is None:
            continue
        end = index + 1
        while end < len(words) and options[end] is None:
            end += 1
        flag = spellings.get(option.spelling)
        dashed = find_option(words[index].text.replace("_", "-"), spellings) if flag is None else None
        flag = flag or (spellings.get(dashed.spelling) if dashed else None)
        following = range(index + 1, end)
        if option.value is not None:
            taken = 0
        elif flag in program.flags:
            taken = count_values(program.flags[flag], len(following)) or 0
        else:
            taken = len(following)
        found.append(Occurrence(flag, words[index].text.partition("=")[0], index, tuple(following[:taken])))
    return found


def edits_of(fix: Fix, found: Found, judged: Judged, text: str) -> list[Edit]:
    """The edits that make a fix in the file. Errors: Unmendable."""
    if fix.upgrade or fix.checkpoint:
        raise Unmendable("it takes another release or checkpoint")
    return _Plan(found, judged, text).edits(fix)


class _Plan:
    """One fix on its way into a file."""

    def __init__(self, found: Found, judged: Judged, text: str) -> None:
        self.found = found
        self.program: Program = judged.context.resolver.program
        self.editor = Editor(found, text)
        self.text = text
        self.given = occurrences(found.launch.words, self.program)
        self.gone: set[int] = set()

    def edits(self, fix: Fix) -> list[Edit]:
        moved = next((n for n in fix.unset if n in self.found.launch.env and n not in self.program.flags), None)
        if moved and len(fix.env) == 1 and not fix.set:
            return self._moved(moved, *fix.env)
        made: list[Edit] = []
        renamed = self._renamed(fix)
        for name in fix.unset:
            if name not in renamed:
                made += self._without(name)
        for flag, value in fix.set.items():
            made += self._with(flag, value, renamed)
        for name, value in fix.env.items():
            made += self._variable(name, str(value))
        if not made:
            raise Unmendable("it changes nothing that is written here")
        return made

    def _renamed(self, fix: Fix) -> dict[str, str]:
        """Spellings that only have to be written otherwise: spelling -> flag."""
        old = [name for name in fix.unset if name.startswith("-")]
        return {old[0]: next(iter(fix.set))} if len(old) == 1 and len(fix.set) == 1 else {}

    def _without(self, name: str) -> list[Edit]:
        if name in self.found.launch.env and name not in self.program.flags:
            raise Unmendable(f"{name} may be read by others; remove it by hand")
        mine = [o for o in self.given if name in (o.flag, o.spelled)]
        self.gone |= {index for occurrence in mine for index in occurrence.words}
        return [edit for occurrence in mine for edit in self.editor.remove(occurrence.words)]

    def _with(self, flag: str, value: Any, renamed: dict[str, str]) -> list[Edit]:
        if value is None:
            return self._without(flag)
        words = flag_words(self.program.flags[flag], value)
        for spelled, target in renamed.items():
            mine = [o for o in self.given if o.spelled == spelled]
            if target == flag and mine:
                return [edit for occurrence in mine for edit in self._respelled(occurrence, words)]
        mine = [o for o in self.given if o.flag == flag]
        if not mine:
            return self.editor.append(words, self._last()) if words else []
        if not words:
            return self._without(flag)
        return self._rewritten(mine[-1], words)

    def _respelled(self, occurrence: Occurrence, words: list[str]) -> list[Edit]:
        """Another name; another value only where the new flag takes one that the old one did not say."""
        text = self.found.launch.words[occurrence.name].text
        values = [self.found.launch.words[i].text for i in occurrence.values] or text.partition("=")[2:]
        values = [value for value in values if value]
        if len(values) == len(words) - 1:
            return self.editor.rename(occurrence.name, occurrence.spelled, words[0]) if words else []
        return self._replaced(occurrence, words)

    def _rewritten(self, occurrence: Occurrence, words: list[str]) -> list[Edit]:
        """Another value under the spelling that stands there."""
        text = self.found.launch.words[occurrence.name].text
        if "=" in text and len(words) == 2:
            return self.editor.revalue(occurrence.name, f"{occurrence.spelled}={words[1]}")
        if len(occurrence.values) == len(words) - 1:
            edits = []
            for index, value in zip(occurrence.values, words[1:], strict=True):
                if self.found.launch.words[index].text != value:
                    edits += self.editor.revalue(index, value)
            return edits
        return self._replaced(occurrence, words)

    def _replaced(self, occurrence: Occurrence, words: list[str]) -> list[Edit]:
        """The first word is rewritten, the others come after it, its old values go."""
        if not words:
            return self._without(occurrence.spelled)
        kept = self.editor.revalue(occurrence.name, words[0])
        more = self.editor.append(words[1:], occurrence.name) if len(words) > 1 else []
        return [*kept, *more, *(self.editor.remove(occurrence.values) if occurrence.values else [])]

    def _last(self) -> int | None:
        """The last word of the launch that stays and is written out."""
        for index in range(len(self.found.launch.words) - 1, -1, -1):
            if index not in self.gone and self.found.words[index] is not None:
                return index
        return None

    def _moved(self, old: str, new: str) -> list[Edit]:
        """A variable under another name."""
        place = env_place(old, self.found)
        at = self.text.find(old, place.start, place.end) if place else -1
        if at < 0:
            raise Unmendable(f"{old} is set where it cannot be changed")
        return [Edit(at, at + len(old), new)]

    def _variable(self, name: str, value: str) -> list[Edit]:
        if name in self.found.launch.env:
            place = env_place(name, self.found)
            old = self.found.launch.env[name]
            at = self.text.rfind(old, place.start, place.end) if place and old else -1
            if at < 0 or place is None or old is None or at + len(old) < place.end - 1:
                raise Unmendable(f"{name} is set where it cannot be changed")
            return [Edit(at, at + len(old), value)]
        slot = self.found.slot
        if slot is None:
            raise Unmendable(f"there is no place for {name}={value}: set it by hand")
        shell = quote(value) if slot.text.endswith(" ") else value
        text = slot.text.replace("{value}", shell).replace("{name: {name}", f"{{name: {name}").replace("{name}", name)
        return [Edit(slot.at, slot.at, text)]


def fixes_for(finding: Finding, judged: Judged) -> list[Fix]:
    """The fixes of a finding that change the command; a flag of which the engine takes nothing can go."""
    fixes = [fix for fix in finding.fixes if not fix.upgrade and not fix.checkpoint]
    for problem in judged.context.problems:
        if problem.detail.get("instead") == "nothing" and problem.flag and problem.span == finding.span:
            fixes.append(Fix(unset=(problem.given,)))
        elif problem.kind == "env-deprecated" and finding.env == (problem.given,):
            instead, value = problem.detail.get("instead"), judged.context.facts.env.get(problem.given)
            if instead in judged.context.resolver.program.env and value is not None:
                fixes.append(Fix(env={instead: value}, unset=(problem.given,)))
    return fixes
