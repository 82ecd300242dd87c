"""The report as one HTML page that needs nothing but itself."""

from __future__ import annotations

from html import escape
from pathlib import Path

import msgspec

from hft.analysis import execution_tables, tables
from hft.analysis.figures import Figures
from hft.analysis.pictures import Picture, pictures_of
from hft.analysis.run_data import RunData


def page(run: RunData, figures: Figures) -> str:
    """A whole page."""
    title = escape(f"{run.name} · {run.kind}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>body{{margin:0;background:#fff}}"
        "@media (prefers-color-scheme:dark){body{background:#12161d}}</style></head>"
        f"<body>{fragment(run, figures)}</body></html>\n"
    )


def fragment(run: RunData, figures: Figures) -> str:
    """The report without the page around it, for a notebook; its styles reach nothing else."""
    parts = [
        _head(figures),
        _banner(figures),
        _notes(figures["notes"]),
        _tiles(figures),
        _figure_row(pictures_of(run, figures)),
        *(_table(make(figures)) for make in (tables.pnl, tables.variants, tables.trading)),
        *(_table(table) for table in execution_tables.shortfalls(figures)),
        *(_table(make(figures)) for make in (tables.markouts, tables.latency)),
        *(_table(make(figures)) for make in execution_tables.ONE_EACH),
        '<div class="side">',
        *(_table(make(figures)) for make in (tables.refusals, tables.endings, tables.counters)),
        "</div>",
        _details("Recipe", figures["recipe"]),
        _details("Environment", figures["environment"]),
    ]
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    return f'<style>{style}</style><div class="hft-report">{"".join(parts)}</div>'


def _head(figures: Figures) -> str:
    run = figures["run"]
    lines = [f"{run['kind']} of {run['strategy']}", *tables.about(figures)]
    return f"<h1>{escape(run['name'])}</h1>" + "".join(
        f'<p class="faint">{escape(x)}</p>' for x in lines
    )


def _banner(figures: Figures) -> str:
    run, words = figures["run"], []
    if run["status"] != "complete":
        words.append(
            f"Partial report: the run {'was ' * (run['status'] == 'interrupted')}{run['status']}."
        )
    if run["error"]:
        words.append(run["error"])
    if not figures["headline"]["identity_holds"]:
        words.append(
            "Identity broken: the parts do not add up to the account. Trust no amount on this page."
        )
    return f'<p class="banner" role="alert">{escape(" ".join(words))}</p>' if words else ""


def _notes(notes: list[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes">{items}</ul>' if items else ""


def _tiles(figures: Figures) -> str:
    tiles = (
        f"<div><span>{escape(name)}</span><b>{escape(value)}</b><span>{escape(words)}</span></div>"
        for name, value, words in tables.headline(figures)
    )
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _figure_row(pictures: list[Picture]) -> str:
    figures = (
        f"<figure><h2>{escape(p.title)}</h2>{p.html}<figcaption>{escape(p.caption)}</figcaption></figure>"
        for p in pictures
    )
    return f'<div class="pictures">{"".join(figures)}</div>'


def _table(table: tables.Table) -> str:
    if not table.rows:
        return ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows
    )
    note = f'<p class="faint">{escape(table.note)}</p>' if table.note else ""
    rows = f"<table><tr>{head}</tr>{body}</table>"
    return f"<section><h2>{escape(table.title)}</h2>{rows}{note}</section>"


def _details(title: str, content: Figures) -> str:
    if not content:
        return ""
    text = msgspec.json.format(msgspec.json.encode(content), indent=2).decode()
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"
