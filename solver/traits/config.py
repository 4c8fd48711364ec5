"""Directory of a checkpoint -> its config.json as a typed view, with the config class's defaults behind it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from solver.errors import RequestError
from solver.traits.folder import Folder

Json = dict[str, Any]
JSON_AT_MOST_MIB = 32
NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


class Config(msgspec.Struct, frozen=True):
    """One checkpoint's configuration. `top` is config.json, `text` its language part (the same object if not nested).

    The getters take several spellings of one key, look into the text part, then into the top, then into the defaults
    of the config class, and raise RequestError if a value has another type than the engine expects.
    """

    path: Path
    top: Json
    text: Json
    quantization: Json | None
    modelopt: Json | None
    defaults: Json
    parsers: Json
    renamed: dict[str, str] = {}
    """Keys that the config class keeps under a name of its own, as far as config.json has that name."""

    def value(self, *keys: str) -> Any:
        """The first of `keys` that is written down and not null, else the config class's default, else None."""
        for place in (self.text, self.top, self.defaults):
            for key in keys:
                if place.get(key) is not None:
                    return place[key]
        return None

    def integer(self, *keys: str) -> int | None:
        """A whole number; a list that has the same one for each layer stands for it (HunYuan's experts)."""
        found = self.value(*keys)
        if isinstance(found, list) and found and all(_whole(n) and n == found[0] for n in found):
            found = found[0]
        if found is None or _whole(found):
            return found
        raise self.wrong_type(self._written(keys), "a whole number", found)

    def count(self, *keys: str) -> int:
        """Like `integer`, with 0 for what is absent."""
        return self.integer(*keys) or 0

    def size(self, *keys: str) -> int | None:
        """Like `integer`, for what some classes write once for each layer or group of experts: then the largest."""
        found = self.value(*keys)
        if isinstance(found, list) and found and all(map(_whole, found)):
            return int(max(found))
        return self.integer(*keys)

    def needed(self, *keys: str) -> int:
        found = self.integer(*keys)
        if found is None:
            raise RequestError(
                f"{self.path / 'config.json'}: no {keys[0]}, so this is not a language model's config, or one whose "
                "sizes have names that are not known here; give --model a catalogue id of the same shape"
            )
        return found

    def string(self, *keys: str) -> str | None:
        found = self.value(*keys)
        if found is not None and not isinstance(found, str):
            raise self.wrong_type(self._written(keys), "a text", found)
        return found

    def flag(self, *keys: str) -> bool:
        return bool(self.value(*keys))

    def array(self, *keys: str) -> list[Any] | None:
        found = self.value(*keys)
        if found is not None and not isinstance(found, list):
            raise self.wrong_type(self._written(keys), "a list", found)
        return found

    def table(self, *keys: str) -> Json:
        found = self.value(*keys)
        if found is not None and not isinstance(found, dict):
            raise self.wrong_type(self._written(keys), "an object", found)
        return found or {}

    def _written(self, keys: tuple[str, ...]) -> str:
        """The one of `keys` that `value` took."""
        places = (self.text, self.top, self.defaults)
        return next(key for place in places for key in keys if place.get(key) is not None)

    def wrong_type(self, key: str, expected: str, found: Any) -> RequestError:
        return RequestError(f"{self.path / 'config.json'}: {key} must be {expected}, not {found!r:.60}")


def _whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def read_config(folder: Folder) -> Config:
    """Read config.json and, where the engine would look at it, hf_quant_config.json. Remote code is never run.

    Errors: RequestError when config.json is missing, is no JSON object, or holds wrong types.
    The engine reads hf_quant_config.json only if config.json has no quantisation entry of its own
    (SGLang 0.5.10 and 0.5.23, configs/model_config.py, _parse_quant_hf_config), so this does too.
    """
    top = read_json(folder, "config.json")
    if top is None:
        raise RequestError(f"{folder.path}: no config.json in this directory")
    written = quantization_part(folder.path, top, language_part(folder.path, top))
    return config_of(folder.path, top, read_json(folder, "hf_quant_config.json") if written is None else None)


def config_of(directory: Path, top: Json, modelopt: Json | None = None) -> Config:
    """The typed view of a configuration that is already in memory; `directory` is what messages name."""
    text = language_part(directory, top)
    quantization = quantization_part(directory, top, text)
    known, classes = config_classes(), config_names()
    for place in (text, top):
        if not isinstance(place.get("model_type"), str | None):
            raise RequestError(
                f"{directory / 'config.json'}: model_type must be a text, not {place['model_type']!r:.60}"
            )
    model_type = text.get("model_type") or top.get("model_type")
    defaults = known["fallback"] | classes["defaults"].get(model_type, {}) | known["defaults"].get(model_type, {})
    defaults = {key: value for key, value in defaults.items() if key not in text or text[key] is not None}
    parsers = known["parsers"].get(top.get("model_type"), {})
    own = classes["names"].get(model_type, {})
    renamed = {key: name for key, name in own.items() if text.get(key) is None and _at(text, name) is not None}
    if renamed:
        standard = text | {key: _at(text, name) for key, name in renamed.items()}
        top = standard if text is top else {k: standard if v is text else v for k, v in top.items()}
        text = standard
    return Config(directory, top, text, quantization, modelopt, defaults, parsers, renamed)


def _at(place: Json, name: str) -> Any:
    """The value under a name, which may lead into an object (`attn_config.kv_n_heads`)."""
    found: Any = place
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def language_part(directory: Path, top: Json) -> Json:
    """The part that describes the decoder; Qwen3-Omni keeps it two levels down, in the thinker's text part."""
    for key in NESTED:
        if top.get(key) is not None:
            nested = top[key]
            if not isinstance(nested, dict):
                raise RequestError(f"{directory / 'config.json'}: {key} must be an object, not {nested!r:.60}")
            return language_part(directory, nested)
    return top


def quantization_part(directory: Path, top: Json, text: Json) -> Json | None:
    """`quantization_config` (or compressed-tensors' older `compression_config`), also from the text part.

    Some multimodal checkpoints keep it there; the loader looks there too (weight_utils.get_quant_config)."""
    for place in (top, text):
        for key in ("quantization_config", "compression_config"):
            found = place.get(key)
            if found is not None and not isinstance(found, dict):
                raise RequestError(f"{directory / 'config.json'}: {key} must be an object, not {found!r:.60}")
            if found is not None:
                return found
    return None


def read_json(folder: Folder, name: str) -> Json | None:
    """A JSON object from a file of a checkpoint; None if the file is not there."""
    raw = folder.read(name, JSON_AT_MOST_MIB)
    if raw is None:
        return None
    found = decode(raw, folder.path / name)
    if not isinstance(found, dict):
        raise RequestError(f"{folder.path / name}: must hold a JSON object, not {type(found).__name__}")
    return found


def decode(raw: bytes, path: Path) -> Any:
    """Fast with msgspec; where that gives up, the standard library takes Infinity (in real configs) or says where."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    import json  # few files need it, and it takes as long to import as most take to read

    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        raise RequestError(f"{path}: broken JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except UnicodeDecodeError:
        raise RequestError(f"{path}: not UTF-8 text") from None


@cache
def config_classes() -> Json:
    """Defaults and parsers per model type (knowledge/models/config_classes.json, read once)."""
    return beside_models("config_classes.json")


@cache
def config_names() -> Json:
    """Own names and default sizes per model type (knowledge/models/config_names.json, read once)."""
    return beside_models("config_names.json")


def beside_models(name: str) -> Json:
    """JSON data of the knowledge about configs, found by the package's path (importlib.resources imports for 15 ms)."""
    import knowledge

    raw = (Path(knowledge.__path__[0]) / "models" / name).read_bytes()
    decoded: Json = msgspec.json.decode(raw)
    return decoded
