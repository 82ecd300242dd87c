"""How a session ends: signals, death, a full disk; and what a second terminal is told meanwhile."""

import os
import resource
import signal
import time

import numpy as np
import pytest

from hft import run_folder
from hft.analysis.report import Report
from hft.errors import ConfigError
from hft.journal import JOURNAL, RecordKind

ALIVE = [0, 1, 2, 4, 5]  # OrderState values of an order that is not over


# ---- signals ------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_winds_down(hft, running, same, everything, tmp_path, number):
    run = hft("live", "--venue", "sim", everything, "--duration", "1h", "--out", tmp_path)
    folder = running(tmp_path, records=3000)
    run.process.send_signal(number)
    code, out, err = run.wait(timeout=20)
    assert code == 130, err
    assert "Traceback" not in err
    assert "interrupted" in out
    report = Report.load(folder)
    assert report.run.status == "interrupted"
    assert not np.isin(report.run.orders["state"], ALIVE).any()
    assert report.run.counters["orders_unanswered"] == 0
    journal = run_folder.read_journal(folder)
    stop = int(np.flatnonzero(journal["kind"] == 12)[0])
    flatten = report.run.tags.index("flatten")
    after = journal[stop:]
    assert ((after["kind"] == 7) & (after["b"] == flatten)).any(), "on_stop flattened"
    assert (folder / "state.json").is_file()
    same(folder)


@pytest.fixture
def silent_wire(strategies):
    """A session that hears an answer after a minute: to wait for them takes longer than a test."""
    return (
        *("live", "--venue", "sim", strategies / "sleeper.py", "--duration", "1h"),
        *("--set", "latency.response=1min", "--set", "every=1h"),
    )


def test_a_second_signal_does_not_wait(hft, running, same, silent_wire, tmp_path):
    run = hft(*silent_wire, "--out", tmp_path)
    folder = running(tmp_path)
    for kind in (RecordKind.NEW, RecordKind.STOP):  # two signals at once would be one
        while kind not in np.fromfile(folder / "journal.bin", JOURNAL)["kind"]:
            assert run.process.poll() is None
            time.sleep(0.05)
        run.process.send_signal(signal.SIGINT)
    code, _, err = run.wait()
    assert code == 130, err
    assert "orders were not answered before the end" in err
    assert "Traceback" not in err
    report = Report.load(folder)
    assert report.run.counters["orders_unanswered"] > 0
    assert (report.run.orders["state"] == 9).any()  # UNKNOWN
    assert "ends without END" not in str(same(folder))


def test_a_signal_does_not_cut_a_handler_in_its_middle(hft, running, same, strategies, tmp_path):
    run = hft(
        *("live", "--venue", "sim", strategies / "sleeper.py", "--duration", "1h"),
        *("--set", "sleep_s=0.5", "--set", "every=501ms", "--out", tmp_path),
    )
    folder = running(tmp_path, records=500)
    time.sleep(1.0)
    run.process.send_signal(signal.SIGINT)
    code, _, err = run.wait(timeout=20)
    assert code == 130, err
    assert Report.load(folder).run.status == "interrupted"
    same(folder)


def test_a_handler_that_never_returns_gives_way_to_the_third_signal(hft, running, tmp_path):
    file = tmp_path / "stuck.py"
    file.write_text(
        "from hft import Strategy\n"
        "class Stuck(Strategy):\n"
        "    def on_start(self):\n"
        "        self.at(self.now + 500_000_000, self.hang)\n"
        "    def hang(self):\n"
        "        while True:\n"
        "            pass\n"
    )
    run = hft("live", "--venue", "sim", file, "--duration", "1h", "--out", tmp_path)
    folder = running(tmp_path, records=100)
    time.sleep(1.0)
    for _ in range(3):
        assert run.process.poll() is None
        run.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    code, _, err = run.wait(timeout=20)
    assert code == 130, err
    report = Report.load(folder)
    assert report.run.status == "interrupted"
    assert report.run.error == "a handler that did not return was cut short"


# ---- death ------------------------------------------------------------


def test_kill_9_leaves_all_that_was_said(hft, running, same, everything, tmp_path):
    run = hft(
        *("live", "--venue", "sim", everything, "--duration", "1h", "--out", tmp_path),
        *("--set", "data.synth.messages_per_s=10000"),
    )
    folder = running(tmp_path, records=20_000)
    run.process.kill()
    run.wait()
    result = same(folder)
    assert result.records >= 20_000
    assert "ends without END: the process died" in str(result)
    code, out, _ = hft("verify", folder).wait()
    assert code == 0
    assert "the process died" in out


def test_a_run_in_progress_is_told_apart(hft, running, same, everything, tmp_path):
    run = hft("live", "--venue", "sim", everything, "--duration", "1h", "--out", tmp_path)
    folder = running(tmp_path)
    for command in ("verify", "report"):
        code, _, err = hft(command, folder).wait()
        assert code == ConfigError.exit_code
        assert "is a run in progress" in err
        assert "Traceback" not in err
    assert run.process.poll() is None
    run.process.send_signal(signal.SIGINT)
    assert run.wait()[0] == 130
    same(folder)


# ---- disks ------------------------------------------------------------


def limit_files_to(size):
    """For a child: files may not grow beyond `size` bytes, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_is_found_before_the_session_starts(hft, everything, tmp_path):
    run = hft(
        *("live", "--venue", "sim", everything, "--duration", "5s", "--out", tmp_path),
        preexec_fn=limit_files_to(1 << 19),
    )
    code, _, err = run.wait()
    assert code == ConfigError.exit_code
    assert "error: no room for 1 MiB more of" in err
    assert "Traceback" not in err


def test_a_disk_that_fills_up_ends_the_session_with_its_orders_cancelled(
    hft, same, strategies, tmp_path
):
    run = hft(
        *("live", "--venue", "sim", strategies / "sleeper.py", "--duration", "1h"),
        *("--set", "every=1h", "--set", "data.synth.messages_per_s=50000", "--out", tmp_path),
        preexec_fn=limit_files_to(8 << 20),
    )
    code, _, err = run.wait()
    assert code != 0
    assert "no room for 1 MiB more of" in err
    assert "Traceback" not in err
    (folder,) = tmp_path.glob("live-*")
    report = Report.load(folder)
    assert report.run.status == "failed"
    assert not np.isin(report.run.orders["state"], [*ALIVE, 9]).any()


def test_a_folder_that_cannot_be_written_is_named(hft, everything, tmp_path):
    base = tmp_path / "file"
    base.write_text("not a folder")
    code, _, err = hft("live", "--venue", "sim", everything, "--out", base).wait()
    assert code == ConfigError.exit_code
    assert "cannot make run folder" in err
    assert "Traceback" not in err


# ---- before it starts ------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("latency.entry={file='x.csv'}", "latency.entry: the sim venue's wire takes a constant"),
        ("engine.placebo=true", "a placebo is for replay"),
        ("data.symbols=['BBB']", "trades all of data.synth.symbols"),
        ("data.synth.order_by_order=true", "feed is by price level"),
    ],
)
def test_what_the_wall_clock_cannot_give_is_refused(hft, everything, tmp_path, setting, words):
    run = hft(
        *("live", "--venue", "sim", everything, "--set", setting, "--out", tmp_path),
        *("--set", "data.synth.symbols=['AAA','BBB']"),
    )
    code, _, err = run.wait()
    assert code == ConfigError.exit_code
    assert words in err
    assert "Traceback" not in err


def test_memory_stays_flat(hft, running, everything, tmp_path):
    """Pages of the two files count until their mapping goes, so the bound is generous."""
    run = hft(
        *("live", "--venue", "sim", everything, "--duration", "1h", "--out", tmp_path),
        *("--set", "data.synth.messages_per_s=20000"),
    )
    running(tmp_path, records=50_000)

    def resident_mib():
        with open(f"/proc/{run.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20

    early = resident_mib()
    time.sleep(6.0)
    assert resident_mib() - early < 40
    run.process.send_signal(signal.SIGINT)
    assert run.wait()[0] == 130
