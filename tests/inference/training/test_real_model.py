"""The script behind the tables of docs/training.md still runs, on its smaller market."""

import importlib.util

import pytest


def test_a_model_of_real_data_is_judged(data_dir, request, tmp_path, capsys, monkeypatch):
    pytest.importorskip("keras", reason="training needs the extra [train]")
    file = request.config.rootpath / "backtests" / "real_model.py"
    spec = importlib.util.spec_from_file_location("real_model", file)
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "real_model", script)
    spec.loader.exec_module(script)
    market = script.MARKETS["binance"]
    if not (data_dir / market.file).is_file():
        pytest.skip(f"no {market.file}")
    monkeypatch.setattr(script, "SEEDS", (1,))
    script.judge(market, data_dir, tmp_path)
    said = capsys.readouterr().out
    assert "5,257 rows" in said
    assert "| AUC up, placebo | " in said
    assert "| 2 bp | " in said
