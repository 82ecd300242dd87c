"""What a live session measures of its own stages."""

import numpy as np

STAMPS = ("ts_cause_recv", "ts_decide", "ts_handled", "ts_send", "ts_arrive", "ts_ack")
MODEL = ("ts_cause_recv", "ts_model_start", "ts_model_end", "ts_decide")
NO_TIME = np.iinfo(np.int64).min


def test_stages_of_orders_follow_each_other_and_add_up(trade, same, everything, busy):
    folder, outcome = trade(everything, 4, **busy)
    run = outcome.run
    assert run.status == "complete", run.error
    orders = run.orders[(run.orders["ts_send"] != NO_TIME) & (run.orders["ts_ack"] != NO_TIME)]
    by_signal = orders[orders["by_signal"] == 1]
    assert len(orders) > 50
    assert len(by_signal) > 3
    for rows, names in ((orders, STAMPS), (by_signal, MODEL)):
        stages = np.diff(np.stack([rows[name] for name in names]), axis=0)
        assert (stages >= 0).all(), dict(zip(names[1:], stages.min(axis=1), strict=True))
        assert (stages.sum(axis=0) == rows[names[-1]] - rows[names[0]]).all()
    assert (orders["ts_model_start"][orders["by_signal"] == 0] == NO_TIME).all()
    # A service is a step of a small network: not nothing, and mostly well under a millisecond.
    assert len(run.model_service_ns) == len(run.model_wait_ns) > 100
    assert (run.model_service_ns > 0).all()
    assert np.median(run.model_service_ns) < 1_000_000
    assert (run.model_wait_ns >= 0).all()
    same(folder)
