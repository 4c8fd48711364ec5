"""Hardware ids, files and the output of the vendors' tools in, traits out."""

from __future__ import annotations

from pathlib import Path

import pytest

from solver.errors import RequestError
from solver.knowledge import load
from solver.traits.hardware import hardware_of, read_hardware_file

KNOWLEDGE = load(Path(__file__).parents[1] / "knowledge")
CATALOGUE = KNOWLEDGE.hardware
NAMES = [name.removeprefix("hardware.") for name in KNOWLEDGE.traits if name.startswith("hardware.")]


def test_count_and_alias_give_the_machine() -> None:
    traits = hardware_of("8xrtx-pro-6000", CATALOGUE).traits
    assert (traits["gpu"], traits["gpus"], traits["sm"], traits["link"]) == ("rtx-pro-6000-server", 8, 120, "pcie")
    assert (traits["memory_mib"], traits["cuda"]) == (97887, "13.0")


def test_a_single_gpu_has_no_link() -> None:
    traits = hardware_of("h100-sxm", CATALOGUE).traits
    assert (traits["gpus"], traits["link"], traits["cuda"]) == (1, None, "12.9")


def test_amd_has_gfx_and_no_sm() -> None:
    traits = hardware_of("8xmi300x", CATALOGUE).traits
    assert (traits["vendor"], traits["sm"], traits["gfx"], traits["link"]) == ("amd", None, "gfx942", "xgmi")
    assert traits["memory_mib"] == 192 * 1024


@pytest.mark.parametrize("name", ["8xrtx-pro-6001", "9000xh1000", "b20"])
def test_an_unknown_gpu_names_the_nearest(name: str) -> None:
    with pytest.raises(RequestError, match="nearest in the catalogue") as caught:
        hardware_of(name, CATALOGUE)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["0xb200", "", "8 x"])
def test_nonsense_is_refused(name: str) -> None:
    with pytest.raises(RequestError):
        hardware_of(name, CATALOGUE)


def test_a_file_overrides_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "box.yaml"
    path.write_text("gpu: rtx-pro-6000\ngpus: 4\ntraits: {driver: 590.10.01, cuda: '13.1'}\n")
    traits = read_hardware_file(path, CATALOGUE).traits
    assert (traits["gpus"], traits["cuda"], traits["driver"], traits["sm"]) == (4, "13.1", "590.10.01", 120)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("gpu: [", "not YAML"),
        ("gpuz: b200\n", "gpuz"),
        ("traits: {memory_gib: 10}\n", "must say vendor"),
        ("gpu: b200\ngpus: 0\n", "at least 1"),
        ("gpu: b2000\n", "nearest"),
        ("gpu: b200\ntraits: {memmory_gib: 10}\n", "unknown trait 'memmory_gib'"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "box.yaml"
    path.write_text(content)
    with pytest.raises(RequestError, match=said) as caught:
        read_hardware_file(path, CATALOGUE, NAMES)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot be read"):
        read_hardware_file(tmp_path / "none.yaml", CATALOGUE)


def test_every_entry_states_known_traits_with_sources() -> None:
    assert len(CATALOGUE) >= 20
    for entry in CATALOGUE.values():
        assert {f"hardware.{name}" for name in entry.traits} <= KNOWLEDGE.traits.keys(), entry.id
        assert entry.sources and "memory_gib" in entry.traits and entry.traits["vendor"] in ("nvidia", "amd")


def test_cuda_follows_the_generation() -> None:
    for entry in CATALOGUE.values():
        sm = entry.traits["sm"]
        assert entry.traits["cuda"] == (None if sm is None else "13.0" if sm >= 100 else "12.9")


def test_a_short_name_says_which_gpu_it_is_taken_for() -> None:
    (note,) = hardware_of("2xh100", CATALOGUE).notes
    assert note == "taken for h100-sxm; there are h100-nvl, h100-pcie as well"
    assert hardware_of("8x NVIDIA H200", CATALOGUE).notes == ()
    assert hardware_of("h100-sxm", CATALOGUE).notes == ()
