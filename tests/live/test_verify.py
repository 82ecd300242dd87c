"""What `hft verify` refuses, what it finds, and that a recipe gives the same bytes everywhere."""

import os
import shutil

import numpy as np
import pytest

from hft import engine, run_folder
from hft.errors import ConfigError, DataError
from hft.journal import JOURNAL, RecordKind, checksums
from hft.live.verify import verify_run
from hft.plan import prepare

SECONDS = {
    "data.synth.duration_s": 20.0,
    "data.synth.messages_per_s": 500.0,
    "data.synth.symbols": ["AAA", "BBB"],
    "engine.bracket": False,
}


def settings_of(values):
    """The same settings as `--set` arguments."""
    for key, value in values.items():
        text = str(value).lower() if isinstance(value, bool) else str(value).replace("'", '"')
        yield from ("--set", f"{key}={text}")


@pytest.fixture(scope="module")
def replayed(everything, tmp_path_factory):
    """A backtest's run folder."""
    plan = prepare(everything, "synth", recipe={}, settings=SECONDS)
    outcome = engine.run_once(plan)
    assert outcome.run.status == "complete", outcome.run.error
    folder = run_folder.new_folder("backtest", "everything", tmp_path_factory.mktemp("runs"))
    run_folder.write_outcome(folder, plan, outcome)
    return folder


@pytest.fixture(scope="module")
def lived(everything, tmp_path_factory):
    """A live session's run folder."""
    from hft.live import session

    plan = prepare(everything, "synth", recipe={}, settings={"data.synth.messages_per_s": 2000.0})
    folder = run_folder.new_folder("live", "everything", tmp_path_factory.mktemp("runs"))
    run_folder.write_outcome(folder, plan, session.run_sim(plan, folder, 2_000_000_000))
    return folder


@pytest.fixture
def copy(tmp_path):
    """A copy of a run folder, to be spoiled."""

    def make(folder):
        return shutil.copytree(folder, tmp_path / folder.name)

    return make


# ---- the same bytes ------------------------------------------------------------


def test_a_backtest_verifies(replayed, same):
    assert same(replayed).records > 1000


def test_a_recipe_gives_the_same_journal_in_any_process(replayed, everything, hft, tmp_path):
    for seed in ("1", "271828"):
        base = tmp_path / seed
        run = hft(
            *("backtest", everything, *settings_of(SECONDS), "--out", base),
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        code, _, err = run.wait()
        assert code == 0, err
        (folder,) = base.iterdir()
        assert (folder / "journal.bin").read_bytes() == (replayed / "journal.bin").read_bytes()


@pytest.mark.parametrize("rows", [1, 997, 1 << 18])
def test_chunks_of_any_size_give_the_same_journal(replayed, everything, rows):
    plan = prepare(everything, "synth", recipe={}, settings={**SECONDS, "data.chunk_rows": rows})
    assert engine.run_once(plan).journal.tobytes() == (replayed / "journal.bin").read_bytes()


def test_another_seed_gives_another_journal(replayed, everything):
    plan = prepare(everything, "synth", recipe={}, settings=SECONDS, seed=2)
    assert engine.run_once(plan).journal.tobytes() != (replayed / "journal.bin").read_bytes()


# ---- other inputs ------------------------------------------------------------


def test_a_changed_strategy_copy_is_refused(replayed, copy):
    folder = copy(replayed)
    with (folder / "strategy.py").open("a") as file:
        file.write("# one line more\n")
    with pytest.raises(ConfigError, match=r"strategy\.py is not what the run used"):
        verify_run(folder)


@pytest.mark.parametrize("run", ["replayed", "lived"])
def test_a_changed_bundle_is_refused(request, copy, everything, run):
    import msgspec

    from hft.inference.bundle import load_bundle, save_bundle

    folder = copy(request.getfixturevalue(run))
    place = everything.parent / "tiny.bundle"
    kept = shutil.copytree(place, folder / "kept.bundle")
    bundle = load_bundle(place)
    weights = [{part: array * 1.01 for part, array in layer.items()} for layer in bundle.weights]
    try:
        save_bundle(place, msgspec.structs.replace(bundle.card, weights_sha256=""), weights)
        with pytest.raises(ConfigError, match="the model bundle is not what the run used"):
            verify_run(folder)
    finally:
        shutil.rmtree(place)
        shutil.copytree(kept, place)


def test_changed_data_are_refused(replayed, copy):
    folder = copy(replayed)
    recipe = folder / "recipe.toml"
    text = recipe.read_text()
    recipe.write_text(text.replace("messages_per_s = 500.0", "messages_per_s = 501.0"))
    with pytest.raises(ConfigError, match="the market data is not what the run used"):
        verify_run(folder)


def test_what_is_no_run_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"no environment\.json: is it a run folder"):
        verify_run(tmp_path)


@pytest.mark.parametrize("text", ["garbage", "[]", "{}"])
def test_a_damaged_environment_is_named(replayed, copy, text):
    folder = copy(replayed)
    (folder / "environment.json").write_text(text)
    with pytest.raises(DataError, match=r"environment\.json is damaged"):
        verify_run(folder)


# ---- damage ------------------------------------------------------------


def spoil(folder, change):
    path = folder / "journal.bin"
    records = np.fromfile(path, JOURNAL)
    change(records)
    path.write_bytes(records.tobytes())


@pytest.mark.parametrize("run", ["replayed", "lived"])
@pytest.mark.parametrize(("kind", "name"), [(3, "UPDATE"), (7, "NEW"), (11, "ROW")])
def test_a_flipped_bit_is_found_and_its_record_named(request, copy, run, kind, name):
    folder = copy(request.getfixturevalue(run))
    at = []

    def flip(records):
        at.append(int(np.flatnonzero(records["kind"] == kind)[3]))
        records["ts"][at[0]] ^= 1 << 20

    spoil(folder, flip)
    with pytest.raises(DataError, match=rf"journal record {at[0]} of \d+ \({name}\) is damaged"):
        verify_run(folder)


@pytest.mark.parametrize(("kind", "name"), [(7, "NEW"), (8, "CANCEL"), (11, "ROW")])
def test_an_output_rewritten_with_a_right_checksum_is_a_difference(lived, copy, kind, name):
    folder = copy(lived)
    at = []

    def rewrite(records):
        at.append(int(np.flatnonzero(records["kind"] == kind)[2]))
        records["a"][at[0]] += 1
        records["check"] = checksums(records)

    spoil(folder, rewrite)
    result = verify_run(folder)
    assert result.differences == 1
    assert result.first.startswith(f"record {at[0]}: was {name} (")


def test_a_fill_rewritten_with_a_right_checksum_is_a_difference(lived, copy):
    folder = copy(lived)

    def rewrite(records):
        fills = (records["kind"] == 3) & (records["a"] >> 24 == 3)
        at = int(np.flatnonzero(fills)[0])
        records["lots"][at] += 1
        records["check"] = checksums(records)

    spoil(folder, rewrite)
    assert verify_run(folder).differences > 0


@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_a_flipped_bit_in_the_market_file_is_found(lived, copy, where):
    folder = copy(lived)
    path = folder / "market.bin"
    blob = bytearray(path.read_bytes())
    blob[int(where * (len(blob) - 1))] ^= 4
    path.write_bytes(blob)
    with pytest.raises(DataError, match=r"market rows \d+ to \d+ are damaged: .* record \d+"):
        verify_run(folder)


def test_a_market_file_that_was_cut_is_named(lived, copy):
    folder = copy(lived)
    path = folder / "market.bin"
    os.truncate(path, path.stat().st_size // 128 * 64)
    with pytest.raises(DataError, match=r"points to market rows .* the market file has"):
        verify_run(folder)


def test_a_journal_cut_inside_a_record_is_refused(lived, copy):
    folder = copy(lived)
    path = folder / "journal.bin"
    os.truncate(path, path.stat().st_size - 17)
    with pytest.raises(DataError, match=r"is cut: .* not a whole number of 64-byte records"):
        verify_run(folder)


@pytest.mark.parametrize("records", [1, 100, -1])
def test_a_live_journal_cut_after_a_record_verifies_as_far_as_it_goes(lived, copy, same, records):
    folder = copy(lived)
    path = folder / "journal.bin"
    size = path.stat().st_size // 64
    left = records if records > 0 else size + records
    os.truncate(path, left * 64)
    result = same(folder)
    assert result.records == left
    assert "ends without END" in str(result)


def test_a_cut_journal_of_a_backtest_is_a_difference(replayed, copy):
    folder = copy(replayed)
    path = folder / "journal.bin"
    os.truncate(path, path.stat().st_size - 64)
    result = verify_run(folder)
    assert result.differences == 1
    assert result.first.startswith("only the replay has record")


def test_a_record_blanked_in_the_middle_is_not_taken_for_the_end(lived, copy):
    folder = copy(lived)

    def blank(records):
        records[50] = np.zeros(1, JOURNAL)[0]

    spoil(folder, blank)
    with pytest.raises(DataError, match=r"journal record 50 of \d+ \(kind 0\) is damaged"):
        verify_run(folder)


def test_a_whole_journal_ends_with_its_own_length(lived):
    records = run_folder.read_journal(lived)
    assert records["kind"][-1] == RecordKind.END
    assert records["a"][-1] == len(records) - 1
    assert (records["check"] == checksums(records)).all()


def test_a_damaged_run_is_an_exit_code_and_one_line(lived, copy, hft):
    folder = copy(lived)
    spoil(folder, lambda records: records["b"].__setitem__(5, 77))
    code, _, err = hft("verify", folder).wait()
    assert code == DataError.exit_code
    assert err.startswith("error: journal record 5 of")
    assert "Traceback" not in err
