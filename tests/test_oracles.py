"""ORACLES.md names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_every_test_that_is_named_is_there() -> None:
    named, file = 0, Path()
    for line in (HERE / "ORACLES.md").read_text().splitlines():
        for code, title in re.findall(r"`([^`]+)`|\"([^\"]+)\"", line):
            if title:
                assert f'"{title.rstrip("…")}' in re.sub(r'"\s*"', "", file.read_text()), title
            elif code.startswith("make "):
                assert f"\n{code.removeprefix('make ')}:" in (HERE.parent / "Makefile").read_text()
            elif "/" in code or "::" in code:
                path, _, test = code.rpartition("::") if "::" in code else (code, "", "")
                if path:
                    assert list(HERE.glob(path)), path
                if path and "*" not in path:
                    file = HERE / path
                if test:
                    assert f"def {test}(" in file.read_text(), test
            named += 1
    assert named > 80
