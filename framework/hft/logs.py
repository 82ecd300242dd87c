"""Logging to standard error: for people, or for machines as JSON lines."""

from __future__ import annotations

import logging
import sys


class JsonLines(logging.Formatter):
    """One JSON object a line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        import json

        return json.dumps(
            {
                "ts": round(record.created, 6),
                "level": record.levelname,
                "logger": record.name,
                "message": record.getMessage(),
            }
        )


def log_to_stderr(level: int, *, as_json: bool) -> None:
    """Set up logging for people, or for machines; worker processes do as their parent did."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if as_json else text)
    logging.basicConfig(level=level, handlers=[handler], force=True)


def logs_json() -> bool:
    """Whether this process logs as JSON lines."""
    return any(isinstance(h.formatter, JsonLines) for h in logging.getLogger().handlers)
