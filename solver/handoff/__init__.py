"""A solved launch -> the text that starts it, in the form of whatever is to start it."""

from __future__ import annotations

FORMS = ("shell", "argv", "json", "config", "docker", "compose", "k8s", "systemd", "slurm")
"""Forms in which `solve --emit` hands a launch over."""
