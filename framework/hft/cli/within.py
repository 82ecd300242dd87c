"""Numbers of options that have bounds."""

from __future__ import annotations

import math
from typing import Any

import click


class Within(click.FloatRange):
    """A finite number within bounds: click's own range lets NaN pass, and infinity without one."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{value} is no finite number.", param, ctx)
        return found
