"""`import bertbook` does no work and loads no backend."""

import subprocess
import sys

HEAVY = ("keras", "tensorflow", "jax", "torch", "keras_hub", "matplotlib")
SCRIPT = f"""
import sys
import bertbook
print([name for name in {HEAVY} if name in sys.modules])
dir(bertbook), bertbook.__version__
print([name for name in {HEAVY} if name in sys.modules])
"""


def test_import_loads_no_backend():
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == ["[]", "[]"]
    assert finished.stderr == ""
