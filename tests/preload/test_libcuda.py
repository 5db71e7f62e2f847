# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lab's libcuda answers mistakes of a program as CUDA does. The expected answers were measured
on an H200 with NVIDIA's open driver 580.159.04. On a machine with a GPU, `python3 answers.py`
prints the GPU's answers."""

import ast
import runpy
import subprocess
import sys
from pathlib import Path

ANSWERS = {
    "a context is destroyed twice": [0, 709],
    "no context is destroyed": [1],
    "a primary context is destroyed": [0, 201, 0],
    "a primary context is released that nobody has retained": [201],
    "a context with unknown flags, or on an unknown device": [1, 101],
    "the device with an unknown number, and its name": [101, 101],
    "set replaces the current context; NULL takes it away; a pop of nothing": [0, 0, 0, 201],
    "the context below was destroyed": [0, 0, 709],
    "memory without a context": [0, 201],
    "an export with flags 1, 2 and 3": [801, 1, 801],
    "an export of less than a page, of nothing, of another type": [1, 1, 1],
}


def test_answers_of_a_real_gpu(bed):
    program = [sys.executable, "-B", Path(__file__).parent / "answers.py"]
    paths = {"LD_LIBRARY_PATH": str(bed.where / "cuda")}
    done = subprocess.run(program, env=paths, stdout=subprocess.PIPE, text=True, check=True)
    assert ast.literal_eval(done.stdout) == ANSWERS


def test_doubles_for_nccl_on_a_real_gpu(tmp_path):
    """No job runs tests/real/nccl.py, which needs GPUs. Its doubles compile, and lack no function
    when they are loaded."""
    program = Path(__file__).parents[1] / "real/nccl.py"
    made = runpy.run_path(str(program))["compile_doubles"](tmp_path)
    assert len(made) == 4
    for file in made:
        load = f"import ctypes, os; ctypes.CDLL({str(file)!r}, os.RTLD_NOW)"
        subprocess.run([sys.executable, "-c", load], check=True)
