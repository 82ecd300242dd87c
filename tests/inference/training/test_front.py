import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hft.inference.training.front import Candidate, draw, pareto, write_csv

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)


def beats(a, b):
    return a != b and a[0] <= b[0] and a[1] >= b[1]


@given(POINTS)
def test_the_front_is_what_nothing_beats(points):
    front = pareto(points)
    on = [points[n] for n in front]
    assert on == sorted(on)
    assert len(set(on)) == len(on)
    wanted = {p for p in points if not any(beats(q, p) for q in points)}
    assert set(on) == wanted


def test_of_equals_the_first_stays():
    assert pareto([(2, 1), (1, 1), (1, 1)]) == [1]
    assert pareto([]) == []


@pytest.fixture
def candidates():
    return [
        Candidate("big", "lstm:32", 0.0, 32, 150.0, 0.95, 0.74, 5.0, -1.0),
        Candidate("small", "lstm:8", 0.3, 8, 60.0, 0.97, 0.72, 6.0, -1.5),
        Candidate("poor", "lstm:16", 0.1, 16, 100.0, 0.98, 0.71, 4.0, -2.0),
    ]


def test_both_fronts_are_in_the_table(candidates, tmp_path):
    write_csv(candidates, tmp_path / "front.csv")
    found = list(csv.DictReader((tmp_path / "front.csv").read_text().splitlines()))
    assert [row["on_accuracy_front"] for row in found] == ["true", "true", "false"]
    assert [row["on_profit_front"] for row in found] == ["false", "true", "false"]
    assert float(found[1]["latency_ns"]) == 60.0


def test_a_picture_with_and_without_profit(candidates, tmp_path):
    draw(candidates, tmp_path / "both.png", "title")
    alone = [Candidate("a", "lstm:8", 0.0, 8, 60.0, 0.9, 0.7)]
    draw(alone, tmp_path / "one.png", "title")
    for name in ("both.png", "one.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    write_csv(alone, tmp_path / "one.csv")
    (row,) = csv.DictReader((tmp_path / "one.csv").read_text().splitlines())
    assert (row["net"], row["on_profit_front"]) == ("", "false")
