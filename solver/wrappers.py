"""The words in front of the engine's entry point -> what of them stays, and the environment they hand on.

Known are `env`, containers (`docker run`, `docker exec`, podman, nerdctl) and shells called with `-c`. Any other
wrapper (nohup, srun, numactl, timeout, ...) is kept as it is and taken to pass the environment on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from solver.expansion import Word

Env = dict[str, str | None]


class Wrapped(NamedTuple):
    """`prefix` without its environment settings; `lost`: variables of the outside that a container does not get."""

    prefix: tuple[str, ...]
    env: Env
    image: str | None = None
    lost: tuple[str, ...] = ()
    inner: int = 0  # index of the word after the innermost container's image


CONTAINERS = frozenset(("docker", "podman", "nerdctl"))
SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "su"))
_SENDERS = frozenset(("ssh", "tmux", "screen", "eval", "su", "runuser"))
DROPPED = frozenset(("exec", "command", "builtin", "eval"))
_SILENT = frozenset(
    ("echo", "printf", "grep", "egrep", "rg", "pgrep", "pkill", "kill", "which", "man", "ls", "cat", "tail", "sed")
)
# Options of `docker run` and `docker exec` without a value; every other one takes one.
_BARE_LONG = frozenset(
    f"--{name}"
    for names in (
        ("detach", "interactive", "tty", "rm", "init", "privileged", "read-only", "no-healthcheck", "publish-all"),
        ("quiet", "replace", "oom-kill-disable", "sig-proxy", "disable-content-trust", "no-deps", "no-TTY"),
        ("service-ports", "build", "help"),
    )
    for name in names
)
_BARE_SHORT = frozenset("ditqPT")
_VARIABLE = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_PAIR = re.compile(r"[A-Za-z_][\w.-]*=", re.ASCII)
_RUN_MODULE = re.compile(r"-[bBdEiIOPqsSuvx]*m")  # Python's own switches may stand in the same word
_RUN_TEXT = re.compile(r"-[A-Za-z]*c")


def basename(text: str) -> str:
    """`/usr/bin/env` -> `env`."""
    return text.rstrip("/").rsplit("/", 1)[-1] if "/" in text else text


def find_entry(words: Sequence[Word]) -> tuple[int, int, str] | None:
    """Indices of the entry point and of the first argument after it, and which entry point it is."""
    if not words or words[0].text.startswith("-") or basename(words[0].text) in _SILENT:
        return None
    for index, word in enumerate(words):
        text, before = word.text, words[index - 1].text if index else ""
        following = words[index + 1].text if index + 1 < len(words) else ""
        if index > 1 and text == "sglang.launch_server" and _RUN_MODULE.fullmatch(before):
            return index - 1, index + 1, "launch_server"
        if following == "serve" and (basename(text) == "sglang" or text == "sglang.cli.main"):
            return index, index + 2, "serve"
        if text.endswith("launch_server.py") and basename(text) == "launch_server.py" and "router" not in text:
            return index, index + 1, "launch_server"
    return None


def find_sent(words: Sequence[Word]) -> int | None:
    """Index of a command text that is sent elsewhere to be run: `ssh host '…'`, `tmux new '…'`, `eval '…'`."""
    if not any(basename(word.text) in _SENDERS for word in words):
        return None
    return next((i for i, w in enumerate(words) if "sglang" in w.text and len(w.text.split()) > 1), None)


def script_index(texts: Sequence[str]) -> int | None:
    """Index of the word after a shell's `-c`."""
    shell = False
    for index, text in enumerate(texts):
        if shell and _RUN_TEXT.fullmatch(text):
            return index + 1 + (list(texts[index + 1 : index + 2]) == ["--"])
        shell = (basename(text) if "/" in text else text) in SHELLS or (shell and text.startswith("-"))
    return None


def container_verb(texts: Sequence[str]) -> int | None:
    """Index of `run` or `exec` of the last container command."""
    for index in range(len(texts) - 1, -1, -1):
        text = texts[index]
        if text in CONTAINERS or ("/" in text and basename(text) in CONTAINERS):
            return next((i for i in range(index + 1, len(texts)) if texts[i] in ("run", "exec")), None)
    return None


def unwrap(words: Sequence[Word], env: Env) -> Wrapped:
    """Read the environment that the wrappers set, from the outside in."""
    texts = [word.text for word in words]
    kept: list[str] = []
    image: str | None = None
    lost: list[str] = []
    at = inner = 0
    while at < len(words):
        name = basename(texts[at])
        if name == "env" and (at == 0 or _is_env(texts, at)):
            at, env = _env(words, at + 1, env)
        elif name in CONTAINERS and (verb := container_verb(texts[at:])):
            kept += texts[at : at + verb + 1]
            lost += env
            compose = "compose" in texts[at : at + verb] or texts[at + verb] == "exec"
            at, env = _container(words, at + verb + 1, env, kept)
            image = None if compose or at >= len(words) else texts[at]
            kept += texts[at : at + 1]
            at = inner = at + 1
        else:
            kept += () if name in DROPPED and at == 0 else (texts[at],)
            at += 1
    return Wrapped(tuple(kept), env, image, tuple(n for n in lost if n not in env), inner)


def _is_env(texts: Sequence[str], at: int) -> bool:
    following = texts[at + 1] if at + 1 < len(texts) else ""
    return bool(_PAIR.match(following)) or following in ("-i", "-", "-u") or following.startswith("--")


def _pair(word: Word, env: Env, outside: Env | None = None) -> None:
    """Take `NAME=value`; a bare NAME is handed on from the outside."""
    name, equals, value = word.text.partition("=")
    if not _VARIABLE.fullmatch(name):
        return
    if equals:
        env[name] = None if word.unknown else value
    elif outside is not None:
        env[name] = outside.get(name)


def _env(words: Sequence[Word], at: int, env: Env) -> tuple[int, Env]:
    """Read `env`'s options and assignments; the index of the command it starts."""
    env = dict(env)
    while at < len(words):
        text = words[at].text
        if text in ("-i", "-", "--ignore-environment"):
            env.clear()
        elif text in ("-u", "--unset") and at + 1 < len(words):
            at += 1
            env.pop(words[at].text, None)
        elif text.startswith(("-u", "--unset=")):
            env.pop(text.removeprefix("--unset=").removeprefix("-u"), None)
        elif "=" in text and not text.startswith("-"):
            _pair(words[at], env)
        elif not text.startswith("-"):
            break
        at += 1
    return at, env


def _container(words: Sequence[Word], at: int, outside: Env, kept: list[str]) -> tuple[int, Env]:
    """Read a container's options; the index of its image (or container) and the environment inside."""
    env: Env = {}
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        name, value = _option(text)
        taken = 1
        if value is None and name:
            taken = 2
            value = words[at + 1].text if at + 1 < len(words) else ""
        if name in ("-e", "--env"):
            _pair(Word(value or "", unknown=any(w.unknown for w in words[at : at + taken])), env, outside)
        else:
            kept += [word.text for word in words[at : at + taken]]
        at += taken
    return at, env


def _option(text: str) -> tuple[str, str | None]:
    """One container option -> the name that takes a value (else empty), and the value if it is in the same word."""
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        return ("", None) if name in _BARE_LONG else (name, value if equals else None)
    for index, letter in enumerate(text[1:], 1):
        if letter not in _BARE_SHORT:
            return f"-{letter}", text[index + 1 :].removeprefix("=") or None
    return "", None
