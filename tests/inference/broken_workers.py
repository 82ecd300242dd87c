"""Work for other processes that goes wrong in the ways converters do."""

import os
import signal
import time
from pathlib import Path


def double(value):
    return 2 * value


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
