"""TensorFlow Serving's REST predict interface over a SavedModel, for tests: it really computes.

There is no wheel of TensorFlow Serving, so the contract is spoken here by the standard library's
server and TensorFlow: status, metadata, predict in row and columnar format, error bodies, as
tensorflow_serving/g3doc/api_rest.md and util/json_tensor.cc have them. One thing more than the real
server tells: a `Server-Timing: compute;dur=MS` header.

    python rest_server.py NAME=FOLDER ... [--load-s S] [--compute-s S]

A folder is a `saved_model`; its version is 1. The port is printed when it listens, which is before
anything is loaded.
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

PATH = re.compile(r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d+))?(?P<tail>.*)")
VERSION = "1"


class Refused(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Served:
    """A model, once it is loaded."""

    def __init__(self, name: str, folder: str, load_s: float, compute_s: float) -> None:
        self.name, self.folder = name, folder
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
        version = {"version": VERSION, "state": self.state, "status": status}
        return {"model_version_status": [version]}

    def metadata(self) -> Any:
        signatures = {}
        for name, function in self.loaded.signatures.items():
            signatures[name] = {
                "inputs": tensors(function.structured_input_signature[1]),
                "outputs": tensors(function.structured_outputs),
                "method_name": "tensorflow/serving/predict",
            }
        spec = {"name": self.name, "signature_name": "", "version": VERSION}
        described = {"signature_def": {"signature_def": signatures}}
        return {"model_spec": spec, "metadata": described}

    def predict(self, content: bytes) -> Any:
        asked = parsed(content)
        name = asked.get("signature_name", "serving_default")
        if name not in self.loaded.signatures:
            raise Refused(400, f'Serving signature key "{name}" not found.')
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
        raise Refused(400, f"JSON Parse error: {error}") from error
    if not isinstance(asked, dict):
        raise Refused(400, f"JSON Value: {asked} Is not object")
    if ("instances" in asked) == ("inputs" in asked):
        raise Refused(400, "Missing 'inputs' or 'instances' key, or both are there")
    return asked


def columns(asked: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Tensors by name, of either format."""
    if "inputs" in asked:
        inputs = asked["inputs"]
        if not isinstance(inputs, dict):
            if len(names) > 1:
                raise Refused(400, "inputs is a plain value/list, but expecting an object")
            return {names[0]: inputs}
        for name in names:
            if name not in inputs:
                raise Refused(400, f"Missing named input: {name} in 'inputs' object.")
        return inputs
    rows = asked["instances"]
    if not isinstance(rows, list) or not rows:
        raise Refused(400, "Expecting 'instances' to be a list with values")
    if not isinstance(rows[0], dict):
        if len(names) > 1:
            raise Refused(400, "instances is a plain list, but expecting list of objects")
        return {names[0]: rows}
    for n, row in enumerate(rows):
        if sorted(row) != names:
            raise Refused(
                400,
                f"Failed to process element: {n} of 'instances' list. keys must be equal to: "
                f"{','.join(names)}",
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
    models: dict[str, Served]

    def do_GET(self) -> None:
        self.answer(self.got)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(lambda: self.posted(content))

    def got(self) -> Any:
        tail = self.asked()
        if tail == "":
            return self.served.status()
        if tail != "/metadata":
            raise Refused(400, f"Malformed request: GET {self.path}")
        self.require_loaded()
        return self.served.metadata()

    def posted(self, content: bytes) -> Any:
        if self.asked() != ":predict":
            raise Refused(400, f"Malformed request: POST {self.path}")
        self.require_loaded()
        return self.served.predict(content)

    def asked(self) -> str:
        match = PATH.fullmatch(self.path)
        if match is None:
            raise Refused(404, f"Malformed request: {self.command} {self.path}")
        if match["name"] not in self.models:
            raise Refused(404, f"Servable not found for request: Latest({match['name']})")
        if match["version"] not in (None, VERSION):
            raise Refused(404, f"Servable not found for request: Specific({self.path})")
        self.served = self.models[match["name"]]
        return match["tail"]

    def require_loaded(self) -> None:
        if self.served.state != "AVAILABLE":
            raise Refused(404, f"Servable not found for request: Latest({self.served.name})")

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
    for served in Handler.models.values():
        served.load()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("models", nargs="+", metavar="NAME=FOLDER")
    options.add_argument("--load-s", type=float, default=0.0)
    options.add_argument("--compute-s", type=float, default=0.0)
    asked = options.parse_args()
    pairs = [model.split("=", 1) for model in asked.models]
    Handler.models = {n: Served(n, folder, asked.load_s, asked.compute_s) for n, folder in pairs}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    threading.Thread(target=load_all, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
