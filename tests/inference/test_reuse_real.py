"""The script behind the figures of real data in docs/reuse.md still runs, on its smaller market."""

import importlib

import pytest


def test_reuse_by_a_model_of_real_data_is_told(data_dir, request, tmp_path, capsys, monkeypatch):
    pytest.importorskip("keras", reason="training needs the extra [train]")
    monkeypatch.syspath_prepend(request.config.rootpath / "backtests")
    script = importlib.import_module("reuse_real")
    market = importlib.import_module("real_model").MARKETS["binance"]
    if not (data_dir / market.file).is_file():
        pytest.skip(f"no {market.file}")
    monkeypatch.setattr(script, "MODELS", (("dense:8", 0), ("lstm:8", 3)))
    monkeypatch.setattr(script, "CASES", (("50us", {"epsilon": 0.3}),))
    script.of_columns(market, data_dir, tmp_path, "columns of lstm_mm, rows at every packet")
    said = capsys.readouterr().out
    assert "rows at every packet: 6,932 to test on" in said
    lines = [
        line.split(" | ") for line in said.splitlines() if line.startswith(("| dense", "| ls"))
    ]
    assert [line[0].removeprefix("| ") for line in lines] == ["dense:8", "lstm:8, window 3"]
    # With the bound measured, no reused answer named another class, and hardly any row is alike.
    for line in lines:
        assert line[12].startswith(("0 of ", "-"))
        assert float(line[4].removesuffix(" %")) < 25
