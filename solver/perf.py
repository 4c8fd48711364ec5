"""A launch as it resolves -> its time per token as another estimator has it, or why that one says nothing.

The only module that imports aiconfigurator (the extra of that name), when its figures are first asked for. Its figure
stands for itself: no term of our own cost model is added to it, and where it knows nothing there is none.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import msgspec

from solver.conditions import Unknown
from solver.context import Context, check_context
from solver.cost import UNIT_TIME, Estimate, Setting
from solver.errors import RequestError
from solver.formulas import usable

OWN, OTHER = "flagwise", "aiconfigurator"
ESTIMATORS = (OWN, OTHER)
ENGINE = "sglang"
ONLY_DECODING = "static_gen"
CACHE_FORMATS = {2.0: "bfloat16", 1.0: "fp8"}
SAID_AT_MOST = 120
BESIDE = "kernels and all-reduce paths are its own choice"


def wanted(request: dict[str, Any]) -> bool:
    """Whether the request wants the other estimator's figures. Errors: RequestError where it is not installed."""
    if request.get("perf", OWN) == OWN:
        return False
    if find_spec(OTHER) is None:
        raise RequestError(f"--perf {OTHER} needs that package: pip install 'flagwise[{OTHER}]'")
    return True


def latency(context: Context, state: Any) -> Estimate:
    """Time per token of one launch, without a range: the other estimator gives none."""
    figure = context.estimates["token_latency_us"]
    arguments = figure.arguments(state)
    if type(arguments) is Unknown:
        return _none(*arguments.names)
    if not usable(arguments):
        return _none("a parallel size below 1")
    setting: Setting = figure.formula.setting(arguments)
    accepted = figure.formula.accepted(setting.draft_steps)
    drafts = accepted if isinstance(accepted, float | int) else accepted.value if accepted else None
    gaps = tuple(_gaps(context, setting, drafts))
    return _none(*gaps) if gaps else _asked(context, setting, drafts)


def compared(context: Context, launches: list[dict[str, Any]]) -> Iterator[tuple[float | None, Estimate]]:
    """Our own time per token and the other's, of each launch by its given flags."""
    for given in launches:
        facts = msgspec.structs.replace(context.facts, given=given)
        judged = msgspec.structs.replace(context, facts=facts)
        state = check_context(judged).outcomes[0].state
        own = judged.estimates["token_latency_us"](state)
        yield None if type(own) is Unknown else own, latency(judged, state)


def _none(*why: str) -> Estimate:
    return Estimate(None, None, None, UNIT_TIME, {"from": OTHER}, False, why)


def _gaps(context: Context, setting: Setting, drafts: float | None) -> Iterator[str]:
    """What it has no notion of, or what cannot be told to it, in words."""
    if _system(context) is None:
        yield f"no tables of {ENGINE} for {context.facts.hardware.get('gpu') or 'this machine'}"
    if _model(context) is None:
        yield f"no configuration of {context.model_name}"
    if setting.draft_steps and drafts is None:
        yield "accepted tokens"
    if setting.kv_dtype_bytes not in CACHE_FORMATS:
        yield "a cache of this format"
    unlike = {
        "context parallel decoding": setting.dcp > 1,
        f"an expert exchange ({setting.a2a})": setting.a2a != "none",
        "passes without CUDA graphs": not setting.cuda_graph,
        "steps without overlap": not setting.overlap,
    }
    yield from (f"no notion of {what}" for what, asked in unlike.items() if asked)


def _system(context: Context) -> str | None:
    table = context.resolver.program.tables["aiconfigurator_systems"]
    found: str | None = table.get(context.facts.hardware.get("gpu"))
    return found


def _model(context: Context) -> str | None:
    """The name that it has a configuration under: it would look for any other one on the hub."""
    from aiconfigurator.sdk.common import DefaultHFModels

    entry = context.index.models.get(str(context.facts.model.get("id")))
    names = (context.facts.model.get("hub_id"), *(entry.hub_ids if entry else ()))
    return next((name for name in names if name in DefaultHFModels), None)


def _asked(context: Context, setting: Setting, drafts: float | None) -> Estimate:
    from aiconfigurator.cli.api import cli_estimate

    experts: dict[str, Any] = {}
    if context.facts.model.get("experts"):
        experts = {"moe_tp_size": setting.tp // setting.ep or 1, "moe_ep_size": setting.ep}
    speculation: dict[str, Any] = {}
    if setting.draft_steps and drafts is not None:
        speculation = {"nextn": setting.draft_steps, "nextn_accepted": drafts - 1}
    try:
        with _quiet():
            found = cli_estimate(
                str(_model(context)),
                str(_system(context)),
                mode=ONLY_DECODING,
                backend_name=ENGINE,
                isl=setting.context,
                osl=2,
                batch_size=setting.rank_requests,
                tp_size=setting.attention_tp,
                pp_size=setting.pp,
                attention_dp_size=setting.attention_dp,
                kvcache_quant_mode=CACHE_FORMATS[setting.kv_dtype_bytes],
                **experts,
                **speculation,
            )
    except Exception as error:  # whatever it cannot answer is one of many kinds of its own
        said = next(iter(str(error).splitlines()), "")[:SAID_AT_MOST]
        return _none(f"{OTHER} says: {said or type(error).__name__}")
    tables = f"its tables of SGLang {found.backend_version} for {found.system_name}"
    inputs = {"from": f"{OTHER}, {tables}", "requests_per_rank": setting.rank_requests, "note": BESIDE}
    return Estimate(found.tpot * 1e3, None, None, UNIT_TIME, inputs)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """It reports its own progress on both streams and in logs; an answer is all that is wanted of it."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)
