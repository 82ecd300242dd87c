"""TensorFlow's threads in a process of tests: one, whichever test makes it begin."""

from __future__ import annotations

import os

os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
