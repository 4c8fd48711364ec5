"""The shape of the code: imports go one way, heavy libraries have one place, engine knowledge is data."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

SOLVER = Path(__file__).parent.parent / "solver"
HEAVY = {
    "pysat": {"engines/sat.py", "conflict.py"},
    "constraint": {"engines/csp.py"},
    "networkx": {"graph.py"},
    "graphviz": {"render/picture.py"},
    "yaml": {
        *("knowledge.py", "traits/hardware.py", "config_file.py", "constants.py", "learn_files.py"),
        "gate/yaml_nodes.py",
    },
    "typer": {"commandline.py"},
    "rich": set(),
}
"""Library -> the modules that may import it."""


def modules() -> list[Path]:
    return sorted(SOLVER.rglob("*.py"))


def imports(path: Path, everywhere: bool) -> set[str]:
    """The modules a file imports: at its top, or anywhere in it."""
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if everywhere else iter(tree.body)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_imports_go_one_way() -> None:
    """No cycle between modules, counting what is imported at the top of a file."""
    edges: dict[str, set[str]] = defaultdict(set)
    for path in modules():
        name = "solver." + ".".join(path.relative_to(SOLVER).with_suffix("").parts)
        edges[name] = {i for i in imports(path, everywhere=False) if i.startswith("solver.")}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"import cycle: {' -> '.join((*above, name))}"
        if name not in done:
            for target in edges.get(name, ()):
                visit(target, (*above, name))
            done.add(name)

    for name in list(edges):
        visit(name, ())


def test_every_module_has_its_line_in_the_architecture() -> None:
    """Each module, or the folder it lies in, is named in the table; `name*` stands for all that begin so."""
    page = (SOLVER.parent / "docs" / "architecture.md").read_text()
    named = re.findall(r"`([a-z_/]+\*?)`", page)
    for path in modules():
        module = path.relative_to(SOLVER).with_suffix("")
        names = {str(module), module.name, f"{module.parts[0]}/"}
        is_named = any(n in names or (n.endswith("*") and module.name.startswith(n[:-1])) for n in named)
        assert is_named or module.name == "__init__", module


@pytest.mark.parametrize("library", sorted(HEAVY))
def test_each_heavy_library_has_its_place(library: str) -> None:
    users = {
        str(p.relative_to(SOLVER))
        for p in modules()
        if any(i.split(".")[0] == library for i in imports(p, everywhere=True))
    }
    assert users <= HEAVY[library]


def test_the_middle_is_pure() -> None:
    """Checking and solving touch neither files nor processes nor the terminal."""
    for name in (
        "conditions",
        "facts",
        "pipeline",
        "check",
        "findings",
        "symbolic",
        "constraints",
        "goals",
        "reasons",
        "conflict",
        "answer",
    ):
        found = imports(SOLVER / f"{name}.py", everywhere=True)
        assert not found & {"os", "sys", "pathlib", "subprocess", "shutil", "io", "socket"}, name


def test_no_flag_is_named_in_the_middle() -> None:
    """Engine knowledge is data: no flag spelling and no rule id stands in the modules that reason."""
    for name in ("conditions", "pipeline", "check", "findings", "symbolic", "constraints", "goals", "answer"):
        text = (SOLVER / f"{name}.py").read_text()
        strings = [
            n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and isinstance(n.value, str)
        ]
        assert not [s for s in strings if s.startswith("--") and s != "--"], name


def test_nothing_is_evaluated_or_handed_to_a_shell() -> None:
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                assert called not in ("eval", "exec", "system", "popen"), path
                assert not any(k.arg == "shell" for k in node.keywords), path
