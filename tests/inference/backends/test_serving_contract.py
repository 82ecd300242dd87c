"""What TensorFlow Serving does to a session that goes on: restarts, versions, odd numbers."""

from __future__ import annotations

import json
import logging
import time
from contextlib import closing
from urllib.parse import urlsplit

import numpy as np
import pytest
from backend_cases import missing, random_rows, rest_server
from odd_server import odd_server

from hft.errors import ModelError, VenueDisconnected, VenueTimeout
from hft.inference.backends import open_backend
from hft.inference.backends.rest import RestClient

pytestmark = pytest.mark.skipif(
    bool(missing("serving")), reason=f"{missing('serving')} not installed"
)


def served(bundles, name, network, version=1):
    return f"{name}@{version}={bundles[network].path / 'saved_model'}"


def steps(backend, state, rows):
    out = np.zeros((len(rows), 5), np.float32)
    for row, answer in zip(rows, out, strict=True):
        backend.step(state, row, answer)
    return out


def test_a_server_that_comes_back_goes_on_with_the_streams_memory(bundles, caplog):
    """Memory travels with the rows: a restart between two loses nothing, and is told."""
    rows = random_rows(6)
    with rest_server(served(bundles, "gru", "gru")) as url:
        port = urlsplit(url).port
        backend = open_backend(bundles["gru"], "serving", url=url + "gru", timeout_s=10.0)
        state = backend.state()
        whole = steps(backend, backend.state(), rows)
        first = steps(backend, state, rows[:3])
    with backend:
        with pytest.raises(VenueDisconnected, match="refused"):  # it is gone: not waited for
            backend.step(state, rows[3], np.zeros(5, np.float32))
        with rest_server(served(bundles, "gru", "gru"), port=port) as url:
            with closing(RestClient(url + "gru", 5.0)) as client:
                client.wait_ready(60.0)
            second = steps(backend, state, rows[3:])
    assert np.vstack([first, second]).tobytes() == whole.tobytes()
    assert "the server closed the connection; another is opened" in caplog.text


def test_a_version_that_is_gone_is_not_answered_by_another(bundles):
    with rest_server(served(bundles, "gru", "gru")) as url:
        port = urlsplit(url).port
        backend = open_backend(bundles["gru"], "serving", url=url + "gru", timeout_s=10.0)
        assert backend.url == url + "gru/versions/1"
        state = backend.state()
        backend.step(state, random_rows(1)[0], np.zeros(5, np.float32))
    with backend, rest_server(served(bundles, "gru", "gru", 2), port=port) as url:
        with closing(RestClient(url + "gru", 5.0)) as client:
            client.wait_ready(60.0)
        with pytest.raises(ModelError, match=r"status 404: .*Specific\(gru, 1\)"):
            backend.step(state, random_rows(1)[0], np.zeros(5, np.float32))


def test_a_label_is_held_to_the_version_it_points_at(bundles):
    """Its status tells all versions, and the newest is not the one that answers."""
    models = served(bundles, "model", "gru", 1), served(bundles, "model", "dense", 2)
    with rest_server(*models, labels=["model:stable=1"]) as url:
        with closing(RestClient(url + "model/versions/2", 5.0)) as client:
            client.wait_ready(60.0)
        stable = url + "model/labels/stable"
        with open_backend(bundles["gru"], "serving", url=stable, timeout_s=10.0) as backend:
            assert (backend.version, backend.url) == ("1", url + "model/versions/1")
        with open_backend(
            bundles["dense"], "serving", url=url + "model", timeout_s=10.0
        ) as backend:
            assert backend.version == "2"
        with pytest.raises(ModelError, match="Unrecognized servable version label: next"):
            open_backend(bundles["gru"], "serving", url=url + "model/labels/next", ready_s=5.0)


def test_a_connection_closed_while_idle_is_opened_again_and_told(caplog):
    with odd_server(b"{}", hangs_up=True) as (url, odd), closing(RestClient(url, 5.0)) as client:
        for _ in range(3):
            assert client.predict(b"{}")[0] == {}
            time.sleep(0.05)  # the close is there before the next request
        assert odd.asked == 3
    told = [r for r in caplog.records if "another is opened" in r.getMessage()]
    assert [(r.levelno, url in r.getMessage()) for r in told] == [(logging.WARNING, True)] * 2


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_an_answer_that_is_no_number_is_told_and_moves_no_state(bundles, url, token):
    """The server writes tokens that JSON has not."""
    with open_backend(bundles["gru"], "serving", url=url + "gru", timeout_s=10.0) as backend:
        state, rows = backend.state(), random_rows(2)
        memories = {f"{name}_out": value for name, value in backend.zeros().items()}
        told = json.dumps({"outputs": {"y": [[0.1, 0.2, 0.0]], **memories}}).replace(
            "[[0.1, 0.2, 0.0]]", f"[[0.1, 0.2, {token}]]"
        )
        right = state.client
        with (
            odd_server(told.encode()) as (odd, _),
            closing(RestClient(odd, 5.0)) as state.client,
            pytest.raises(
                ModelError, match=r"y is \[0.1\d*, 0.2\d*, -?(nan|inf)\]: weights are not"
            ),
        ):
            backend.step(state, rows[0], np.zeros(5, np.float32))
        state.client = right
        assert (
            steps(backend, state, rows).tobytes() == steps(backend, backend.state(), rows).tobytes()
        )


def test_windows_of_many_streams_go_in_one_request(bundles, url):
    """300 windows of 12 rows: a quarter of a megabyte of text, and as many answers."""
    with open_backend(bundles["window"], "serving", url=url + "window", timeout_s=30.0) as backend:
        rows = random_rows(24).reshape(12, 2, -1)
        states = [backend.state() for _ in range(300)]
        out = np.zeros((300, 5), np.float32)
        for row in rows:
            backend.batch(states, np.ascontiguousarray(np.repeat(row, 150, axis=0)), out)
        alone = np.zeros((2, 5), np.float32)
        for n in range(2):
            backend.window(np.ascontiguousarray(rows[:, n]), alone[n])
    assert np.abs(out - np.repeat(alone, 150, axis=0)).max() < 1e-5


def version(state, message="", number=1):
    status = {"error_code": "UNKNOWN" if message else "OK", "error_message": message}
    return {"version": str(number), "state": state, "status": status}


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ([], "no version"),
        ([version("START")], "version 1 is START"),
        ([version("UNLOADING"), version("LOADING", number=2)], "version 1 is UNLOADING, version 2"),
        ([version("END")], "version 1 is END"),
        (
            [version("END", "no memory"), version("LOADING", number=2)],
            "version 1 is END, version 2",
        ),
    ],
)
def test_a_server_without_a_loaded_version_is_waited_for(versions, words):
    told = json.dumps({"model_version_status": versions}).encode()
    with (
        odd_server(told) as (url, _),
        closing(RestClient(url, 5.0)) as client,
        pytest.raises(VenueTimeout, match=f"not ready after 0.1 s: {words}"),
    ):
        client.wait_ready(0.1)


def test_a_server_that_gave_up_is_not_waited_for():
    told = json.dumps({"model_version_status": [version("END", "no memory")]}).encode()
    with (
        odd_server(told) as (url, _),
        closing(RestClient(url, 5.0)) as client,
        pytest.raises(ModelError, match="could not load it: no memory"),
    ):
        client.wait_ready(60.0)


def test_one_version_that_answers_is_enough():
    versions = [version("END", "no memory", 3), version("AVAILABLE", number=2)]
    told = json.dumps({"model_version_status": versions}).encode()
    with odd_server(told) as (url, _), closing(RestClient(url, 5.0)) as client:
        client.wait_ready(5.0)


@pytest.mark.parametrize("told", [b"{}", b"[]", b'{"model_version_status": [{}]}', b"null"])
def test_a_status_of_something_else_is_told(told):
    with (
        odd_server(told) as (url, _),
        closing(RestClient(url, 5.0)) as client,
        pytest.raises(ModelError, match="not the status of a served model"),
    ):
        client.wait_ready(5.0)


def test_metadata_of_something_else_is_told(bundles, url):
    with (
        odd_server(json.dumps({"model_version_status": [version("AVAILABLE")]}).encode()) as (
            odd,
            _,
        ),
        pytest.raises(ModelError, match="metadata: not a served model's"),
    ):
        open_backend(bundles["gru"], "serving", url=odd, ready_s=5.0)
