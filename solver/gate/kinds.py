"""A file's name and text -> what kind of file it is, and the launches in it."""

from __future__ import annotations

import re

from solver.gate import dockerfile, makefile, markdown, notebook, python, shell_files, systemd, templates
from solver.gate.flag_mappings import FlagNames
from solver.gate.found import Finds, Found, Kind, Unreadable
from solver.gate.manifests import ReadBeside, find_json, find_yaml
from solver.gate.text import Text
from solver.records import Span

MARKS = (b"launch_server", b"sglang", b"model-path", b"model_path", b"SGLANG_")
"""A text without any of these names no launch."""

_SUFFIXES: dict[str, Kind] = {
    **dict.fromkeys(("sh", "bash", "zsh", "ksh"), "shell"),
    **dict.fromkeys(("sbatch", "slurm"), "slurm"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("json", "jsonc"), "json"),
    **dict.fromkeys(("md", "markdown", "mdx"), "markdown"),
    **dict.fromkeys(("service", "container"), "systemd"),
    **dict.fromkeys(("dockerfile", "containerfile"), "dockerfile"),
    **dict.fromkeys(("py", "pyw"), "python"),
    **dict.fromkeys(("ipynb",), "notebook"),
    **dict.fromkeys(("mk", "mak", "make", "just"), "makefile"),
    **dict.fromkeys(("rst",), "restructuredtext"),
}  # fmt: skip
_RECIPES = frozenset(("makefile", "gnumakefile", "justfile", ".justfile"))
TEMPLATES = (".j2", ".jinja", ".jinja2", ".tpl", ".tmpl", ".gotmpl", ".template")
_SHEBANG = re.compile(r"#![^\n]*\b(?:ba|z|k|da)?sh\b")
SHELL_LIKE = frozenset(("shell", "slurm", "systemd", "dockerfile"))
"""Kinds that are rendered where they hold a template's statements; YAML is, where it cannot be read as it stands."""
_STATEMENT = re.compile(r"^[ \t]*\{%.*%\}[ \t]*$", re.M)
_SBATCH = re.compile(r"^#SBATCH\b", re.M)
_DOCKER = re.compile(r"^(?:#[^\n]*\n|ARG [^\n]*\n|\s*\n)*FROM \S+", re.I)
_UNIT = re.compile(r"^\[(?:Unit|Service|Container)\]", re.M)
_COMMENTS = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*")
_YAML = re.compile(r"^(?:---|apiVersion:|kind:|services:|[A-Za-z_-]+:(?:[ ][^\n]*)?\n)", re.M)


def kind_of_name(name: str) -> Kind | None:
    """The kind of file that a name says; None where only the text can tell."""
    base = name.rsplit("/", 1)[-1].lower()
    if base.startswith(("dockerfile", "containerfile")) and not base.endswith((".md", ".sh")):
        return "dockerfile"
    if base in _RECIPES:
        return "makefile"
    if base.endswith(TEMPLATES):
        return kind_of_name(base.rpartition(".")[0])
    return _SUFFIXES.get(base.rpartition(".")[2]) if "." in base else None


def kind_of_text(text: str) -> Kind:
    """The kind of file that a text looks like; shell text where nothing else fits."""
    head = text[:20_000].lstrip("\ufeff")
    if _SHEBANG.match(head):
        return "slurm" if _SBATCH.search(head) else "shell"
    if head.lstrip().startswith(("{", "[")) and not _UNIT.search(head):
        return "json"
    if _DOCKER.match(head):
        return "dockerfile"
    if _UNIT.search(head):
        return "systemd"
    return "yaml" if _YAML.match(head, _COMMENTS.match(head).end()) else "shell"  # type: ignore[union-attr]  # it may be empty


def find_in(source: Text, kind: Kind, flags: FlagNames, read_beside: ReadBeside) -> Finds:
    """The launches in a text of a kind, in the order in which they stand. Errors: Unreadable."""
    try:
        finds = _find(source, kind, flags, read_beside)
    except RecursionError:
        raise Unreadable("nested too deep") from None
    finds.found.sort(key=lambda found: (found.at.start, found.at.end))
    return finds


def _find(source: Text, kind: Kind, flags: FlagNames, read_beside: ReadBeside) -> Finds:
    if "{%" in source.text and kind in SHELL_LIKE and _STATEMENT.search(source.text):
        source = templates.rendered(source)
    match kind:
        case "shell" | "slurm":
            is_job = "#SBATCH" in source.text and _SBATCH.search(source.text)
            finds = shell_files.find_slurm(source) if is_job else shell_files.find(source)
            return _with_documents(finds, source, flags) if "<<" in source.text else finds
        case "dockerfile":
            return dockerfile.find(source)
        case "systemd":
            return systemd.find(source, read_beside)
        case "markdown" | "restructuredtext":
            return markdown.find(source, kind, lambda body, inner: find_in(body, inner, flags, read_beside))
        case "notebook":
            return notebook.find(source, lambda body, inner: find_in(body, inner, flags, read_beside))
        case "makefile":
            return makefile.find(source)
        case "json":
            return find_json(source, flags, read_beside)
        case "python":
            return python.find(source)
    return find_yaml(source, flags, read_beside)


def _with_documents(finds: Finds, source: Text, flags: FlagNames) -> Finds:
    """The launches of a script with those of the files of other kinds that its here-documents hold."""
    for name, body, is_open in shell_files.documents(source):
        kind = kind_of_name(name) or kind_of_text(body.text)
        is_shell = kind in ("shell", "slurm")
        place = body.place(Span(0, len(body.text)))
        if place is None or (is_shell and not (is_open and "\\$" in body.text)):
            continue  # the reader of the script has seen it
        try:
            inside = find_in(shell_files.filled(body, is_shell) if is_open else body, kind, flags, lambda path: None)
        except Unreadable:
            continue
        outside = [f for f in finds.found if not (place.start <= f.at.start and f.at.end <= place.end)]
        finds = Finds([*outside, *inside.found], finds.problems)
    return finds


def launches_of(text: str, kind: Kind, flags: FlagNames | None = None) -> list[Found]:
    """The launches in the text of one file, for whoever wrote it and wants to read it back. Errors: Unreadable.

    `kind` may be `yaml` for compose files, Kubernetes manifests and workflows. `flags` as `flag_names` gives them, to
    recognise configuration files.
    """
    finds = find_in(Text.whole(text), kind, flags or FlagNames(tuple), lambda path: None)
    if finds.problems and not finds.found:
        raise Unreadable(finds.problems[0])
    return finds.found
