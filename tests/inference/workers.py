"""Work for other processes: that goes wrong in the ways converters do, and several at once."""

import os
import signal
import time
from pathlib import Path

from hft.inference.build.originals import read_original


def double(value):
    return 2 * value


def read_all(files, folder):
    """`read_original` of several files, for one start of TensorFlow."""
    return {
        Path(file).name: read_original(file, str(Path(folder) / f"{Path(file).name}.npz"), 0)
        for file in files
    }


def hang(**given):
    time.sleep(60)


def crash(**given):
    os.kill(os.getpid(), signal.SIGSEGV)


def killed(**given):
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(**given):
    raise ValueError("no such op\nand a long story after it")


def starve(**given):
    raise MemoryError


def leave(**given):
    print("said before it left", flush=True)
    os._exit(3)


def write_nothing(**given):
    pass


def write_little(file, **given):
    Path(file).write_bytes(b"TFL3")
