"""TensorFlow Serving's REST interface over one connection that is kept open.

    GET  URL                  state of the model's versions
    GET  URL/metadata         its signatures
    POST URL:predict          {"signature_name", "inputs": {name: tensor}} -> {"outputs": ...}
                              {"signature_name", "instances": [row]}      -> {"predictions": [row]}

where URL is http://HOST:8501/v1/models/NAME, with /versions/N for one version. Of a single output
the name is left out. What goes wrong comes as {"error": words}.

Nothing is tried twice: an answer that is late is worth nothing, and a caller that waits for the
second try would not know. After an error the connection is closed, and the next request opens
another.
"""

from __future__ import annotations

import http.client
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hft.errors import ConfigError, ModelError, VenueDisconnected, VenueTimeout

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

    def wait_ready(self, ready_s: float) -> str:
        """The version that is served, once there is one.

        Raises:
            ModelError: the server knows no such model, or failed to load it.
            VenueTimeout: it was not ready in time.
        """
        end = time.monotonic() + ready_s
        while True:
            try:
                status, content, _ = self._sent("GET", "", None)
                version, told = _state_of(self._read("", status, content), self.url)
                if version:
                    return version
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

    def _read(self, tail: str, status: int, content: bytes) -> Any:
        told = " ".join(content.decode("utf-8", "replace").split())[:_SHOWN]
        if status != http.client.OK:
            raise ModelError(f"{self.url}{tail}: status {status}: {told}")
        try:
            return msgspec.json.decode(content)
        except msgspec.DecodeError as error:
            raise ModelError(f"{self.url}{tail}: answer is not JSON ({error}): {told}") from error


def _state_of(told: Any, url: str) -> tuple[str, str]:
    """Newest version that answers, or why there is none."""
    try:
        versions = [
            (v["version"], v["state"], v.get("status", {})) for v in told["model_version_status"]
        ]
    except (KeyError, TypeError) as error:
        raise ModelError(
            f"{url}: not the status of a served model: {str(told)[:_SHOWN]}"
        ) from error
    ready = [version for version, state, _ in versions if state == _READY]
    if ready:
        return max(ready, key=int), ""
    errors = [s.get("error_message") for _, state, s in versions if state == _FAILED]
    if versions and len(errors) == len(versions) and any(errors):
        raise ModelError(f"{url}: the server could not load it: {'; '.join(map(str, errors))}")
    return "", ", ".join(f"version {v} is {state}" for v, state, _ in versions) or "no version"
