"""Charts one below the other as one SVG file that stands by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from hft.analysis.svg import LEFT, WIDTH, Axes, Series, painted

HEADING, TITLE = 52, 22  # room above the first chart, and above each [px]


def sheet(panels: Sequence[tuple[str, Axes, Sequence[Series]]], heading: str, under: str) -> str:
    """The file's text.

    Args:
        panels: a title, layout and series each; one without a point is left out.
        heading: said at the top.
        under: said below it.
    """
    parts = [
        f'<text class="heading" x="{LEFT}" y="22">{escape(heading)}</text>',
        f'<text x="{LEFT}" y="39">{escape(under)}</text>',
    ]
    height = HEADING
    for title, axes, series in panels:
        body = painted(axes, series)
        if body is None:
            continue
        parts.append(f'<g transform="translate(0 {height})">{_caption(title, series)}</g>')
        parts.append(f'<g transform="translate(0 {height + TITLE})">{body}</g>')
        height += TITLE + axes.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{escape(heading)}">'
        f'<style>{_style()}</style><rect class="paper" width="100%" height="100%"/>'
        f"{''.join(parts)}</svg>\n"
    )


def _caption(title: str, series: Sequence[Series]) -> str:
    """A panel's title, and beside it what the lines are."""
    parts = [f'<text class="title" x="{LEFT}" y="14">{escape(title)}</text>']
    x = LEFT + 20 + round(6.5 * len(title))
    for each in series if len(series) > 1 else ():
        parts.append(f'<path class="line {each.tone}" d="M{x},10h14"/>')
        parts.append(f'<text x="{x + 19}" y="14">{escape(each.label)}</text>')
        x += 32 + round(5.5 * len(each.label))
    return "".join(parts)


def _style() -> str:
    """The charts' rules of report.css, light only, since not every viewer knows variables."""
    css = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"--([a-z0-9-]+):(#[0-9a-f]+)", css.partition("@media")[0]))
    rules = [
        ".paper{fill:var(--paper)}",
        "text{font-family:system-ui,'Segoe UI',Roboto,'Liberation Sans',sans-serif}",
    ]
    for selector, body in re.findall(r"^(\.hft-report [^{]*){([^}]*)}", css, re.M):
        of_chart = " svg ." in selector or selector.strip() == ".hft-report svg text"
        if of_chart or (body.strip().startswith("color:var") and "," not in selector):
            short = selector.replace(".hft-report svg ", "").replace(".hft-report ", "")
            rules.append(f"{short.strip()}{{{body.strip()}}}")
    # After the rule for all text.
    rules.append(".heading{font-size:15px;font-weight:600} .title{font-size:12px}")
    rules.append(".heading,.title{fill:var(--ink)}")
    return re.sub(r"var\(--([a-z0-9-]+)\)", lambda found: colours[found[1]], " ".join(rules))
