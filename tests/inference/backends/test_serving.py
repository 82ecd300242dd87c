"""A served model: ready or not, right or wrong, and under load."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import numpy as np
import pytest
from backend_cases import (
    card_of,
    missing,
    random_rows,
    rest_server,
    stack_of,
)
from click.testing import CliRunner
from odd_server import odd_server

from hft.cli.main import cli
from hft.errors import ConfigError, ModelError, VenueDisconnected, VenueTimeout
from hft.inference.backends import open_backend
from hft.inference.backends.rest import RestClient
from hft.inference.backends.serving_load import load_test
from hft.inference.bench.rate import poisson
from hft.inference.bundle import save_bundle

pytestmark = pytest.mark.skipif(
    bool(missing("serving")), reason=f"{missing('serving')} not installed"
)


def ask(url, method, tail, body=None):
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.request(method, parts.path + tail, body)
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    return answer.status, content


def test_the_contract_in_row_and_columnar_format(url):
    status, told = ask(url + "dense", "GET", "")
    assert (status, told["model_version_status"][0]["state"]) == (200, "AVAILABLE")
    x = np.zeros((1, 6)).tolist()
    asked = {"signature_name": "step", "inputs": x}
    status, columnar = ask(url + "dense", "POST", ":predict", json.dumps(asked))
    assert (status, np.shape(columnar["outputs"])) == (200, (1, 3))
    asked = {"signature_name": "step", "instances": x}
    status, rows = ask(url + "dense", "POST", "/versions/1:predict", json.dumps(asked))
    assert (status, rows["predictions"]) == (200, columnar["outputs"])
    state = np.zeros(32).tolist(), np.zeros(16).tolist()
    instance = {"x": x[0], "h1": state[0], "h2": state[1]}
    asked = {"signature_name": "step", "instances": [instance]}
    status, rows = ask(url + "gru", "POST", ":predict", json.dumps(asked))
    assert (status, sorted(rows["predictions"][0])) == (200, ["h1_out", "h2_out", "y"])


@pytest.mark.parametrize(
    ("model", "body", "status", "words"),
    [
        ("other", "{}", 404, "Servable not found for request: Latest.other."),
        ("dense", "{", 400, "JSON Parse error"),
        ("dense", '{"inputs": 1, "instances": 1}', 400, "expecting only one of 'inputs' or"),
        ("dense", "{}", 400, "Missing 'inputs' or 'instances' key"),
        (
            "dense",
            '{"signature_name": "step", "instances": []}',
            400,
            "No values in 'instances' array",
        ),
        ("dense/versions/7", '{"inputs": 1}', 404, r"Servable not found .* Specific.dense, 7."),
        ("dense/labels/new", '{"inputs": 1}', 400, "Unrecognized servable version label: new"),
        ("dense", '{"signature_name": "no", "inputs": 1}', 400, '"no.*not found'),
        (
            "gru",
            '{"signature_name": "step", "inputs": {"x": [[0]]}}',
            400,
            "Missing named input: h1",
        ),
        ("dense", '{"signature_name": "step", "inputs": [[0, 0]]}', 400, "."),
    ],
)
def test_what_the_server_refuses_is_told_with_url_status_and_body(url, model, body, status, words):
    with (
        closing(RestClient(url + model, 10.0)) as client,
        pytest.raises(ModelError, match=words) as caught,
    ):
        client.predict(body.encode())
    assert f"{url}{model}:predict: status {status}: " in str(caught.value)
    assert '"error"' in str(caught.value)


def test_an_opened_backend_waits_until_the_model_is_loaded(bundles, tmp_path):
    models = f"dense={bundles['dense'].path / 'saved_model'}", f"bad={tmp_path}"
    with rest_server(*models, load_s=0.5) as url:
        with pytest.raises(VenueTimeout, match=r"not ready after 0.1 s: version 1 is LOADING"):
            open_backend(bundles["dense"], "serving", url=url + "dense", ready_s=0.1)
        with open_backend(bundles["dense"], "serving", url=url + "dense", ready_s=60.0) as backend:
            assert backend.version == "1"
            assert backend.warm_up(50, longest_s=0.1).calls >= 1
        with pytest.raises(ModelError, match=r"could not load it: .*SavedModel"):
            open_backend(bundles["dense"], "serving", url=url + "bad", ready_s=60.0)


def test_another_model_behind_the_url_is_refused(bundles, url, tmp_path):
    with pytest.raises(ModelError, match=r"output h1_out|input x|outputs|answers") as caught:
        open_backend(bundles["dense"], "serving", url=url + "gru")
    assert url + "gru" in str(caught.value)
    stack = stack_of("dense")
    weights = [{name: array * 1.1 for name, array in of.items()} for of in stack.weights]
    other = save_bundle(tmp_path / "other.bundle", card_of("dense", stack), weights)
    with pytest.raises(ModelError, match=r"it serves another model; deploy this bundle's"):
        open_backend(other, "serving", url=url + "dense")
    with pytest.raises(ModelError, match=r"status 404.*Could not find any versions of model noth"):
        open_backend(bundles["dense"], "serving", url=url + "nothing")


def test_a_url_that_is_none_is_refused(bundles):
    for wrong in ("localhost:8501", "ftp://a/v1/models/x", "http://localhost:8501"):
        with pytest.raises(ConfigError, match="want http://HOST:8501/v1/models/NAME"):
            open_backend(bundles["dense"], "serving", url=wrong)
    with pytest.raises(ConfigError, match="needs url"):
        open_backend(bundles["dense"], "serving")


def test_nobody_there_is_told_after_the_time_to_get_ready(bundles):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1/models/dense"
    with pytest.raises(VenueTimeout, match=r"not ready after 0.2 s: GET .*refused"):
        open_backend(bundles["dense"], "serving", url=url, ready_s=0.2)


def test_late_answers_and_hang_ups_are_told_and_not_tried_again():
    with odd_server(b"{}", delay_s=0.3) as (url, odd):
        client = RestClient(url, 0.1)
        with pytest.raises(VenueTimeout, match=rf"POST {url}:predict: no answer in 0.1 s"):
            client.predict(b"{}")
        assert odd.asked == 1
    with odd_server(b"{}", drop=(1,)) as (url, odd):
        client = RestClient(url, 5.0)
        with pytest.raises(VenueDisconnected, match=rf"POST {url}:predict: "):
            client.predict(b"{}")
        assert odd.asked == 1
        assert client.predict(b"{}")[0] == {}  # by a new connection
        client.close()


def test_an_answer_that_is_not_json_is_told():
    with odd_server(b"<html>busy</html>") as (url, _):
        client = RestClient(url, 5.0)
        with pytest.raises(ModelError, match=r"answer is not JSON .*<html>busy"):
            client.predict(b"{}")
        client.close()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([], "answer has no outputs"),
        ({"outputs": {"y": [[0.1, 0.2, 0.7]]}}, r"answer has no h\d_out"),
        ({"outputs": {"y": [[0.1, 0.2]]}}, r"y is \(1, 2\), want \(1, 3\)"),
        ({"outputs": {"y": "much"}}, "y is no tensor of numbers"),
    ],
)
def test_an_answer_of_another_shape_is_told_and_moves_no_state(bundles, url, told, words):
    with open_backend(bundles["gru"], "serving", url=url + "gru", timeout_s=10.0) as backend:
        state, out = backend.state(), np.zeros(5, np.float32)
        rows = random_rows(3)
        backend.step(state, rows[0], out)
        right = state.client
        with (
            odd_server(json.dumps(told).encode()) as (odd, _),
            closing(RestClient(odd, 5.0)) as state.client,
            pytest.raises(ModelError, match=words),
        ):
            backend.step(state, rows[1], out)
        state.client = right
        backend.step(state, rows[1], out)
        again, fresh = np.zeros(5, np.float32), backend.state()
        for row in rows[:2]:
            backend.step(fresh, row, again)
        assert out.tobytes() == again.tobytes()


def test_under_load_queueing_is_told_apart_from_service(bundles):
    """One connection and 20 ms of compute: 25 requests/s are served at once, 100 are not."""
    model = f"dense={bundles['dense'].path / 'saved_model'}"
    with (
        rest_server(model, compute_s=0.02) as url,
        open_backend(
            bundles["dense"], "serving", url=url + "dense", timeout_s=10.0, ready_s=60.0
        ) as backend,
    ):
        backend.warm_up(50, longest_s=0.1)
        calm = load_test(backend, poisson(10.0, 30), seconds=1.5, connections=2)
        busy = load_test(backend, poisson(100.0, 150), seconds=1.0, connections=1)
        wide = load_test(backend, poisson(100.0, 150), seconds=1.0, connections=8)
    for load in (calm, busy, wide):
        assert not load.failed
        assert (load.compute_ns >= 20_000_000).all()
        assert (load.service_ns > load.compute_ns).all()
        assert set(load.columns()["answer"]) == {"p50", "p95", "p99", "p99.9"}
    assert calm.columns()["queue"]["p50"] < 20e6
    assert busy.columns()["queue"]["p95"] > 100e6  # what arrived faster than it was served
    assert busy.answered_per_s < 50
    assert wide.columns()["queue"]["p95"] < busy.columns()["queue"]["p95"]
    lines = "\n".join(busy.lines())
    assert "1 connections, " in lines
    assert "queue" in lines
    assert "compute" in lines


def test_failed_requests_are_counted(bundles, url):
    with open_backend(bundles["dense"], "serving", url=url + "dense", timeout_s=10.0) as backend:
        backend.made_up_requests = lambda: [b"{"]
        load = load_test(backend, poisson(50.0, 10), seconds=5.0)
    assert load.failed.total() == 10
    assert load.arrival_ns.size == 0
    assert "10 x " in "\n".join(load.lines())


def test_the_command_tells_queueing_from_service(bundles, url):
    bundle = str(bundles["dense"].path)
    line = ["bench", "inference", bundle, "--backend", "serving", "--url", url + "dense"]
    done = CliRunner().invoke(cli, [*line, "--rate", "40", "--seconds", "0.5"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "Poisson arrivals of 40 rows/s" in done.output
    assert "4 connections, " in done.output
    assert "queue " in done.output
    assert "service " in done.output
    for more, words in (
        ([], "under load: give --rate"),
        (["--rate", "40", "--cold"], "cold: not of a server"),
        (["--rate", "40", "--backend", "native"], "a server is measured by itself"),
    ):
        done = CliRunner().invoke(cli, [*line, *more])
        assert words in str(done.exception)


def test_a_load_that_cannot_be_is_refused(bundles, url):
    with open_backend(bundles["dense"], "serving", url=url + "dense", timeout_s=10.0) as backend:
        with pytest.raises(ConfigError, match="connections is 0, want 1 to 256"):
            load_test(backend, poisson(50.0, 10), seconds=1.0, connections=0)
        with pytest.raises(ConfigError, match="no request arrives within"):
            load_test(backend, poisson(0.001, 10), seconds=0.001)
