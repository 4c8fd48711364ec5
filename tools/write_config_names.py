"""Unpacked Transformers and release -> knowledge/models/config_names.json: names and defaults of config classes.

usage: python tools/write_config_names.py TRANSFORMERS RELEASE > knowledge/models/config_names.json
TRANSFORMERS holds the package of the version that the release pins, RELEASE its unpacked wheel. Nothing of either is
imported. A class may keep a size under a name of its own (`attribute_map`: GPT-2's `n_embd` is `hidden_size`), and a
config.json may leave out what the class has a default for.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KEYS = ("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
        "intermediate_size", "max_position_embeddings", "tie_word_embeddings")  # fmt: skip
"""The sizes that shapes are made of, by the names that the engine asks for."""
INSIDE = {
    "chatglm": {"vocab_size": "padded_vocab_size", "intermediate_size": "ffn_hidden_size"},
    "dbrx": {
        "num_key_value_heads": "attn_config.kv_n_heads",
        "intermediate_size": "ffn_config.ffn_hidden_size",
        "num_local_experts": "ffn_config.moe_num_experts",
        "num_experts_per_tok": "ffn_config.moe_top_k",
    },
    "longcat_flash": {
        "num_hidden_layers": "num_layers",
        "intermediate_size": "ffn_hidden_size",
        "moe_intermediate_size": "expert_ffn_hidden_size",
    },
    "opt": {"intermediate_size": "ffn_dim"},
}
"""Names that a class's code keeps beside its `attribute_map` (SGLang 0.5.23, configs/chatglm.py, models/dbrx.py,
configs/longcat_flash.py and models/opt.py)."""


def main() -> None:
    transformers, release = map(Path, sys.argv[1:3])
    files = [*transformers.glob("models/*/configuration_*.py"), *release.glob("sglang/srt/configs/*.py")]
    names: dict[str, dict[str, str]] = {}
    defaults: dict[str, dict[str, Any]] = {}
    for path in sorted(files, key=lambda p: (p.is_relative_to(release), p)):
        for node in ast.parse(path.read_text(encoding="utf-8-sig")).body:
            if isinstance(node, ast.ClassDef) and (kind := _text(node, "model_type")):
                renamed, values = read_class(node)
                if "vocab_size" in values or "num_hidden_layers" in renamed:
                    names[kind], defaults[kind] = renamed | INSIDE.get(kind, {}), values
    found = {
        "source": "attribute_map and defaults of the config classes of the Transformers that SGLang 0.5.23 pins and "
        "of its own (written by tools/write_config_names.py)",
        "names": {k: v for k, v in sorted(names.items()) if v},
        "defaults": dict(sorted(defaults.items())),
    }
    print(listed(found))


def listed(found: dict[str, Any]) -> str:
    """The same as JSON with a class on each line."""
    parts = [f'{{"source": {json.dumps(found["source"])}']
    for part in ("names", "defaults"):
        lines = [f"{json.dumps(kind)}: {json.dumps(values)}" for kind, values in found[part].items()]
        parts.append(f'"{part}": {{\n' + ",\n".join(lines) + "\n}")
    return ",\n".join(parts) + "}"


def read_class(node: ast.ClassDef) -> tuple[dict[str, str], dict[str, Any]]:
    """The class's own names of `KEYS`, and their defaults."""
    stored = dict(_stored(node))
    written = _value(node, "attribute_map") or {}
    doubtful = {"head_dim"} if "kv_lora_rank" in stored else set()  # latent heads have two sizes
    if "moe_intermediate_size" in stored:
        doubtful.add("intermediate_size")  # of no layer where all are mixtures
    wanted = [key for key in KEYS if key not in doubtful]
    renamed = {key: own for key, own in written.items() if key in wanted}
    values = {key: stored.get(renamed.get(key, key)) for key in wanted}
    return renamed, {key: value for key, value in values.items() if isinstance(value, int)}


def _stored(node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    """Fields of a config class with a literal default: annotated, or parameters of `__init__`."""
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.value is not None:
            yield item.target.id, _literal(item.value)
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            args = item.args.args
            for arg, default in zip(args[len(args) - len(item.args.defaults) :], item.args.defaults, strict=True):
                yield arg.arg, _literal(default)


def _value(node: ast.ClassDef, name: str) -> Any:
    for item in node.body:
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name) and item.targets[0].id == name:
            return _literal(item.value)
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.target.id == name:
            return _literal(item.value) if item.value else None
    return None


def _text(node: ast.ClassDef, name: str) -> str | None:
    found = _value(node, name)
    return found if isinstance(found, str) else None


def _literal(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


if __name__ == "__main__":
    main()
