"""One call in a process of its own, with a time limit: converters hang, crash and eat memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from hft.inference.build.apart import serve; serve({order!r}, {answer!r})"
)
_THREADS = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "-1"}


class ApartError(Exception):
    """The call raised, crashed, or ran out of time; says which in a line."""


def call_apart(work: str, arguments: dict[str, Any], limit_s: float) -> Any:
    """What `module:function` returns, called with these arguments in a fresh interpreter.

    Args:
        work: `module:function`.
        arguments: what JSON can tell; larger things go by file.
        limit_s: after so long the process and its children are killed.

    Raises:
        ApartError: there is no answer.
    """
    with tempfile.TemporaryDirectory(prefix="hft-build-") as folder:
        order, answer, said = (Path(folder) / name for name in ("order", "answer", "said"))
        order.write_text(json.dumps({"work": work, "arguments": arguments}), encoding="utf-8")
        start = _START.format(path=sys.path, order=str(order), answer=str(answer))
        with said.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", start],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=os.environ | _THREADS | _QUIET,
                start_new_session=True,  # Ctrl-C reaches us alone; we end the whole group
            )
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                raise ApartError(f"took longer than {limit_s:g} s") from None
            finally:
                _end(process)
        return _answer(process.returncode, answer, said)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _answer(code: int, answer: Path, said: Path) -> Any:
    if answer.exists():
        told = json.loads(answer.read_text(encoding="utf-8"))
        if "error" in told:
            raise ApartError(told["error"])
        return told["result"]
    if code < 0:
        name = signal.Signals(-code).name
        memory = ", perhaps out of memory" if -code == signal.SIGKILL else ""
        raise ApartError(f"was killed by {name}{memory}")
    lines = said.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    raise ApartError(f"ended with {code}: {lines[-1] if lines else 'no word'}")


def serve(order: str, answer: str) -> None:
    """The other side: does what the order says, and writes what came of it."""
    told = json.loads(Path(order).read_text(encoding="utf-8"))
    module, _, name = told["work"].partition(":")
    try:
        made = {"result": getattr(import_module(module), name)(**told["arguments"])}
    except MemoryError:
        made = {"error": "ran out of memory"}
    except Exception as error:
        first = str(error).strip().splitlines() or [""]
        made = {"error": f"{type(error).__name__}: {first[0]}"}
    draft = Path(answer + ".draft")
    draft.write_text(json.dumps(made), encoding="utf-8")
    draft.replace(answer)
