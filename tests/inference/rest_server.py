"""TensorFlow Serving's REST predict interface over SavedModels, for tests: it really computes.

There is no package of TensorFlow Serving, so the contract is spoken here by the standard library's
server and TensorFlow: status, metadata, predict in row and columnar format, versions and labels,
error bodies, numbers. It is written from the server's own sources: g3doc/api_rest.md,
model_servers/http_rest_api_{handler,util}.cc, get_model_status_impl.cc, util/json_tensor.cc. One
thing more than the real server tells: a `Server-Timing: compute;dur=MS` header.

    python rest_server.py NAME[@VERSION]=FOLDER ... [--label NAME:LABEL=VERSION] [--port PORT]
                          [--load-s S] [--compute-s S]

A folder is a `saved_model`; a version is 1 unless said. The port is printed when it listens, which
is before anything is loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

PREDICT = re.compile(
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?:predict",
    re.IGNORECASE,
)
STATUS = re.compile(
    r"/v1/models(?:/(?P<name>[^/:]+))?(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
    r"(?:/(?P<tail>metadata))?",
    re.IGNORECASE,
)


class Refused(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Served:
    """A version of a model, once it is loaded."""

    def __init__(
        self, name: str, version: int, folder: str, load_s: float, compute_s: float
    ) -> None:
        self.name, self.version, self.folder = name, version, folder
        self.load_s, self.compute_s = load_s, compute_s
        self.state, self.why = "LOADING", ""

    def load(self) -> None:
        time.sleep(self.load_s)
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        try:
            self.loaded = tf.saved_model.load(self.folder)
        except Exception as error:
            self.why, self.state = str(error), "END"
            return
        self.tf, self.state = tf, "AVAILABLE"

    def status(self) -> Any:
        status = {"error_code": "UNKNOWN" if self.why else "OK", "error_message": self.why}
        return {"version": str(self.version), "state": self.state, "status": status}

    def metadata(self) -> Any:
        signatures = {}
        for name, function in self.loaded.signatures.items():
            signatures[name] = {
                "inputs": tensors(function.structured_input_signature[1]),
                "outputs": tensors(function.structured_outputs),
                "method_name": "tensorflow/serving/predict",
            }
        spec = {"name": self.name, "signature_name": "", "version": str(self.version)}
        described = {"signature_def": {"signature_def": signatures}}
        return {"model_spec": spec, "metadata": described}

    def predict(self, content: bytes) -> Any:
        asked = parsed(content)
        name = asked.get("signature_name", "serving_default")
        if name not in self.loaded.signatures:
            raise Refused(400, f'Serving signature name: "{name}" not found in signature def')
        function = self.loaded.signatures[name]
        specs = function.structured_input_signature[1]
        given = columns(asked, sorted(specs))
        try:
            tensors = {key: self.tf.constant(given[key], spec.dtype) for key, spec in specs.items()}
            made = {key: value.numpy().tolist() for key, value in function(**tensors).items()}
        except (ValueError, TypeError, self.tf.errors.OpError) as error:
            raise Refused(400, str(error)) from error
        time.sleep(self.compute_s)
        return in_rows(made) if "instances" in asked else {"outputs": alone(made)}


def parsed(content: bytes) -> dict[str, Any]:
    if not content:
        raise Refused(400, "JSON Parse error: The document is empty")
    try:
        asked = json.loads(content)
    except ValueError as error:
        at = getattr(error, "pos", 0)
        raise Refused(400, f"JSON Parse error: Invalid value. at offset: {at}") from error
    if not isinstance(asked, dict):
        raise Refused(400, f"{shown(asked)} Is not object")
    if "instances" in asked and "inputs" in asked:
        raise Refused(
            400,
            f"{shown(asked)} Not formatted correctly expecting only one of 'inputs' or "
            "'instances' keys to exist ",
        )
    if "instances" not in asked and "inputs" not in asked:
        raise Refused(400, "Missing 'inputs' or 'instances' key")
    return asked


def shown(value: Any) -> str:
    return f"JSON Value: {json.dumps(value, indent=4)[:256]}"


def columns(asked: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Tensors by name, of either format."""
    return of_inputs(asked["inputs"], names) if "inputs" in asked else of_rows(asked, names)


def of_inputs(inputs: Any, names: list[str]) -> dict[str, Any]:
    if not isinstance(inputs, dict):
        if len(names) > 1:
            raise Refused(
                400,
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                "required as per tensorinfo_map",
            )
        return {names[0]: inputs}
    for name in names:
        if name not in inputs:
            raise Refused(400, f"Missing named input: {name} in 'inputs' object.")
    return inputs


def of_rows(asked: dict[str, Any], names: list[str]) -> dict[str, Any]:
    rows = asked["instances"]
    if not isinstance(rows, list):
        raise Refused(400, f"{shown(asked)} Expecting 'instances' to be an list/array")
    if not rows:
        raise Refused(400, f"{shown(asked)} No values in 'instances' array")
    if not isinstance(rows[0], dict):
        if len(names) > 1:
            raise Refused(
                400,
                "instances is a plain list, but expecting list of objects as multiple input "
                "tensors required as per tensorinfo_map",
            )
        return {names[0]: rows}
    for n, row in enumerate(rows):
        if sorted(row) != names:
            raise Refused(
                400,
                f"Failed to process element: {n} of 'instances' list. JSON object: "
                f"{shown(row)} keys must be equal to: {','.join(names)}",
            )
    return {name: [row[name] for row in rows] for name in names}


def alone(made: dict[str, Any]) -> Any:
    """Of a single output the name is left out."""
    return next(iter(made.values())) if len(made) == 1 else made


def in_rows(made: dict[str, Any]) -> Any:
    if len(made) == 1:
        return {"predictions": alone(made)}
    rows = zip(*made.values(), strict=True)
    return {"predictions": [dict(zip(made, row, strict=True)) for row in rows]}


def tensors(specs: Any) -> Any:
    found = {}
    for name, spec in specs.items():
        sizes = [str(-1 if n is None else n) for n in spec.shape.as_list()]
        shape = {"dim": [{"size": n, "name": ""} for n in sizes], "unknown_rank": False}
        found[name] = {"dtype": "DT_FLOAT", "tensor_shape": shape, "name": f"{name}:0"}
    return found


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    models: dict[str, list[Served]]
    labels: dict[tuple[str, str], int]

    def do_GET(self) -> None:
        self.answer(self.got)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(lambda: self.posted(content))

    def got(self) -> Any:
        asked = STATUS.fullmatch(self.path)
        if asked is None:
            raise Refused(400, f"Malformed request: GET {self.path}")
        if not asked["name"]:
            raise Refused(400, "Missing model name in request.")
        if asked["tail"]:
            return self.served(asked).metadata()
        return {"model_version_status": [each.status() for each in self.known(asked)]}

    def posted(self, content: bytes) -> Any:
        asked = PREDICT.fullmatch(self.path)
        if asked is None:
            raise Refused(400, f"Malformed request: POST {self.path}")
        return self.served(asked).predict(content)

    def known(self, asked: re.Match[str]) -> list[Served]:
        """Versions whose status is told: of a label all."""
        name, version = asked["name"], asked["version"]
        found = self.models.get(name, [])
        if version:
            found = [each for each in found if each.version == int(version)]
            if not found:
                raise Refused(404, f"Could not find version {version} of model {name}")
        if not found:
            raise Refused(404, f"Could not find any versions of model {name}")
        return found

    def served(self, asked: re.Match[str]) -> Served:
        """The version that answers: of a name the newest that is loaded."""
        name, version = asked["name"], asked["version"]
        if asked["label"]:
            version = self.labels.get((name, asked["label"]))
            if version is None:
                raise Refused(400, f"Unrecognized servable version label: {asked['label']}")
        found = [each for each in self.models.get(name, []) if each.state == "AVAILABLE"]
        if version is not None:
            found = [each for each in found if each.version == int(version)]
        if not found:
            which = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise Refused(404, f"Servable not found for request: {which}")
        return max(found, key=lambda each: each.version)

    def answer(self, compute: Any) -> None:
        started = time.perf_counter()
        try:
            status, told = 200, compute()
        except Refused as no:
            status, told = no.status, {"error": str(no)}
        took_ms = (time.perf_counter() - started) * 1e3
        content = json.dumps(told, indent=1).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Server-Timing", f"compute;dur={took_ms:.4f}")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def load_all() -> None:
    for versions in Handler.models.values():
        for served in versions:
            served.load()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("models", nargs="+", metavar="NAME[@VERSION]=FOLDER")
    options.add_argument("--label", action="append", default=[], metavar="NAME:LABEL=VERSION")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--load-s", type=float, default=0.0)
    options.add_argument("--compute-s", type=float, default=0.0)
    asked = options.parse_args()
    Handler.models, Handler.labels = {}, {}
    for model in asked.models:
        which, folder = model.split("=", 1)
        name, _, version = which.partition("@")
        served = Served(name, int(version or 1), folder, asked.load_s, asked.compute_s)
        Handler.models.setdefault(name, []).append(served)
    for each in asked.label:
        which, version = each.split("=", 1)
        name, label = which.split(":")
        Handler.labels[name, label] = int(version)
    server = ThreadingHTTPServer(("127.0.0.1", asked.port), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    threading.Thread(target=load_all, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
