"""Output of nvidia-smi and its kin in, traits of the machine out; the texts here are written for the tests."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solver.errors import RequestError
from solver.knowledge import load
from solver.traits.machine import read_machine
from tests.conftest import ROOT, SHARED, Run

CATALOGUE = load(ROOT / "knowledge").hardware

SWITCHES = """
someone@box:~$ nvidia-smi topo -m
        GPU0    GPU1    GPU2    GPU3    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      PIX     PXB     SYS     PIX     0-31            0               N/A
GPU1    PIX      X      PXB     SYS     PIX     0-31            0               N/A
GPU2    PXB     PXB      X      SYS     PXB     0-31            0               N/A
GPU3    SYS     SYS     SYS      X      SYS     32-63           1               N/A
NIC0    PIX     PIX     PXB     SYS      X

Legend:
  X    = Self
  SYS  = PCIe and the link between
  NUMA nodes
someone@box:~$
"""
PAIRS = """
\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV4\tPHB\tPHB\t0-15\t0\t\tN/A
GPU1\tNV4\t X \tPHB\tPHB\t0-15\t0\t\tN/A
GPU2\tPHB\tPHB\t X \tNV4\t0-15\t0\t\tN/A
GPU3\tPHB\tPHB\tNV4\t X \t0-15\t0\t\tN/A
"""
QUERY = """index, name, memory.total [MiB], compute_cap, driver_version
0, NVIDIA GeForce RTX 5090, 32607 MiB, 12.0, 580.95.05
1, NVIDIA GeForce RTX 4090, 24564 MiB, 8.9, 580.95.05
"""
TABLE = """
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
|   0  NVIDIA RTX PRO 6000 Blac...    On  |   00000000:01:00.0 Off |                    0 |
| 30%   34C    P8             11W /  300W |       4MiB /  97887MiB |      0%      Default |
|   1  NVIDIA RTX PRO 6000 Blac...    On  |   00000000:21:00.0 Off |                    0 |
| 30%   33C    P8             12W /  300W |       4MiB /  97887MiB |      0%      Default |
"""
ROCM = """
GPU[0]		: Card Series: 		AMD Instinct MI300X OAM
GPU[0]		: GFX Version: 		gfx942
GPU[1]		: Card Series: 		AMD Instinct MI300X OAM
GPU[1]		: GFX Version: 		gfx942
GPU[0]		: VRAM Total Memory (B): 206141652992
GPU[1]		: VRAM Total Memory (B): 206141652992
======================= Link Type between two GPUs =======================
       GPU0         GPU1
GPU0   0            XGMI
GPU1   XGMI         0
"""


def read(text: str) -> dict[str, Any]:
    machine = read_machine(text, CATALOGUE, "text")
    assert machine is not None
    assert machine.traits.keys() == machine.origins.keys()
    return machine.traits


def test_switches_numa_sides_and_paths_are_read_between_prompts_and_legend() -> None:
    traits = read(SWITCHES)
    assert (traits["gpus"], traits["link"], traits["path"]) == (4, "pcie", "sys")
    assert traits["pcie_switches"] == [[0, 1]] and traits["pcie_switch_trees"] == [[0, 1, 2]]
    assert traits["numa_groups"] == [[0, 1, 2], [3]] and traits["p2p"] is None


def test_nvlink_pairs_are_groups_but_no_link_of_the_machine() -> None:
    traits = read(PAIRS)
    assert traits["link"] == "pcie" and traits["fast_groups"] == [[0, 1], [2, 3]]
    assert read(PAIRS.replace("PHB", "NV4"))["link"] == "nvlink"


def test_a_mesh_lets_peers_read_unless_a_matrix_says_otherwise() -> None:
    mesh = "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n"
    assert read(mesh)["p2p"] is True
    assert read(mesh + "\n \tGPU0\tGPU1\n GPU0\tX\tTNS\n GPU1\tTNS\tX\n")["p2p"] is False


def test_support_of_atomics_says_nothing_of_reading() -> None:
    atomics = "$ nvidia-smi topo -p2p a\n \tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n"
    assert read(PAIRS + atomics)["p2p"] is None
    assert read(PAIRS + atomics.replace("-p2p a", "-p2p r"))["p2p"] is False


def test_broken_lines_are_joined() -> None:
    broken = SWITCHES.replace("    NIC0    CPU", "\nNIC0    CPU").replace(
        "     SYS     PIX     0", "\nSYS     PIX     0"
    )
    assert read(broken) == read(SWITCHES)


def test_cut_rows_are_said_and_the_rest_is_used() -> None:
    machine = read_machine(PAIRS[: PAIRS.index("GPU2\tPHB")], CATALOGUE, "text")
    assert machine is not None and machine.traits["gpus"] == 4 and machine.traits["link"] == "pcie"
    assert "GPU2, GPU3 are cut" in machine.notes[0]


def test_the_topology_goes_before_the_catalogue() -> None:
    cards = "GPU 0: NVIDIA H200 (UUID: GPU-0)\nGPU 1: NVIDIA H200 (UUID: GPU-1)\n"
    assert read(cards)["link"] == "nvlink"
    assert read(cards + "\n\tGPU0\tGPU1\nGPU0\t X \tNODE\nGPU1\tNODE\t X \n")["link"] == "pcie"


def test_different_cards_give_what_fits_on_each() -> None:
    traits = read(QUERY)
    assert traits["mixed"] and traits["gpu"] is None and traits["sm"] == 89
    assert (traits["memory_mib"], traits["memory_mib_largest"], traits["driver"]) == (24564, 32607, "580.95.05")


def test_a_cut_name_is_told_by_memory_and_power() -> None:
    traits = read(TABLE)
    assert (traits["gpu"], traits["gpus"], traits["cuda"]) == ("rtx-pro-6000-maxq", 2, "13.0")
    assert read(TABLE.replace("300W", "600W"))["gpu"] == "rtx-pro-6000-server"
    assert read(TABLE.replace("300W", "450W"))["sm"] == 120


def test_what_the_machine_says_goes_before_what_the_catalogue_assumes() -> None:
    assert read(TABLE.replace("CUDA Version: 13.0", "CUDA Version: 12.8"))["cuda"] == "12.8"


def test_an_unknown_card_has_what_the_text_says() -> None:
    traits = read("name, memory.total [MiB], compute_cap\nNVIDIA RTX 5880 Ada Generation, 49140 MiB, 8.9\n")
    assert (traits["sm"], traits["memory_mib"], traits["vendor"], traits["gpu"]) == (89, 49140, "nvidia", None)


def test_memory_that_is_not_said_is_the_catalogues() -> None:
    assert read("index, name, memory.total [MiB]\n0, NVIDIA GB10, [N/A]\n")["memory_mib"] > 2**16


def test_columns_follow_the_query_where_there_is_no_header() -> None:
    text = "# nvidia-smi --query-gpu=memory.total,name --format=csv,noheader,nounits\n81559, NVIDIA H100 80GB HBM3\n"
    assert (read(text)["gpu"], read(text)["memory_mib"]) == ("h100-sxm", 81559)


REPORT = """
Python: 3.12.3 (main)
GPU 0,1: NVIDIA GeForce RTX 4090
GPU 0,1 Compute Capability: 8.9
CUDA Driver Version: 550.54.15
NVIDIA Topology: 	GPU0	GPU1	CPU Affinity	NUMA Affinity	GPU NUMA ID
GPU0	 X 	PHB	0-31	0		N/A
GPU1	PHB	 X 	0-31	0		N/A

Hypervisor vendor: KVM
"""


def test_the_engines_own_environment_report_is_read() -> None:
    traits = read(REPORT)
    assert (traits["id"], traits["sm"], traits["driver"], traits["path"]) == ("2xrtx-4090", 89, "550.54.15", "phb")


def test_parts_of_a_divided_card_are_no_cards() -> None:
    text = "GPU 0: NVIDIA A30 (UUID: GPU-0)\n  MIG 1g.6gb     Device  0: (UUID: MIG-0)\n"
    machine = read_machine(text, CATALOGUE, "text")
    assert machine is not None and machine.traits["gpus"] == 1 and "MIG" in machine.notes[0]


def test_rocm_smi_is_read() -> None:
    traits = read(ROCM)
    assert (traits["vendor"], traits["gpu"], traits["gpus"], traits["link"]) == ("amd", "mi300x", 2, "xgmi")
    assert traits["memory_mib"] == 206141652992 // 2**20


@pytest.mark.parametrize("text", [SWITCHES, PAIRS, QUERY, TABLE, ROCM])
def test_text_that_ends_anywhere_is_read_as_far_as_it_goes(text: str) -> None:
    for end in range(0, len(text), 7):
        machine = read_machine(text[:end], CATALOGUE, "text")
        assert machine is None or machine.traits.get("gpus", 1) > 0


@pytest.mark.parametrize("text", ["", "hello, world\n", "NVIDIA GPUs, they said, are dear\n", "X = Self\nGPU0 X PIX\n"])
def test_text_without_gpus_is_no_machine(text: str) -> None:
    assert read_machine(text, CATALOGUE, "text") is None


def test_a_file_of_output_is_a_machine_for_every_verb(flagwise: Callable[..., Run], tmp_path: Path) -> None:
    path = tmp_path / "smi.txt"
    path.write_text(TABLE + SWITCHES.replace("GPU2    PXB", "GPU2    "))
    run = flagwise("inspect", "hardware", str(path))
    assert run.status == 0 and "rtx-pro-6000-maxq" in run.out and str(path) in run.out
    path.write_text("nothing of the kind\n")
    run = flagwise("validate", "--hardware", str(path), "python -m sglang.launch_server --model-path x")
    assert (run.status, run.err.count("\n")) == (2, 1) and "no GPU found" in run.err


TOOL = """#!/bin/sh
case "$*" in
  *query-gpu*) printf 'index, name, memory.total [MiB]\\n0, NVIDIA L4, 23034 MiB\\n1, NVIDIA L4, 23034 MiB\\n' ;;
  "topo -m") printf '\\tGPU0\\tGPU1\\nGPU0\\t X \\tNODE\\nGPU1\\tNODE\\t X \\n' ;;
  *) echo "not supported"; exit 2 ;;
esac
"""


def test_this_machine_is_asked(flagwise: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    run = flagwise("inspect", "hardware", "auto", "--format", "json")
    assert run.status == 2 and "neither nvidia-smi nor rocm-smi" in json.loads(run.out)["error"]
    tool = tmp_path / "nvidia-smi"
    tool.write_text(TOOL)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    traits = json.loads(flagwise("inspect", "hardware", "auto", "--format", "json").out)["hardware"]
    assert (traits["id"], traits["path"]) == ("2xl4", "node")
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert "cannot reach its driver" in flagwise("inspect", "hardware", "auto").err


def test_a_tool_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from solver.traits import live

    monkeypatch.setattr(live, "TIMEOUT_S", 0.2)
    with pytest.raises(RequestError, match="gave no answer"):
        live.answer(("sleep", "5"))


# ------------------------------------------------- real output, beside the repository

TOPO = SHARED / "facts" / "topo"
FULL, PCIE = ("nvlink", True), ("pcie", None)
#: File -> GPUs, link, whether peers may read, NUMA nodes, GPUs behind one switch, NVLink groups; as notes.json says.
READINGS: dict[str, tuple[int, str | None, bool | None, int | None, list[list[int]], list[list[int]]]] = {
    "pro6000_2_phb": (2, *PCIE, 1, [], []),
    "rtx5090_2_phb_gns": (2, *PCIE, 1, [], []),
    "rtx5090_2_p2p_gns": (2, None, False, None, [], []),
    "gpu2_node_p2p_ns": (2, "pcie", False, 1, [], []),
    "mixed_5gpu_5090_4090": (5, *PCIE, 2, [], []),
    "rtx3090_2_sys_odd": (2, *PCIE, 2, [], []),
    "rtx3090_4_nv4_pairs": (4, *PCIE, 1, [], [[0, 2], [1, 3]]),
    "mixed_4gpu_phb": (4, *PCIE, 1, [], []),
    "hgx_8_nv18_8nic": (8, *FULL, 2, [], [[*range(8)]]),
    "gb200_4_nv18": (4, *FULL, None, [], [[*range(4)]]),
    "a100_4_nv12_26nic_header": (4, *FULL, None, [], [[*range(4)]]),
    "h800_8_nv8_partial": (8, *FULL, None, [], [[*range(8)]]),
    "rtx2080ti_10_mixed_partial": (10, *PCIE, 2, [[0, 1, 2, 3, 4]], [[0, 9], [1, 3], [2, 4]]),
    "l40s_4_nic": (4, *PCIE, 2, [], []),
    "rtx5090_1_nic": (1, None, None, 1, [], []),
    "rtxpro6000_8_turin_direct_nic": (8, *PCIE, 2, [], []),
    "rtxpro6000_8_asus_broadcom": (8, *PCIE, 2, [[0, 1], [2, 3], [4, 5], [6, 7]], []),
    "rtxpro6000_8_wrx90_2switch_flat": (8, *PCIE, 1, [[0, 1, 2, 3], [4, 5, 6, 7]], []),
    "rtxpro6000_8_wrx90_microchip_3switch": (8, *PCIE, 1, [[0, 1], [2, 3], [4, 5], [6, 7]], []),
    "topology_md_0": (4, *PCIE, 1, [], []),
    "topology_md_1": (8, *PCIE, 2, [], []),
    "topology_md_2": (8, *PCIE, 1, [[0, 1, 2, 3], [4, 5, 6, 7]], []),
}


@pytest.mark.skipif(not TOPO.is_dir(), reason="needs the shared folder beside the repository")
def test_real_topologies_are_read_as_their_notes_say() -> None:
    assert READINGS.keys() == json.loads((TOPO / "notes.json").read_text()).keys()
    for name, expected in READINGS.items():
        machine = read_machine((TOPO / f"{name}.txt").read_text(), CATALOGUE, name)
        assert machine is not None, name
        traits = machine.traits
        switches, fast = traits.get("pcie_switches") or [], traits.get("fast_groups") or []
        found = (traits["gpus"], traits.get("link"), traits.get("p2p"), traits.get("numa_nodes"), switches, fast)
        assert found == expected, name
        assert bool(machine.notes) == (name.endswith("partial") or name[:5] in ("gb200", "a100_")), name


@pytest.mark.skipif(not TOPO.is_dir(), reason="needs the shared folder beside the repository")
def test_real_listings_are_read_as_their_notes_say() -> None:
    smi = TOPO / "smi"
    unified = read((smi / "gb10_query_csv.csv").read_text())
    assert unified["gpu"] == "gb10" and unified["memory_gib"] > 100
    two = read((smi / "mixed_query_csv.csv").read_text())
    assert two["mixed"] and (two["gpus"], two["sm"], two["driver"]) == (2, 70, "570.86.15")
    assert read((smi / "rtx2080_query_noheader_nounits.csv").read_text())["name"] == "GeForce RTX 2080"
    asked = "".join((smi / f"rtxpro6000_8_query_noheader_nounits.{end}").read_text() + "\n" for end in ("cmd", "csv"))
    eight = read(asked)
    assert (eight["id"], eight["pcie_gen"], eight["pcie_width"]) == ("8xrtx-pro-6000-server", 5, 16)
    assert read((smi / "nvidia_smi_L.txt").read_text())["names"] == ["NVIDIA TITAN V", "NVIDIA RTX 5880 Ada Generation"]
    head = read_machine((smi / "table_headers.txt").read_text(), CATALOGUE, "head")
    assert head is not None and (head.traits["driver"], head.traits["cuda"]) == ("580.126.20", "13.0")
