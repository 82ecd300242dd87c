"""Silence for libraries that write to stderr whatever they are told."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quietly() -> Iterator[None]:
    """Keeps back what libraries write to stderr, unless they fail.

    TensorFlow's first lines come before any setting of its log is read.
    """
    sys.stderr.flush()
    was = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(was, kept.read())
            raise
        finally:
            os.dup2(was, 2)
            os.close(was)
