"""Bad input: one line with the thing, the value and what would be right; nothing half written."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hft.cli.main import cli
from hft.errors import HftError
from hft.plan import prepare

STRATEGY = "strategies/join_bid.py"

FILES = {
    "two.py": "from hft import Strategy\nclass A(Strategy): ...\nclass B(Strategy): ...\n",
    "none.py": "x = 1\n",
    "syntax.py": "def f(:\n",
    "imports.py": "import no_such_module\n",
    "model.py": "import hft\nclass M(hft.Strategy):\n    model = hft.Model('absent')\n",
    "models.py": "import hft\nclass M(hft.Strategy):\n    models = {'a': 'absent'}\n",
    "features.py": "import hft\nclass F(hft.Strategy):\n    features = 3\n",
    "inputs.py": "import hft\nclass I(hft.Strategy):\n    def inputs(self, p): return 1 / 0\n",
    "init.py": "import hft\nclass B(hft.Strategy):\n    def __init__(self): self.x = 1\n",
    "params.py": "import hft\nclass P(hft.Strategy):\n    params: 'Absent'\n",
    "exits.py": "raise SystemExit(0)\n",
    "not.toml": "seed = = 1\n",
    "key.toml": "[latency]\nentri = '1ms'\n",
    "latin.toml": b"\xff\xfe",
    "text.npy": "garbage",
    "text.parquet": "garbage",
    "text.csv": "a,b\n",
}

REFUSED = [
    # arguments, exit code, words of the message
    (["absent.py"], 3, ["absent.py", "no strategy file"]),
    (["two.py"], 3, ["two.py", "'A', 'B'", "two.py:ClassName"]),
    (["two.py:C"], 3, ["no strategy C", "'A', 'B'"]),
    (["none.py"], 3, ["none.py", "none"]),
    (["syntax.py"], 3, ["syntax.py", "line 1"]),
    (["imports.py"], 3, ["imports.py", "no_such_module"]),
    (["model.py"], 4, ["absent", "absent.bundle"]),
    (["models.py"], 3, ["M", "'absent'", "Model("]),
    (["features.py"], 3, ["F", "3", "Features("]),
    (["inputs.py"], 3, ["I.inputs", "ZeroDivisionError"]),
    (["init.py"], 3, ["B.__init__", "super().__init__()"]),
    (["params.py"], 2, ["P.params", "'Absent'"]),
    (["exits.py"], 3, ["exits.py", "SystemExit"]),
    ([STRATEGY, "--recipe", "absent.toml"], 2, ["absent.toml"]),
    ([STRATEGY, "--recipe", "not.toml"], 2, ["not.toml", "line 1"]),
    ([STRATEGY, "--recipe", "latin.toml"], 2, ["latin.toml"]),
    ([STRATEGY, "--recipe", "strategies"], 2, ["strategies", "directory"]),
    ([STRATEGY, "--recipe", "key.toml"], 2, ["latency.entri", "did you mean entry"]),
    ([STRATEGY, "--set", "lots"], 2, ["'lots'", "key=value"]),
    ([STRATEGY, "--set", "=3"], 2, ["'=3'", "key=value"]),
    ([STRATEGY, "--set", "lots=many"], 2, ["lots", "int"]),
    ([STRATEGY, "--set", "lots=1.5"], 2, ["lots", "int"]),
    ([STRATEGY, "--set", "edge=nan"], 2, ["params.edge", "nan", "finite"]),
    ([STRATEGY, "--set", "size=1"], 2, ["size", "lots", "edge"]),
    ([STRATEGY, "--set", "latency.entry=fast"], 2, ["latency.entry", "'fast'", "ns, us, ms"]),
    ([STRATEGY, "--set", "latency.entry=-1ms"], 2, ["latency.entry", "'-1ms'"]),
    ([STRATEGY, "--set", "latency.entry=2h"], 2, ["latency.entry", "'2h'", "at most"]),
    ([STRATEGY, "--set", "latency.scale=inf"], 2, ["latency.scale", "inf"]),
    ([STRATEGY, "--set", "engine.sample=1ns"], 2, ["engine.sample", "'1ns'", "1ms"]),
    ([STRATEGY, "--set", "risk.window=x"], 2, ["risk.window", "'x'"]),
    ([STRATEGY, "--set", "venue.maker_fee=nan"], 2, ["venue.maker_fee", "nan"]),
    ([STRATEGY, "--set", "venue.queue=fifo"], 2, ["venue.queue", "'fifo'", "power3"]),
    ([STRATEGY, "--set", "seed=-1"], 2, ["seed", "-1", ">= 0"]),
    ([STRATEGY, "--set", "seed.x=1"], 2, ["seed", "int"]),
    ([STRATEGY, "--set", "name=../up"], 2, ["name", "'../up'"]),
    ([STRATEGY, "--seed", "-1"], 2, ["--seed", "-1"]),
    ([STRATEGY, "--seed", "9" * 30], 2, ["seed", "<="]),
    ([STRATEGY, "--set", "data.synth.duration_s=0"], 2, ["data.synth.duration_s", "0", "> 0"]),
    ([STRATEGY, "--set", "data.synth.duration_s=inf"], 2, ["data.synth.duration_s", "inf"]),
    ([STRATEGY, "--set", "data.synth.start=soon"], 2, ["'soon'", "ISO"]),
    ([STRATEGY, "--from", "2024-01-01"], 2, ["data.start", "data.synth.start"]),
    ([STRATEGY, "--symbol", "NOPE"], 2, ["'NOPE'", "BTCUSDT.SIM"]),
    ([STRATEGY, "--data", "absent"], 5, ["absent"]),
    ([STRATEGY, "--data", "strategies"], 5, ["strategies", "no market data"]),
    ([STRATEGY, "--data", "text.csv"], 5, ["text.csv", ".parquet"]),
    ([STRATEGY, "--data", "text.parquet"], 5, ["text.parquet"]),
    ([STRATEGY, "--data", "text.npy"], 2, ["text.npy", "data.tick", "data.lot"]),
    ([STRATEGY, "--out", "text.csv"], 2, ["text.csv"]),
]


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(home)
    for name, content in FILES.items():
        data = content if isinstance(content, bytes) else content.encode()
        (home / name).write_bytes(data)
    return home


@pytest.mark.parametrize(
    ("args", "code", "words"),
    REFUSED,
    ids=lambda v: " ".join(map(str, v)) if isinstance(v, list) else None,
)
def test_a_bad_backtest_is_refused_in_one_line(
    folder: Path, args: list[str], code: int, words: list[str]
) -> None:
    before = sorted(folder.rglob("*"))
    result = CliRunner().invoke(cli, ["backtest", *args])
    if isinstance(result.exception, HftError):
        message, found = str(result.exception), result.exception.exit_code
    else:  # click's own usage errors
        message, found = result.output, result.exit_code
    assert found == code, message
    for word in words:
        assert word in message
    if isinstance(result.exception, HftError):
        assert "\n" not in message
    left = [
        p for p in sorted(folder.rglob("*")) if p not in before and "__pycache__" not in p.parts
    ]
    assert left in ([], [folder / "backtests" / "runs"])


@pytest.mark.parametrize("tick", ["nan", "inf", "0", "-1", "wide"])
def test_a_tick_is_a_number_above_0(folder: Path, tick: str) -> None:
    arguments = ["data", "check", "text.npy", f"--tick={tick}", "--lot=1"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert "--tick" in result.output
    assert tick in result.output.split("--tick")[-1]


OTHERS = [
    (["report", "absent"], 5, ["absent", "run.json"]),
    (["compare", "absent", "absent"], 5, ["absent"]),
    (["verify", "absent"], 5, ["absent", "run folder"]),
    (["live", STRATEGY, "--venue", "sim", "--duration", "soon"], 2, ["'soon'"]),
    (["live", "--venue", "sim"], 2, ["pyproject.toml"]),
    (["backtest"], 2, ["pyproject.toml"]),
    (["data", "info", "absent"], 5, ["absent"]),
    (["data", "info", "strategies"], 5, ["strategies", "no market data"]),
    (["data", "check", "strategies"], 5, ["strategies", "no market data"]),
    (["data", "import", "xml", "text.csv", "--store", "s"], 2, ["'xml'", "parquet"]),
    (["data", "synth", "--store", "s", "--set", "duration=1"], 2, ["duration", "duration_s"]),
    (["data", "synth", "--store", "s", "--set", "seed=-1"], 2, ["seed is -1", ">= 0"]),
    (["new", "9lives"], 2, ["'9lives'", "my-maker"]),
    (["new", "strategies"], 2, ["strategies", "exists"]),
]


@pytest.mark.parametrize(
    ("args", "code", "words"), OTHERS, ids=lambda v: v[0] if isinstance(v, list) else None
)
def test_other_commands_refuse_in_one_line(
    folder: Path, args: list[str], code: int, words: list[str]
) -> None:
    error = CliRunner().invoke(cli, args).exception
    assert isinstance(error, HftError), repr(error)
    assert error.exit_code == code
    assert "\n" not in str(error)
    for word in words:
        assert word in str(error)


@pytest.mark.parametrize(
    "args", [["nosuch"], ["live"], ["live", "--venue", "moon"], ["report"], ["--nosuch"]]
)
def test_usage_errors_end_with_2(folder: Path, args: list[str]) -> None:
    assert CliRunner().invoke(cli, args).exit_code == 2


@pytest.mark.parametrize("text", ["2024-01-01T00:00:02", "'2024-01-01T00:00:02'"])
def test_a_date_of_a_recipe_may_stand_without_quotes(folder: Path, text: str) -> None:
    (folder / "dated.toml").write_text(f"[data.synth]\nstart = {text}\n")
    for dated in (
        prepare(folder / STRATEGY, recipe=folder / "dated.toml"),
        prepare(folder / STRATEGY, assignments=(f"data.synth.start={text}",)),
    ):
        assert dated.recipe.data.synth.start == "2024-01-01T00:00:02"
