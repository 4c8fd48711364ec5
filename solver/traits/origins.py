"""A checkpoint's config and its traits -> where each trait was read: a file and key, a class default, or computed.

Which keys a trait is made of is data (`knowledge/models/trait_keys.json`, in the order in which they count).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from solver.traits.config import Config, Json, beside_models
from solver.traits.method import modelopt_section

COMPUTED = "computed from shapes and formats"
HEADERS = "safetensors headers"
BY_CLASS = frozenset({"tool_parser", "reasoning_parser"})


def model_origins(config: Config, read: dict[str, Any], stored: dict[str, Any]) -> dict[str, str]:
    """Trait -> origin; `read` are the traits of the config, `stored` those of the headers, which go before."""
    origins = {name: _origin(config, name, value) for name, value in read.items()} | dict.fromkeys(stored, HEADERS)
    origins["id"] = "name of the directory"
    if "hub_id" in read:
        origins["id"] = origins["hub_id"] = "name in the hub cache"
    return origins


def _origin(config: Config, trait: str, value: Any) -> str:
    if trait in BY_CLASS:
        return f"what the documentation of model type {config.top.get('model_type')} names"
    keys = trait_keys().get(trait)
    if keys is None:
        return COMPUTED
    places = _places(config, trait)
    for key in keys if value is not None else ():
        for name, place in places:
            if place.get(key) is not None:
                return f"{name}{config.renamed.get(key, key)}"
        if config.defaults.get(key) is not None:
            return f"default of the config class of {config.text.get('model_type')}"
    return f"the config has no {keys[0]}" if value is not None else "not in this model"


def _places(config: Config, trait: str) -> list[tuple[str, Json]]:
    """Name and content of what may hold a trait's key, in the order in which it is looked at."""
    nested = next((key for key, value in config.top.items() if value is config.text), None)
    places = [(f"config.json: {nested}.", config.text)] if nested and trait != "model_type" else []
    places.append(("config.json: ", config.top))
    written = config.quantization
    if written is not None:
        return [("config.json: quantization_config.", written), *places]
    section = modelopt_section(config.modelopt)
    return [("hf_quant_config.json: quantization.", section), *places] if section else places


@cache
def trait_keys() -> dict[str, list[str]]:
    return beside_models("trait_keys.json")
