"""What a run's models are computed by, and how the core is given features and models."""

from __future__ import annotations

import hashlib
import logging
import sys
from contextlib import ExitStack, suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hft.durations import parse_ns
from hft.inference.reuse import add_reuse

if TYPE_CHECKING:
    from hft.config import ModelConfig
    from hft.inference.backends import Backend
    from hft.inference.bundle import Bundle
    from hft.inference.card import TierName
    from hft.plan import Plan
    from hft.strategy import Strategy

log = logging.getLogger(__name__)

_LIBRARIES = {
    "onnx": ("onnxruntime", "onnxruntime-gpu"),
    "litert": ("ai-edge-litert",),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
}
"""Distributions that give a backend's library."""


class Opened(ExitStack):
    """Closes the backends of a run: all, or before that those of one source."""

    def __init__(self) -> None:
        super().__init__()
        self._of: dict[int, ExitStack] = {}

    def of(self, source: int) -> ExitStack:
        """Closes the backends of one source."""
        if source not in self._of:
            self._of[source] = self.enter_context(ExitStack())
        return self._of[source]


def add_sources(core: Any, plan: Plan, *, is_live: bool = False) -> Opened:
    """Gives the core each instrument's features and models, and bars if the strategy wants them.

    Live, models are warmed up, and refused where they take longer than their card declares.

    Returns:
        What closes the backends that were opened, after the run.
    """
    opened = Opened()
    for number, source in enumerate(plan.sources):
        specs, trigger = source.features.to_core()
        columns = {name: i for i, name in enumerate(source.features.names)}
        outputs: dict[str, int] = {}
        computes, warm_up, window = None, 0, 0
        if source.bundle is not None:
            outputs = {name: i for i, name in enumerate(source.bundle.outputs)}
            computes = open_model(source.bundle, source.config, opened.of(number), is_live=is_live)
            if is_live:
                require_budget(source.bundle, source.config, computes)
            warm_up, window = rows_of(source.bundle, source.config)
        core.set_model(number, source.name, source.config.tier, outputs, columns)
        # Rows go to on_features from the strategy's own features, else from its model's.
        publish = source.bundle is None or not any(s.bundle is None for s in plan.sources)
        for instrument in range(len(plan.feeds)):
            core.add_source(
                instrument,
                specs,
                trigger,
                computes,
                number,
                warm_up,
                publish and _overrides(plan, "on_features"),
                source.features.reactive,
                window,
                source.version,
            )
    for number, source in enumerate(plan.sources):
        trails = None if source.bundle is None else trails_of(source.bundle)
        if trails is not None:
            core.trail(number, trails)
    add_reuse(core, plan)
    if plan.strategy.bars is not None:
        core.make_bars(parse_ns(plan.strategy.bars))
    return opened


def _overrides(plan: Plan, handler: str) -> bool:
    from hft.strategy import Strategy

    return getattr(plan.strategy, handler) is not getattr(Strategy, handler)


def bundle_for(cls: type[Strategy], place: Path, config: ModelConfig) -> Bundle:
    """A bundle with the own features of the strategy's file, and of the tier that is to run.

    Raises:
        ModelError: it is damaged, or has no such tier.
    """
    from hft.features import Feature
    from hft.inference.bundle import load_bundle

    own = [v for v in vars(sys.modules[cls.__module__]).values() if isinstance(v, Feature)]
    bundle = load_bundle(place, own)
    bundle.layers(config.tier)
    return bundle


def open_model(
    bundle: Bundle, config: ModelConfig, opened: ExitStack, *, is_live: bool = False
) -> Any:
    """What steps a bundle: its native network, or a backend, which `opened` closes.

    Live, a network lies in one locked block with those of the bundle's other tiers.

    Raises:
        ModelError: the bundle has no such tier, precision or part, or the library refuses it.
    """
    _warn_of_gates(bundle, config)
    if config.backend != "native":
        return _backend(bundle, config, opened)
    return _kept_ready(bundle, config) if is_live else _network(bundle, config, config.tier)


def require_budget(
    bundle: Bundle, config: ModelConfig, computes: Any, *, is_beside: bool = False
) -> None:
    """Warms up what `open_model` gave.

    Args:
        bundle: whose.
        config: how it was opened.
        computes: a network, or a backend.
        is_beside: a session trades in this process.

    Raises:
        ModelError: a row takes longer than the bundle's card declares.
    """
    if config.backend != "native":
        computes.require_budget(is_beside=is_beside)
    elif bundle.card.budget_ns:
        with ExitStack() as measured:
            _backend(bundle, config, measured).require_budget(is_beside=is_beside)


def _network(bundle: Bundle, config: ModelConfig, tier: TierName) -> Any:
    return bundle.network(tier=tier, precision=config.precision)


def _kept_ready(bundle: Bundle, config: ModelConfig) -> Any:
    """The network of the tier that runs, in one locked block with the others of its bundle.

    What keeps one in cache while a session idles keeps all: a change of tier finds its weights.
    """
    from hft import _core

    tiers = [tier for tier in bundle.tiers if bundle.layers(tier)]
    networks = _core.together([_network(bundle, config, tier) for tier in tiers])
    network = networks[tiers.index(config.tier)]
    if network.why_unlocked:
        log.warning("%s: its weights may be paged out: %s", bundle.path, network.why_unlocked)
    return network


def _warn_of_gates(bundle: Bundle, config: ModelConfig) -> None:
    """What failed and yet runs is told: native weights, which are all there is, and named tiers.

    Of parts their backend tells.
    """
    card, tier = bundle.card, config.tier
    if tier != "FULL":
        gates, what = card.tiers[tier].gates, f"its tier {tier} failed its gates"
    elif config.backend == "native":
        gates, what = card.gates, "its native weights failed their gates"
    else:
        return
    failed = [str(gate) for gate in gates if gate.failed]
    if failed:
        log.warning("%s: %s when it was built: %s", bundle.path, what, "; ".join(failed))


def _backend(bundle: Bundle, config: ModelConfig, opened: ExitStack) -> Backend:
    from hft.inference.backends import open_backend

    return opened.enter_context(
        open_backend(
            bundle,
            config.backend,
            tier=config.tier,
            precision=config.precision,
            threads=config.threads,
            url=config.url,
        )
    )


def rows_of(bundle: Bundle, config: ModelConfig) -> tuple[int, int]:
    """Rows until a model is warm, and rows that it sees; 0: its memory goes on for ever.

    A window that is not full is another model than the one that was trained.
    """
    window = bundle.card.window_rows if config.tier == "FULL" else 0  # lesser ones see one row
    return max(bundle.warm_up_rows(config.tier), window - 1), window


def trails_of(bundle: Bundle) -> Any:
    """How a model's rows are scaled by what trails, in the core's terms; None: they are not."""
    from hft import _core

    rule, scaler = bundle.card.trailing, bundle.card.scaler
    if rule is None:
        return None
    return _core.Trails(
        period_ns=rule.period_ns,
        memory_ns=rule.memory_ns,
        drift=rule.drift,
        mean=list(scaler.mean),
        scale=list(scaler.scale),
    )


def computed_by(config: ModelConfig) -> str:
    """Backend, its library's version, tier and precision, to compare two runs by."""
    words: list[str] = [config.backend, config.tier, config.precision]
    for name in _LIBRARIES.get(config.backend, ()):
        with suppress(metadata.PackageNotFoundError):
            words.append(f"{name} {metadata.version(name)}")
    return " ".join(word for word in words if word)


def hash_word(bundle: Bundle) -> int:
    """The first 8 bytes of the bundle's hash, as a journal record holds them."""
    digest = hashlib.sha256((bundle.path / "model.toml").read_bytes()).digest()
    return int.from_bytes(digest[:8], "little", signed=True)
