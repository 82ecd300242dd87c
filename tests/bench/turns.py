"""A worker process that runs one case at a time, when told: JSON lines in, JSON lines out.

Two of them take turns, so that neither side runs on a machine the other did not see, and compiling
and loading stay outside the figures.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


class Worker:
    """The parent's end."""

    def __init__(self, python: str, script: str, folder: str) -> None:
        self._process = subprocess.Popen(
            [python, script, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )

    def run(self, case: str) -> dict[str, Any]:
        """Runs a case once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(case + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the worker died in case {case}, see above")
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def cpu() -> str:
    """The machine's name, for the line above a table."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (x.partition(":")[2].strip() for x in lines if x.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def serve(run: Callable[[str], dict[str, Any]]) -> None:
    """The worker's end: answers until its input is closed. Stray output goes to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(run(line.strip())), file=answers, flush=True)
