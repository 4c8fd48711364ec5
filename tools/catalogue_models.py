"""A directory of checkpoints (one `<owner>--<name>/` each) -> knowledge/models/*.yaml, facts only.

    python tools/catalogue_models.py CHECKPOINTS knowledge/models [--facts models.jsonl]

Traits come from solver.traits.model; tools/catalogue_models.yaml adds what configs do not say. `--facts` is a file of
JSON lines with `hf_id`, `tool_parser`, `reasoning_parser` and `parser_source`; without it parsers are taken from
knowledge/models/config_classes.json. A fresh clone needs neither: the YAML is committed.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import yaml

from solver.traits.config import config_of, read_config
from solver.traits.folder import open_folder
from solver.traits.model import catalogue_id, traits_of

FORMAT_SUFFIX = re.compile(r"-(nvfp4|fp8|bf16|mxfp4|mxfp8|awq|gptq-int4|fp8-dynamic|fp8-static-pertensor)$")
Entry = dict[str, Any]


class Dumper(yaml.SafeDumper):
    """Lists of plain values on one line, no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def represent_list(dumper: Dumper, data: list[Any]) -> yaml.Node:
    plain = not any(isinstance(item, dict) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=plain)


Dumper.add_representer(list, represent_list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--facts", type=Path)
    options = parser.parse_args()
    manifest = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    facts = read_facts(options.facts) if options.facts else {}
    entries = [from_directory(path, manifest) for path in sorted(options.checkpoints.iterdir()) if path.is_dir()]
    entries += [derived(item, options.checkpoints, manifest) for item in manifest["derived"]]
    for entry in entries:
        add_parsers(entry, facts)
        path = options.out / f"{entry['id']}.yaml"
        path.write_text(yaml.dump(entry, Dumper=Dumper, sort_keys=False, width=150), encoding="utf-8")
    print(f"{len(entries)} models written to {options.out}")


def read_facts(path: Path) -> dict[str, Entry]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {fact["hf_id"]: fact for fact in map(json.loads, lines)}


def from_directory(path: Path, manifest: Entry) -> Entry:
    source = {"url": manifest["sources"]["directory"].format(name=path.name), "note": "shape and quantisation"}
    return entry_of(path.name.replace("--", "/", 1), traits_of(read_config(open_folder(path))), [source], manifest)


def derived(item: Entry, checkpoints: Path, manifest: Entry) -> Entry:
    """An entry whose config stands in the manifest, or is another checkpoint's with some keys set.

    `modelopt` is what hf_quant_config.json says. `traits` go before what the config gives; without a config they are
    all that the sources say.
    """
    sources: list[Entry] = list(item.get("sources", ()))
    if not item.keys() & {"from", "config"}:
        return entry_of(item["hub_id"], item["traits"], sources, manifest)
    top = item.get("config")
    if top is None:
        top = read_config(open_folder(checkpoints / item["from"])).top | item["set"]
        sources.append({"url": manifest["sources"]["directory"].format(name=item["from"]), "note": item["note"]})
    config = config_of(Path(catalogue_id(item["hub_id"])), top, item.get("modelopt"))
    traits = traits_of(config) | item.get("parsers", {})
    known = {k: v for k, v in traits.items() if k not in item.get("unknown", ())} | item.get("traits", {})
    return entry_of(item["hub_id"], known, sources, manifest)


def entry_of(hub_id: str, traits: Entry, sources: list[Entry], manifest: Entry) -> Entry:
    name = catalogue_id(hub_id)
    entry: Entry = {"id": name, "family": manifest["families"].get(name, FORMAT_SUFFIX.sub("", name))}
    if name in manifest["aliases"]:
        entry["aliases"] = manifest["aliases"][name]
    entry["hub_ids"] = [hub_id, *manifest["hub_ids"].get(name, ())]
    entry["traits"] = {key: value for key, value in traits.items() if key != "id"}
    computed = {"note": "parameters and GiB: computed from shapes and formats, solver/traits/weights.py"}
    entry["sources"] = [*sources, *([computed] if "total_params_b" in traits else ())]
    return entry


def add_parsers(entry: Entry, facts: dict[str, Entry]) -> None:
    """Parsers that a page names for this checkpoint win over those of its model type."""
    fact = facts.get(entry["hub_ids"][0], {})
    named = {key: fact[key] for key in ("tool_parser", "reasoning_parser") if fact.get(key)}
    if named:
        entry["traits"] |= named
        said = {"note": f"parsers: {fact['parser_source']}"}
        entry["sources"].insert(len(entry["sources"]) - ("total_params_b" in entry["traits"]), said)


if __name__ == "__main__":
    main()
