"""Keyed draws in Python are those of the core, and no two uses share a stream."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from hft import _core
from hft.execution.draws import Stream, draw_bits, draw_normal, draw_uniform

RNG = Path(__file__).parents[2] / "framework/core/rng.hpp"


@pytest.mark.parametrize(("seed", "stream"), [(0, 1), (7, Stream.SERVICE), (2**63 - 1, 770)])
def test_bits_are_those_of_the_core(seed: int, stream: int) -> None:
    many = 1 << 20
    ts = np.arange(-500, 500) * 999_999_937
    for n in (0, 3):
        core = _core.Latency.empirical(np.arange(many), seed, stream).at(ts, np.full(ts.size, n))
        assert (draw_bits(seed, stream, ts, n) % many == core.astype(np.uint64)).all()


def test_streams_are_those_of_the_core() -> None:
    body = re.search(r"enum class Draw[^{]*\{(.*?)\};", RNG.read_text(), re.DOTALL)
    assert body is not None
    names = re.findall(r"^\s*([A-Z]+)\b", re.sub(r"//.*", "", body[1]), re.MULTILINE)
    assert {name: k for k, name in enumerate(names, start=1)} == dict(Stream.__members__)


def test_uniform_and_normal_draws_have_their_laws() -> None:
    entity = np.arange(100_000, dtype=np.uint64)
    uniform, normal = draw_uniform(1, 2, entity), draw_normal(1, 2, entity)
    assert 0 <= uniform.min() < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 4 / np.sqrt(12 * uniform.size)
    assert abs(normal.mean()) < 4 / np.sqrt(normal.size)
    assert abs(normal.std() - 1) < 0.01
