"""Execution models: Python faces of what the core does to orders and time."""

from hft.execution.impact import Kernel
from hft.execution.profile_of_log import LogColumns, LogOptions, profile_of_log
from hft.execution.profile_of_run import profile_of_run
from hft.execution.profiles import LatencyProfile, load_profile, save_profile

__all__ = [
    "Kernel",
    "LatencyProfile",
    "LogColumns",
    "LogOptions",
    "load_profile",
    "profile_of_log",
    "profile_of_run",
    "save_profile",
]
