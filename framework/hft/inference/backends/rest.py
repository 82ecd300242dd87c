"""TensorFlow Serving's REST interface over one connection that is kept open.

    GET  URL                  state of the model's versions
    GET  URL/metadata         its signatures
    POST URL:predict          {"signature_name", "inputs": {name: tensor}} -> {"outputs": ...}
                              {"signature_name", "instances": [row]}      -> {"predictions": [row]}

where URL is http://HOST:8501/v1/models/NAME, with /versions/N for one version and /labels/NAME for
the one that a label points at. Of a single output the name is left out. What goes wrong comes as
{"error": words}. Numbers may be NaN and Infinity, which JSON has not.

Nothing is tried twice: an answer that is late is worth nothing, and a caller that waits for the
second try would not know. After an error the connection is closed, and the next request opens
another. One that the server has closed while it was idle (a restart, a proxy that tidies up) is
noticed before anything is sent on it, and told as a warning.
"""

from __future__ import annotations

import http.client
import json
import logging
import select
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hft.errors import ConfigError, ModelError, VenueDisconnected, VenueTimeout

log = logging.getLogger(__name__)

_JSON = {"Content-Type": "application/json"}
_SHOWN = 300
_PAUSE_S = 0.05
_READY, _FAILED = "AVAILABLE", "END"


class RestClient:
    """One connection; for one thread at a time."""

    def __init__(self, url: str, timeout_s: float) -> None:
        parts = urlsplit(url)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or "/models/" not in parts.path
        ):
            raise ConfigError(
                f"url is {url!r}, want http://HOST:8501/v1/models/NAME as TensorFlow Serving has it"
            )
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self.url = url.rstrip("/")
        self._path = parts.path.rstrip("/")
        self._timeout_s = timeout_s
        self._connection = kind(parts.hostname, parts.port, timeout=timeout_s)

    def predict(self, body: bytes) -> tuple[Any, http.client.HTTPMessage]:
        """The answer to a request, and its headers.

        Raises:
            ModelError: the server says no, or its answer is no JSON.
            VenueTimeout, VenueDisconnected: no answer.
        """
        status, content, headers = self._sent("POST", ":predict", body)
        return self._read(":predict", status, content), headers

    def metadata(self) -> Any:
        """Signatures of the model."""
        status, content, _ = self._sent("GET", "/metadata", None)
        return self._read("/metadata", status, content)

    def wait_ready(self, ready_s: float) -> None:
        """Until a version is served.

        Raises:
            ModelError: the server knows no such model, or failed to load it.
            VenueTimeout: it was not ready in time.
        """
        end = time.monotonic() + ready_s
        while True:
            try:
                status, content, _ = self._sent("GET", "", None)
                told = _not_ready(self._read("", status, content), self.url)
                if not told:
                    return
            except (VenueDisconnected, VenueTimeout) as error:  # not there, or busy loading
                told = str(error)
            if time.monotonic() > end:
                raise VenueTimeout(f"{self.url}: not ready after {ready_s:g} s: {told}")
            time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Closes the connection; the next request opens another."""
        self._connection.close()

    def _sent(
        self, method: str, tail: str, body: bytes | None
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        if self._was_closed():
            log.warning("%s: the server closed the connection; another is opened", self.url)
            self.close()
        try:
            self._connection.request(method, self._path + tail, body, _JSON)
            answer = self._connection.getresponse()
            return answer.status, answer.read(), answer.headers
        except TimeoutError as error:
            self.close()
            raise VenueTimeout(
                f"{method} {self.url}{tail}: no answer in {self._timeout_s:g} s"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            told = str(error) or type(error).__name__
            raise VenueDisconnected(f"{method} {self.url}{tail}: {told}") from error

    def _was_closed(self) -> bool:
        """By the other side, while nothing was asked."""
        sock = self._connection.sock
        if sock is None:
            return False
        poll = select.poll()
        poll.register(sock, select.POLLRDHUP)  # hang-ups and errors are told unasked
        return bool(poll.poll(0))

    def _read(self, tail: str, status: int, content: bytes) -> Any:
        told = " ".join(content.decode("utf-8", "replace").split())[:_SHOWN]
        if status != http.client.OK:
            raise ModelError(f"{self.url}{tail}: status {status}: {told}")
        try:
            return msgspec.json.decode(content)
        except msgspec.DecodeError as error:
            return self._with_nan(tail, content, told, error)

    def _with_nan(self, tail: str, content: bytes, told: str, strict: Exception) -> Any:
        try:
            return json.loads(content)  # slower, and knows NaN and Infinity
        except ValueError:
            raise ModelError(f"{self.url}{tail}: answer is not JSON ({strict}): {told}") from strict


def _not_ready(told: Any, url: str) -> str:
    """Why no version answers; empty: one does."""
    try:
        versions = [
            (v["version"], v["state"], v.get("status", {})) for v in told["model_version_status"]
        ]
    except (KeyError, TypeError) as error:
        raise ModelError(
            f"{url}: not the status of a served model: {str(told)[:_SHOWN]}"
        ) from error
    if any(state == _READY for _, state, _ in versions):
        return ""
    errors = [s.get("error_message") for _, state, s in versions if state == _FAILED]
    if versions and len(errors) == len(versions) and any(errors):
        raise ModelError(f"{url}: the server could not load it: {'; '.join(map(str, errors))}")
    return ", ".join(f"version {v} is {state}" for v, state, _ in versions) or "no version"
