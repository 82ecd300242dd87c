"""What a fit leaves behind: a TOML fragment that a recipe includes, and its picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hft.durations import format_ns

if TYPE_CHECKING:
    from hft.fitting.blocks import Estimate
    from hft.fitting.impact import ImpactFit
    from hft.fitting.queue import QueueFit
    from hft.fitting.refill import RefillFit
    from hft.fitting.tape import Source

DIGITS = 4


def queue_fragment(fit: QueueFit) -> str:
    """`[venue]` with the queue model."""
    lines = _head("queue", fit.source)
    lines.append(
        f"# {fit.cancels:,} cancels within {fit.near_ticks} ticks of the touch, "
        f"{fit.informative:,} of them from a queue with another order"
    )
    power3 = fit.loss("power3")
    better = sorted((m for m in fit.models if m.loss < power3), key=lambda m: m.loss)
    if better:
        told = ", ".join(f"{m.model} {m.text()}" for m in better)
        lines.append(
            f"# power3 loses {power3:.3f} bits a cancel (see docs/fitting.md); less: {told}"
        )
    return _text(
        lines, ["[venue]", 'queue = "power3"', _key("queue_n", _number(fit.n.value), fit.n)]
    )


def refill_fragment(fit: RefillFit) -> str:
    """`[venue]` with half-life and share of what heals."""
    lines = _head("refill", fit.source)
    lines.append(
        f"# {fit.sweeps:,} trades, depth of {fit.levels} levels every {fit.step_ns / 1e9:g} s; "
        f"b = {fit.b.text()}"
    )
    keys = [
        "[venue]",
        _key("refill_half_life", f'"{_duration(fit.half_life_s.value)}"', fit.half_life_s, " s"),
    ]
    if fit.share is not None:
        share = fit.share.probability
        keys.append(_key("refill_probability", _number(share.value), share))
    return _text(lines, keys, fit.untold)


def impact_fragment(fit: ImpactFit) -> str:
    """`[venue.impact]`; exponentials without weight are left out."""
    lines = _head("impact", fit.source)
    lines += [
        f"# {fit.sweeps:,} trades, mids every {fit.step_ns / 1e9:g} s; at once "
        f"{fit.at_once.text()} ticks a lot; beyond the walk through displayed levels",
        "# The tape's response holds what other traders knew: an upper bound for your own.",
    ]
    kept = [(w, h) for w, h in zip(fit.weights, fit.half_lives_s, strict=True) if w.value > 0]
    keys = [
        "[venue.impact]",
        *(f"# half-life {h:g} s: {w.text()} ticks a lot" for w, h in kept),
        "weights = [" + ", ".join(_number(w.value) for w, _ in kept) + "]",
        "half_lives = [" + ", ".join(f'"{_duration(h)}"' for _, h in kept) + "]",
        _key("permanent", _number(fit.permanent.value), fit.permanent),
        'unit = "ticks_per_lot"',
    ]
    return _text(lines, keys, fit.untold)


def _head(what: str, source: Source) -> list[str]:
    return [
        f"# hft fit {what}: {source.name} of {Path(source.path).name}, {source.range()}",
        '# include in a recipe: include = ["PATH/OF/THIS/FILE"]; its own keys win over these',
    ]


def _text(lines: list[str], keys: list[str], untold: tuple[str, ...] = ()) -> str:
    """Values that the data cannot tell are there to be seen, and set nothing."""
    if untold:
        lines = [*lines, *(f"# The data cannot tell: {why}." for why in untold)]
        keys = [f"# {key}" for key in keys]
    return "\n".join([*lines, "", *keys]) + "\n"


def _key(name: str, value: str, estimate: Estimate, unit: str = "") -> str:
    interval = f"{estimate.low:.3g} to {estimate.high:.3g}{unit}"
    return f"{name} = {value}  # 95 % interval {interval}"


def _number(value: float) -> str:
    text = f"{value:.{DIGITS}g}"
    return text if any(c in text for c in ".e") else f"{text}.0"


def _duration(seconds: float) -> str:
    scale = 10 ** max(0, len(str(round(seconds * 1e9))) - DIGITS)
    return format_ns(round(seconds * 1e9 / scale) * scale)
