"""What can be wrong with a flag or an argument, as plain data for findings."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.records import Span

# Problems with which the launcher stops; the other kinds are worth a word only.
REFUSALS = frozenset(
    (
        "ambiguous-abbreviation",
        "blank-after-backslash",
        "config-refused",
        "fork-flag",
        "help",
        "invalid-choice",
        "invalid-type",
        "missing-required",
        "missing-value",
        "other-release-flag",
        "refused-flag",
        "serve-model-unseen",
        "underscore-spelling",
        "unexpected-value",
        "unknown-flag",
    )
)


class Problem(msgspec.Struct, frozen=True):
    """Something is wrong with one flag or argument.

    `given` is the offending text as typed: the value for `invalid-type`, `invalid-choice` and `unexpected-value`,
    the name of a variable, else the flag. `detail` by kind, as the reader fills it: unknown-flag {nearest, values};
    ambiguous-abbreviation {candidates, values}; missing-value {expected, count}; unexpected-value {spelled};
    invalid-type {spelled, expected}; invalid-choice {spelled, choices}; repeated-flag {values, kept};
    deprecated-spelling, refused-flag, underscore-spelling, serve-model-unseen {instead}; config-refused {reason};
    missing-required, blank-after-backslash, config-unread, config-ignored, unknown-words (arguments that only running
    the command would show) and help {}. solver/unknown.py looks further: renamed-flag {releases, now, write};
    other-release-flag {releases, instead}; fork-flag {fork, url}; invalid-choice gets {elsewhere}; of variables, all
    with {variable: true}: env-not-read {releases, instead}, env-unknown {nearest}, env-deprecated {instead} and
    env-not-exported {}.
    """

    kind: str
    flag: str | None
    given: str
    detail: dict[str, Any] = {}
    span: Span | None = None

    @property
    def refuses(self) -> bool:
        """Whether the launcher stops here."""
        return self.kind in REFUSALS
