import pytest

from hft.errors import ConfigError
from hft.inference.card import LayerEntry
from hft.inference.training.model_spec import model_spec


def test_kinds_follow_each_other():
    spec = model_spec("conv:16x3,8x2 + lstm:32+dense:4")
    assert spec.hidden == (
        LayerEntry(kind="conv", units=16, width=3, activation="relu"),
        LayerEntry(kind="conv", units=8, width=2, activation="relu"),
        LayerEntry(kind="lstm", units=32),
        LayerEntry(kind="dense", units=4, activation="relu"),
    )
    head = spec.entries(3)[-1]
    assert (head.kind, head.units, head.activation) == ("dense", 3, "softmax")


@pytest.mark.parametrize(
    ("text", "reach"), [("lstm:8", None), ("conv:8x3,8x5", 6), ("dense:9", 0), ("gru:1", None)]
)
def test_what_an_answer_reaches_back_to(text, reach):
    assert model_spec(text).reach == reach


def test_a_transformer_has_no_native_layers():
    spec = model_spec("transformer:d=16,heads=4,layers=2")
    assert (spec.transformer.d, spec.transformer.heads, spec.transformer.layers) == (16, 4, 2)
    assert spec.entries(3) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rnn:32", "no kind of layer 'rnn'"),
        ("lstm", "lstm has ''"),
        ("lstm:32,wide", "lstm has 'wide': want units such as 32"),
        ("lstm:0", "lstm has 0: want each from 1"),
        ("conv:32", "want units x rows such as 32x5"),
        ("transformer:d=30,heads=4", "a multiple of heads"),
        ("transformer:size=3", "'size=3': want d=32"),
        ("transformer:d=8+lstm:4", "stands alone"),
    ],
)
def test_a_wrong_spec_says_what_would_be_right(text, words):
    with pytest.raises(ConfigError, match=words):
        model_spec(text)
