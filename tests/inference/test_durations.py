import pytest
from hypothesis import given
from hypothesis import strategies as st

from hft.durations import LONGEST_NS, format_ns, parse_ns
from hft.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("250ms", 250_000_000),
        ("1.5s", 1_500_000_000),
        (" 2 min ", 120_000_000_000),
        ("0us", 0),
        (7, 7),
    ],
)
def test_parse(text, ns):
    assert parse_ns(text) == ns


@pytest.mark.parametrize("wrong", ["", "10", "1 week", "-1s", -1, 1.5, True, None, "0.5ns"])
def test_what_is_no_duration_is_refused_by_name(wrong):
    with pytest.raises(ConfigError, match="duration"):
        parse_ns(wrong)


@pytest.mark.parametrize("wrong", ["36526d", "99999999999999d", LONGEST_NS + 1])
def test_what_no_clock_could_hold_is_refused(wrong):
    with pytest.raises(ConfigError, match="too long: expected at most a century"):
        parse_ns(wrong)


@given(st.integers(0, LONGEST_NS))
def test_format_is_read_back(ns):
    assert parse_ns(format_ns(ns)) == ns
