"""Rules and a release's package -> for every symbol that a rule cites: is it still there, and is it still the same.

A symbol's fingerprint is a hash of its syntax tree without comments, docstrings and places, so that it does not depend
on layout. Those of the cited releases are kept in knowledge/sglang/fingerprints.yaml: comparing a new release needs its
own wheel only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from packaging.version import Version

from solver.knowledge import holds
from solver.learn_source import Package
from solver.records import Rule, Source

State = Literal["same", "changed", "symbol gone", "file gone", "not fingerprinted"]
Fingerprints = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Release -> file -> symbol -> fingerprint."""


class Citation(msgspec.Struct, frozen=True):
    """One source of one rule, seen from another release."""

    rule: str
    source: Source
    state: State


def check_citations(rules: Iterable[Rule], package: Package, known: Fingerprints) -> Iterator[Citation]:
    """Every rule that holds in the package's release, with the state of its newest cited file or symbol."""
    files: dict[str, ast.Module | None] = {}
    for rule in rules:
        if rule.withdrawn or not holds(rule.versions, package.version):
            continue
        for source in _newest(rule.sources, package.version):
            assert source.file is not None
            if source.file not in files:
                files[source.file] = _tree(package, source.file)
            yield Citation(rule.id, source, _state(source, files[source.file], known))


def _newest(sources: Iterable[Source], version: str) -> list[Source]:
    """The sources of the newest cited release that is not after this one."""
    usable = [s for s in sources if s.release and s.file and Version(s.release) <= Version(version)]
    newest = max((Version(s.release) for s in usable if s.release), default=None)
    return [s for s in usable if s.release and Version(s.release) == newest]


def _tree(package: Package, file: str) -> ast.Module | None:
    if file not in package.names or not file.endswith(".py"):
        return None
    return ast.parse(package.text(file))


def _state(source: Source, tree: ast.Module | None, known: Fingerprints) -> State:
    if tree is None:
        return "file gone"
    now = fingerprint(tree, source.symbol)
    if now is None:
        return "symbol gone"
    before = known.get(source.release or "", {}).get(source.file or "", {}).get(source.symbol or "")
    if before is None:
        return "not fingerprinted"
    return "same" if now == before else "changed"


def fingerprints(rules: Iterable[Rule], package: Package) -> dict[str, dict[str, str]]:
    """File -> symbol -> fingerprint of all that rules cite of this package's release; what is not there is left out."""
    found: dict[str, dict[str, str]] = {}
    files: dict[str, ast.Module | None] = {}
    for source in (s for r in rules for s in r.sources if s.release == package.version and s.file):
        file = source.file or ""
        if file not in files:
            files[file] = _tree(package, file)
        tree = files[file]
        if tree is not None and (value := fingerprint(tree, source.symbol)) is not None:
            found.setdefault(file, {})[source.symbol or ""] = value
    return {file: dict(sorted(found[file].items())) for file in sorted(found)}


def fingerprint(tree: ast.Module, symbol: str | None) -> str | None:
    """Hash of what a name is bound to: a function, class, constant or annotated field; None where it is absent.

    `Class.method` is looked up inside the class; without a symbol the whole file counts.
    """
    nodes: list[ast.AST] = [tree]
    for part in symbol.split(".") if symbol else ():
        nodes = [n for node in nodes for n in ast.walk(node) if part in _names(n)]
    if not nodes:
        return None
    digest = blake2b(digest_size=6)
    for node in nodes:
        for text in _canonical(node):
            digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def _names(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Assign(targets=targets):
            return tuple(t.id for t in targets if isinstance(t, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            return (name,)
    return ()


def _canonical(node: Any) -> Iterator[str]:
    """A tree as texts that are equal in all Python versions which parse it alike; empty fields are left out."""
    if isinstance(node, list):
        for item in node:
            yield from _canonical(item)
    elif isinstance(node, ast.AST):
        yield type(node).__name__
        for name, value in ast.iter_fields(node):
            if name in ("ctx", "kind", "type_comment", "type_params") or value is None or value == []:
                continue
            yield name
            yield from _canonical(_without_docstring(value) if name == "body" else value)
    else:
        yield repr(node)


def _without_docstring(body: Any) -> Any:
    if isinstance(body, list) and body:
        match body[0]:
            case ast.Expr(value=ast.Constant(value=str())):
                return body[1:]
    return body


def citation_lines(citations: Iterable[Citation]) -> Iterator[str]:
    """What has to be looked at again, one rule and symbol a line, worst first."""
    found = list(citations)
    order: tuple[State, ...] = ("file gone", "symbol gone", "changed", "not fingerprinted")
    same = len({c.rule for c in found} - {c.rule for c in found if c.state != "same"})
    yield f"  rules: {len({c.rule for c in found})} hold here and cite source text, {same} of them unchanged"
    for state in order:
        for item in (c for c in found if c.state == state):
            what = f"{item.source.file} {item.source.symbol or ''}".rstrip()
            yield f"    {state}  {item.rule}: {what} ({item.source.release})"
