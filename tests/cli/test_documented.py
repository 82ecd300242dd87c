"""The guides name every handler, verb, view and recipe key there is, and none that there is not."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner

from hft import Strategy, _core, backtest, config
from hft.cli.main import cli
from hft.data import Store
from hft.data.synth import SynthConfig
from hft.recipe_checks import to_recipe

DOCS = Path(__file__).parents[2] / "docs"
API = (DOCS / "strategy-api.md").read_text()
RECIPES = (DOCS / "recipes.md").read_text()

VIEWS = ("Instrument", "Book", "Row", "Signal", "Trade", "Bar", "Order", "Fill", "Position")


def public(cls: type[Any]) -> set[str]:
    return {n for n in dir(cls) if not n.startswith("_")}


def words_in_code(text: str) -> set[str]:
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return {
        w for code in re.findall(r"`([^`]+)`", prose) for w in re.findall(r"[A-Za-z_]\w*", code)
    }


def test_every_name_of_a_strategy_is_told() -> None:
    assert public(Strategy) - {"params_type"} <= words_in_code(API)


def test_every_handler_told_exists() -> None:
    assert set(re.findall(r"`(on_\w+)\(", API)) == {
        n for n in vars(Strategy) if n.startswith("on_")
    }


@pytest.mark.parametrize("view", VIEWS)
def test_every_name_of_a_view_is_told(view: str) -> None:
    text = API.split(f"\n**{view}**")[1].split("\n\n")[0]
    assert public(getattr(_core, view)) <= words_in_code(text)


@pytest.mark.parametrize("view", VIEWS)
def test_every_name_told_of_a_view_exists(view: str) -> None:
    text = API.split(f"\n**{view}**")[1].split("\n\n")[0]
    told = {w for w in words_in_code(text) if w.islower()}
    arguments = {
        "ticks",
        "price",
        "lots",
        "other",
        "side",
        "n",
        "row",
        "signal",
        "up",
        "imbalance_5",
    }
    handlers = {w for w in told if w.startswith("on_")}
    assert told - arguments - handlers <= public(getattr(_core, view))


def test_verbs_are_written_with_their_arguments() -> None:
    signature = (_core.StrategyBase.submit.__doc__ or "").splitlines()[0]
    for argument in ("side", "lots", "price", "tif", "tag", "cause", "parent"):
        assert argument in signature
        assert argument in API.split("`submit(")[1].split("`")[0]


TABLES = {
    "Top level": config.Recipe,
    "`[data]`": config.DataConfig,
    "`[data.synth]`": SynthConfig,
    "`[latency]`": config.LatencyConfig,
    "`[latency.server]`": config.ServerConfig,
    "`[venue]`, `[venues.NAME]`": config.VenueConfig,
    "`[venue.impact]`": config.ImpactConfig,
    "`[venue.slippage]`": config.SlippageConfig,
    "`[risk]`": config.RiskConfig,
    "`[engine]`": config.EngineSection,
    "`[models.NAME]`": config.ModelConfig,
    "`[models.NAME.reuse]`": config.ReuseConfig,
    "`[[swaps]]`": config.SwapConfig,
}
OF_MANY = {"venues", "models", "swaps"}
"""Tables by name or in a list, each with a section of its own."""


def table_rows(title: str) -> dict[str, str]:
    """Key -> default of a section's table, as written."""
    text = RECIPES.split(f"## {title}\n")[1].split("\n## ")[0]
    rows: dict[str, str] = {}
    for line in re.findall(r"^\| (`.*?`) \| (.*?) \|", text, re.M):
        keys, defaults = re.findall(r"`(\w+)`", line[0]), line[1].split(", ")
        spread = defaults if len(defaults) == len(keys) else defaults * len(keys)
        rows.update(zip(keys, spread, strict=False))
    return rows


@pytest.mark.parametrize("title", TABLES)
def test_every_key_of_a_recipe_is_told_and_no_other(title: str) -> None:
    struct = TABLES[title]
    tables = {
        f.name
        for f in msgspec.structs.fields(struct)
        if isinstance(f.type, type) and issubclass(f.type, msgspec.Struct)
    }
    assert set(table_rows(title)) == set(struct.__struct_fields__) - tables - OF_MANY


@pytest.mark.parametrize("title", [t for t in TABLES if t != "Top level"])
def test_the_defaults_told_are_the_defaults(title: str) -> None:
    struct = TABLES[title]
    defaults = {f.name: f.default for f in msgspec.structs.fields(struct)}
    if struct is SynthConfig:
        defaults = msgspec.structs.asdict(config.DataConfig().synth)
    for key, told in table_rows(title).items():
        default = defaults[key]
        if default is msgspec.NODEFAULT:
            assert told == "required", key
            continue
        if default in (None, ()):  # "all", or nothing
            continue
        written = tomllib.loads(f"v = {told.replace('`', '')}")["v"]
        assert written == msgspec.json.decode(msgspec.json.encode(default)), key


ROOT = DOCS.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in link:
            assert (page.parent / link).exists(), link


def anchor(heading: str) -> str:
    """As pages link to it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_to_a_section_lead_to_one(page: Path) -> None:
    for file, section in re.findall(r"\]\(([^)#:]*\.md)?#([^)]+)\)", page.read_text()):
        target = (page.parent / file) if file else page
        headings = re.findall(r"^#+ (.*)$", target.read_text(), re.M)
        assert section in {anchor(heading) for heading in headings}, f"{file}#{section}"


def commands(page: Path) -> list[list[str]]:
    """Words of each `hft ...` that a page shows, indented or in quotes."""
    text = page.read_text().replace("\\\n", " ")
    shown = re.findall(r"^ {2,}(?:\$ )?(hft .*)$", text, re.M) + re.findall(
        r"`(hft [^`\n]+)`", text
    )
    whole = [part for each in shown for part in re.split(r" #|;| {3,}", each)[:2]]
    return [part.split() for part in whole if part.split()[:1] == ["hft"]]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_shown_have_such_options(page: Path) -> None:
    for words in commands(page):
        told, command, rest = " ".join(words), cli, words[1:]
        while isinstance(command, click.Group) and rest and re.match("[a-z]", rest[0]):
            found = command.get_command(click.Context(command), rest[0])
            assert found is not None, f"{told}: no command {rest[0]!r}"
            command, rest = found, rest[1:]
        options = {name for p in command.params for name in p.opts} | {"--help", "-h"}
        given = {word.partition("=")[0] for word in rest if re.match(r"-{1,2}[a-z]", word)}
        assert given <= options, f"{told}: no {given - options}"


def test_scripts_and_targets_shown_are_there() -> None:
    shown = "\n".join(page.read_text() for page in PAGES)
    scripts = set(re.findall(r"python ((?:backtests|tests|examples)/[\w/]+\.py)", shown))
    assert len(scripts) > 5
    assert not [script for script in scripts if not (ROOT / script).is_file()]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    told = set(re.findall(r"`make ([a-z-]+)", shown))
    assert "bench-inference" in told
    assert told <= targets


def code_blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)


def test_names_that_pages_import_are_there() -> None:
    shown = "\n".join(block for page in PAGES for block in code_blocks(page, "python"))
    imports = re.findall(r"^from (hft[\w.]*) import (.+?)(?: *#.*)?$", shown, re.M)
    assert "hft.execution" in {module for module, _ in imports}
    for module, names in imports:
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name), (module, name)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", DOCS / "strategy-api.md"], ids=lambda p: p.name
)
def test_the_strategy_shown_runs_and_is_short(page: Path, tmp_path: Path) -> None:
    source = code_blocks(page, "python")[0]
    assert len([line for line in source.splitlines() if line.strip()]) <= 20
    (tmp_path / "maker.py").write_text(source)
    report = backtest(tmp_path / "maker.py", "synth", settings={"data.synth.duration_s": 20.0})
    assert report.run.status == "complete"
    assert len(report.fills) > 0


def test_the_walk_through_own_data_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = DOCS / "own-data.md"
    monkeypatch.chdir(tmp_path)
    Path("quotes.csv").write_text(code_blocks(page, "csv")[0])
    Path("map.toml").write_text(code_blocks(page, "toml")[0])
    arguments = ["data", "import", "csv", "quotes.csv", "--map", "map.toml", "--store", "imported"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    frame, arrays = code_blocks(page, "python")
    names: dict[str, Any] = {"MyStrategy": type("MyStrategy", (Strategy,), {})}
    exec(frame + arrays, names)
    assert names["report"].run.rows == 4
    imported = Store("imported").read("ACME.XETRA")
    assert (imported == names["events"]).all()


def test_recipes_shown_are_recipes(tmp_path: Path) -> None:
    for text in code_blocks(DOCS / "recipes.md", "toml"):
        to_recipe(tomllib.loads(text))
