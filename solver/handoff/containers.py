"""A job -> a compose file, or a Kubernetes Deployment with its Service."""

from __future__ import annotations

from typing import Any

from solver.handoff.job import Job
from solver.handoff.shell_text import notes
from solver.handoff.yaml_text import yaml_text

NAME = "sglang"


def compose(job: Job) -> str:
    """A compose file of one service. `$` begins a reference in every value of it, so it is doubled."""
    layout = job.tables["container_layout"]
    service: dict[str, Any] = {"image": job.image}
    if job.env:
        service["environment"] = {name: _literal(value) for name, value in job.env.items()}
    service["command"] = [_literal(word) for word in job.argv(layout["python"])]
    service |= {"network_mode": "host", "ipc": "host", "restart": "unless-stopped"}
    service["volumes"] = [
        f"~/.cache/huggingface:{layout['weights']}",
        *({"type": "bind", "source": p, "target": p, "read_only": True} for p in map(_literal, job.paths)),
    ]
    return "\n".join([*notes(job), yaml_text({"services": {NAME: service | _compose_gpus(job)}})])


def _literal(text: str) -> str:
    """A text in which compose and the kubelet replace nothing: for both, two dollars stand for one."""
    return text.replace("$", "$$")


def _compose_gpus(job: Job) -> dict[str, Any]:
    if job.amd:
        return {
            "devices": ["/dev/kfd:/dev/kfd", "/dev/dri:/dev/dri"],
            "group_add": ["video"],
            "cap_add": ["SYS_PTRACE"],
            "security_opt": ["seccomp=unconfined"],
        }
    devices = {"driver": "nvidia", "count": "all" if job.all_gpus else job.gpus, "capabilities": ["gpu"]}
    return {"deploy": {"resources": {"reservations": {"devices": [devices]}}}}


def k8s(job: Job) -> str:
    """A Deployment and a Service.

    A Service reaches no loopback address, so the server is told to listen everywhere unless the launch says where.
    """
    head = [*notes(job), "# Adapt: the volume `weights`, which is lost with the pod; a node selector; replicas."]
    return "\n".join([*head, yaml_text(_deployment(job)), "---", yaml_text(_service(job))])


def _deployment(job: Job) -> dict[str, Any]:
    labels = {"app": NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [_container(job)], "volumes": _volumes(job)},
            },
        },
    }


def _container(job: Job) -> dict[str, Any]:
    layout, address = job.tables["container_layout"], job.tables["server_address"]
    given = {address["host"]: address["everywhere"], **job.given}
    argv = [_literal(word) for word in job.argv(layout["python"], given)]
    scheme = "HTTPS" if job.given.get(address["tls"]) else "HTTP"
    check = {"httpGet": {"path": layout["health"], "port": "http", "scheme": scheme}, "periodSeconds": 10}
    container: dict[str, Any] = {"name": NAME, "image": job.image, "command": argv[:3]}
    if address["host"] not in job.given:
        container["# The Service reaches no loopback address, so the server listens everywhere."] = None
    container["args"] = argv[3:]
    if job.env:
        container["env"] = [{"name": name, "value": _literal(value)} for name, value in job.env.items()]
    return container | {
        "ports": [{"name": "http", "containerPort": job.port}],
        "resources": {"limits": {"amd.com/gpu" if job.amd else "nvidia.com/gpu": job.gpus}},
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "weights", "mountPath": layout["weights"]},
            *({"name": _volume(n), "mountPath": p, "readOnly": True} for n, p in enumerate(job.paths, 1)),
        ],
        "# Loading may take an hour before the pod is given up.": None,
        "startupProbe": {**check, "failureThreshold": 360},
        "readinessProbe": check,
    }


def _volumes(job: Job) -> list[dict[str, Any]]:
    return [
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "weights", "emptyDir": {}},
        *({"name": _volume(n), "hostPath": {"path": p}} for n, p in enumerate(job.paths, 1)),
    ]


def _volume(number: int) -> str:
    return f"given-{number}"


def _service(job: Job) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {
            "selector": {"app": NAME},
            "ports": [{"name": "http", "port": job.port, "targetPort": "http"}],
        },
    }
