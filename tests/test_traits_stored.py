"""Checkpoint directories as they lie on disk: hub cache, links, safetensors headers, damage."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from solver.errors import RequestError
from solver.traits.model import read_checkpoint
from tests.test_traits_model import DENSE, HYBRID, NVFP4, checkpoint

WIDTH = {"F32": 4, "BF16": 2, "F8_E4M3": 1, "F8_E8M0": 1, "U8": 1}
SMALL = DENSE | {"num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 1000, "num_nextn_predict_layers": 1}
TENSORS: dict[str, tuple[str, list[int]]] = {
    "model.embed_tokens.weight": ("BF16", [1000, 64]),
    "model.layers.0.self_attn.q_proj.weight": ("F8_E4M3", [64, 64]),
    "model.layers.0.self_attn.q_proj.weight_scale_inv": ("F32", [1, 1]),
    "model.layers.1.mlp.up_proj.weight": ("F8_E4M3", [64, 128]),
    "model.layers.2.mlp.up_proj.weight": ("BF16", [64, 128]),
    "lm_head.weight": ("BF16", [1000, 64]),
}


def shard(path: Path, tensors: dict[str, tuple[str, list[int]]], short: int = 0) -> None:
    """A safetensors file with zeros for weights, `short` bytes of them missing."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        size = WIDTH[dtype]
        for side in shape:
            size *= side
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    raw = json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(end - short))


def index(folder: Path, files: dict[str, str]) -> None:
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 1}, "weight_map": files})
    )


def test_headers_give_bytes_parameters_and_the_type_of_the_mtp_layer(tmp_path: Path) -> None:
    shard(checkpoint(tmp_path, SMALL | {"quantization_config": {"quant_method": "fp8"}}) / "model.safetensors", TENSORS)
    traits = read_checkpoint(tmp_path)
    stored = 2 * 1000 * 64 * 2 + 64 * 64 + 4 + 64 * 128 + 64 * 128 * 2
    assert traits["weight_gib"] == round(stored / 2**30, 2)
    assert traits["total_params_b"] == round((2 * 1000 * 64 + 64 * 64 + 64 * 128) / 1e9, 2)
    assert (traits["mtp_dtype"], traits["mtp_in_checkpoint"], traits["scale_format"]) == ("bfloat16", True, "float32")


def test_a_declared_mtp_layer_without_weights_is_said(tmp_path: Path) -> None:
    kept = {name: tensor for name, tensor in TENSORS.items() if "layers.2" not in name}
    shard(checkpoint(tmp_path, SMALL) / "model.safetensors", kept)
    assert read_checkpoint(tmp_path)["mtp_in_checkpoint"] is False
    (tmp_path / "model.safetensors").unlink()
    assert read_checkpoint(tmp_path)["mtp_in_checkpoint"] is None


def test_packed_weights_count_twice_and_scales_not_at_all(tmp_path: Path) -> None:
    base = "model.language_model.layers.0.mlp.experts.0.down_proj"
    tensors = {
        f"{base}.weight": ("U8", [40_000, 5_000]),
        f"{base}.weight_scale": ("F8_E4M3", [40_000, 625]),
        "model.language_model.layers.3.self_attn.k_proj.k_scale": ("F32", [1]),
        "mtp.layers.0.mlp.experts.0.up_proj.weight": ("BF16", [64, 64]),
    }
    shard(checkpoint(tmp_path, HYBRID | {"quantization_config": NVFP4}) / "model.safetensors", tensors)
    traits = read_checkpoint(tmp_path)
    assert (traits["total_params_b"], traits["active_params_b"]) == (0.4, round(0.4 * 10 / 512, 2))
    assert traits["expert_gib"] == round((40_000 * 5_000 + 40_000 * 625) / 2**30, 2)
    assert traits["kv_scales_calibrated"] and traits["mtp_dtype"] == "bfloat16"


def test_scales_of_one_byte_exponents_are_ue8m0(tmp_path: Path) -> None:
    tensors = {"model.layers.0.self_attn.q_proj.weight_scale_inv": ("F8_E8M0", [1, 1])}
    quantized = SMALL | {"quantization_config": {"quant_method": "fp8"}}
    assert read_checkpoint(checkpoint(tmp_path, quantized))["scale_format"] == "float32"
    shard(tmp_path / "model.safetensors", tensors)
    assert read_checkpoint(tmp_path)["scale_format"] == "ue8m0"


def cache(root: Path, revisions: tuple[str, ...] = ("0a1b",)) -> Path:
    """A hub cache of one repository: snapshots of links into blobs."""
    repository = root / "models--some--Model-FP8"
    (repository / "blobs").mkdir(parents=True)
    (repository / "blobs" / "c0ffee").write_text(json.dumps(DENSE))
    shard(repository / "blobs" / "beef", {"lm_head.weight": ("BF16", [4096, 65536])})
    for revision in revisions:
        (repository / "snapshots" / revision).mkdir(parents=True)
        (repository / "snapshots" / revision / "config.json").symlink_to("../../blobs/c0ffee")
        (repository / "snapshots" / revision / "model.safetensors").symlink_to("../../blobs/beef")
    return repository


def test_the_hub_cache_is_read_through_its_links(tmp_path: Path) -> None:
    repository = cache(tmp_path)
    for place in (repository, repository / "snapshots" / "0a1b"):
        traits = read_checkpoint(place)
        assert (traits["id"], traits["hub_id"], traits["layers"]) == ("Model-FP8", "some/Model-FP8", 32)
        assert traits["weight_gib"] == 0.5
    with pytest.raises(RequestError, match="a hub cache; give one of models--some--Model-FP8"):
        read_checkpoint(tmp_path)


def test_of_several_snapshots_main_is_taken(tmp_path: Path) -> None:
    repository = cache(tmp_path, ("0a1b", "2c3d"))
    with pytest.raises(RequestError, match="several snapshots"):
        read_checkpoint(repository)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("2c3d")
    assert read_checkpoint(repository)["layers"] == 32


def test_no_link_is_followed_out_of_the_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(json.dumps(DENSE))
    inside = tmp_path / "checkpoint"
    inside.mkdir()
    (inside / "config.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(RequestError, match="outside the checkpoint"):
        read_checkpoint(inside)
    linked = tmp_path / "linked"
    linked.symlink_to(checkpoint(cache(tmp_path) / "snapshots" / "0a1b" / "..", DENSE))
    assert read_checkpoint(linked)["layers"] == 32  # the directory itself may be a link: it was asked for


def test_weights_that_lie_elsewhere_are_left_alone(tmp_path: Path) -> None:
    inside = tmp_path / "checkpoint"
    inside.mkdir()
    computed = read_checkpoint(checkpoint(inside, DENSE))
    shard(tmp_path / "elsewhere.safetensors", TENSORS)
    (inside / "model.safetensors").symlink_to(tmp_path / "elsewhere.safetensors")
    assert read_checkpoint(inside) == computed
    index(inside, {"a": "model.safetensors"})
    assert read_checkpoint(inside) == computed


def claim(path: Path, length: int) -> None:
    path.write_bytes(length.to_bytes(8, "little") + b"{}")


def broken_header(path: Path) -> None:
    path.write_bytes((4).to_bytes(8, "little") + b'{"a"' + b"0" * 64)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda d: claim(d / "model.safetensors", 5 * 2**30), "its header claims 5368709120"),
        (lambda d: claim(d / "model.safetensors", 2**64 - 1), "its header claims"),
        (lambda d: (d / "model.safetensors").write_bytes(b"abc"), "cut or damaged"),
        (lambda d: broken_header(d / "model.safetensors"), "broken safetensors header"),
        (lambda d: shard(d / "model.safetensors", TENSORS, short=9), "the file is cut"),
        (lambda d: index(d, {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}), "2 of the 2 files"),
        (lambda d: index(d, {"a": "../other/model.safetensors"}), "no file of this directory"),
        (lambda d: (d / "model.safetensors.index.json").write_text('{"weight_map": {'), "broken index"),
        (lambda d: (d / "model.safetensors.index.json").write_text('{"weight_map": {"a": 3}}'), "broken index"),
        (lambda d: os.mkfifo(d / "hf_quant_config.json"), "no regular file"),
        (lambda d: (d / "hf_quant_config.json").write_text('{"quantization": {"quantized_layers": 3}}'), "hf_quant"),
    ],
)
def test_damage_is_one_clear_line(tmp_path: Path, damage: Any, said: str) -> None:
    damage(checkpoint(tmp_path, DENSE))
    with pytest.raises(RequestError, match=said) as caught:
        read_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)


BAD: tuple[Any, ...] = ("x", [], {}, [1, "a"], {"a": 1}, -1, 0, 1.5, True, None, 10**30)


def test_any_value_of_the_wrong_type_is_told_or_read(tmp_path: Path) -> None:
    """Each key of a quantised hybrid config with each wrong value: a reading or one line, nothing else."""
    whole = HYBRID | {"quantization_config": NVFP4}
    places = [(key,) for key in whole] + [(k, i) for k in ("text_config", "quantization_config") for i in whole[k]]
    told = 0
    for path in places:
        for bad in BAD:
            changed = json.loads(json.dumps(whole))
            (changed if len(path) == 1 else changed[path[0]])[path[-1]] = bad
            try:
                read_checkpoint(checkpoint(tmp_path, changed))
            except RequestError as error:
                told += 1
                assert "\n" not in str(error) and "config.json" in str(error)
    assert told > 100
