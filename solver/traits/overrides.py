"""Traits and the object of `--json-model-override-args` -> the traits of the model that the engine then sees.

The engine sets each key on the configuration that it has read, and inside a nested one where an object is given for it
(SGLang 0.5.9, utils/hf_transformers_utils.py, get_config; 0.5.20, utils/hf_transformers/config.py, get_config).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solver.index import Index
from solver.texts import json_object
from solver.traits.config import NESTED, Config, Json, config_of, read_config
from solver.traits.find import entry_behind, with_entry
from solver.traits.folder import open_folder
from solver.traits.model import CONTEXT, context, traits_of
from solver.traits.origins import trait_keys

Values = dict[str, Any]
ROPE = ("rope_scaling", "rope_parameters")
PLAIN = ("heads", "kv_heads", "head_dim", "vocab", "mtp_layers", "experts_per_token", "sliding_window", "dtype")
"""Traits that are the value of their first key."""
KEPT = ("id", "hub_id", "family", "tool_parser", "reasoning_parser", "described")


def overridden(index: Index, name: str | None, traits: Values, text: Any) -> Values:
    """The traits after the overrides; unchanged where the text is no JSON object with something in it.

    A directory is read again. Of a catalogue entry the config is not there: what a key alone says is replaced, and
    what else rests on an overridden key is left out, which makes it unknown.
    """
    changes = json_object(text)
    if not changes:
        return traits
    if name is not None and Path(name).is_dir():
        return reread(index, name, changes)
    return replaced(traits, {**changes, **changes.get(_nested(changes), {})})


def reread(index: Index, name: str, changes: Json) -> Values:
    """Traits of a checkpoint directory whose config has the changes."""
    folder = open_folder(Path(name))
    config = read_config(folder)
    nested = _nested(config.top)
    top = config.top | {key: value for key, value in changes.items() if key != nested or not isinstance(value, dict)}
    if isinstance(changes.get(nested), dict):
        top[nested] = config.top[nested] | changes[nested]
    read = {**traits_of(config_of(config.path, top, config.modelopt)), "id": folder.name, "described": True}
    if folder.hub_id:
        read["hub_id"] = folder.hub_id
    entry = entry_behind(index, name, read)
    return read if entry is None else {k: v for k, v in with_entry(entry, read).items() if k in read or k in KEPT}


def replaced(traits: Values, changes: Json) -> Values:
    """Traits of a catalogue entry after changes of its config."""
    keys = trait_keys()
    touched = {trait for trait, names in keys.items() if any(name in changes for name in names)}
    touched.discard("text_model_type")  # its key is that of the nested part
    shapes = touched - {"architecture", "max_context", "dtype", "model_type"}
    found = {
        trait: value
        for trait, value in traits.items()
        if trait not in touched and not (shapes and trait not in keys and trait not in KEPT)
    }
    for trait in PLAIN:
        if keys[trait][0] in changes:
            found[trait] = changes[keys[trait][0]]
    named = changes.get("architectures")
    if isinstance(named, list) and named:
        found |= {"architecture": str(named[0]), "described": True}
    if any(key in changes for key in (*CONTEXT, *ROPE)) and traits.get("max_context"):
        top = {"max_position_embeddings": traits["max_context"]} | {
            key: changes[key] for key in (*CONTEXT, *ROPE) if key in changes
        }
        found["max_context"] = context(Config(Path(), top, top, None, None, {}, {}))
    if "model_type" in changes:
        found["model_type"] = changes["model_type"]
    return found


def _nested(top: Json) -> str:
    """The key of a config's language part; of one that has none, a key that no config has."""
    return next((key for key in NESTED if isinstance(top.get(key), dict)), "")
