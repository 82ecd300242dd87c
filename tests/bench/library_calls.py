"""Other libraries' own call alone, on buffers that lie ready.

No scaling and no copying around it: what the native step is held against. `Backend.step` takes
longer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hft.inference.bench.timing import Timing, timed


def onnx_step(path: Path, rows: np.ndarray) -> Any:
    """A function of the row's number: copies a scaled row in and runs, states bound in turns.

    Args:
        path: of a step.
        rows: (n, inputs) float32, scaled.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    value = ort.OrtValue.ortvalue_from_numpy
    x = np.zeros((1, rows.shape[1]), np.float32)
    states = [i for i in session.get_inputs() if i.name != "x"]
    memories = [{s.name: np.zeros(s.shape, np.float32) for s in states} for _ in range(2)]
    y = np.zeros(session.get_outputs()[0].shape, np.float32)
    bindings = []
    for old, new in ((0, 1), (1, 0)):
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", value(x))
        binding.bind_ortvalue_output("y", value(y))
        for s in states:
            binding.bind_ortvalue_input(s.name, value(memories[old][s.name]))
            binding.bind_ortvalue_output(f"{s.name}_out", value(memories[new][s.name]))
        bindings.append(binding)
    run, row, n = session.run_with_iobinding, x[0], len(rows)

    def one(i: int) -> None:
        row[:] = rows[i % n]
        run(bindings[i & 1])

    return one


def onnx_run(path: Path, seconds: float, before: Any = None) -> Timing:
    """`run_with_iobinding` of a step, or of a window, on the same inputs again and again."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    kept = []
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        kept.append(ort.OrtValue.ortvalue_from_numpy(np.full(shape, 0.1, np.float32)))
        binding.bind_ortvalue_input(i.name, kept[-1])
    for o in session.get_outputs():
        shape = [d if isinstance(d, int) else 1 for d in o.shape]
        kept.append(ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32)))
        binding.bind_ortvalue_output(o.name, kept[-1])
    run = session.run_with_iobinding
    return timed(lambda i: run(binding), seconds=seconds, before=before)


def litert_invoke(path: Path, seconds: float, before: Any = None) -> Timing:
    """`invoke` of a step on the same inputs again and again."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    for given in interpreter.get_signature_runner("step").get_input_details().values():
        interpreter.set_tensor(given["index"], np.full(given["shape"], 0.1, np.float32))
    invoke = interpreter.invoke
    return timed(lambda i: invoke(), seconds=seconds, before=before)
