"""Build hook: compiles the knowledge into the wheel, so that an installed flagwise never reads YAML to answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SealKnowledge(BuildHookInterface[Any]):
    """Adds knowledge/_compiled to the wheel (not to an editable install, whose YAML changes)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        target = root / "knowledge" / "_compiled"
        if version == "editable":
            return
        sys.path.insert(0, str(root))
        try:
            from solver.store import seal

            seal(root / "knowledge", target)
        finally:
            sys.path.remove(str(root))
        build_data["artifacts"].append("knowledge/_compiled/*")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave the checkout as it was."""
        target = Path(self.root) / "knowledge" / "_compiled"
        for file in target.glob("*"):
            file.unlink()
        if target.is_dir():
            target.rmdir()
