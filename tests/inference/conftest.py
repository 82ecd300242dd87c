"""What tests of models share: TensorFlow's threads, and what it takes seconds to make."""

from __future__ import annotations

import os
from contextlib import closing

import pytest
from backend_cases import SERVED, loaded_bundles, make_bundles, missing, rest_server

from hft.inference.backends.rest import RestClient

# One, whichever test of a process makes it begin.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")


@pytest.fixture(scope="session")
def parts_folder(tmp_path_factory):
    """NAME.bundle of each network with its parts, and `nan`: parts of NaN weights."""
    folder = tmp_path_factory.mktemp("parts")
    make_bundles(folder)
    return folder


@pytest.fixture(scope="session")
def bundles(parts_folder):
    """By network; not to be written to."""
    return loaded_bundles(parts_folder)


@pytest.fixture(scope="session")
def url(bundles):
    """Of a server of the networks in `SERVED`, ready."""
    if missing("serving"):
        pytest.skip(f"{missing('serving')} not installed")
    with rest_server(*(f"{name}={bundles[name].path / 'saved_model'}" for name in SERVED)) as url:
        with closing(RestClient(url + SERVED[-1], 5.0)) as client:
            client.wait_ready(60.0)
        yield url
