"""What importing greenfold brings along."""

from __future__ import annotations

import subprocess
import sys


def test_importing_greenfold_imports_no_optional_package():
    code = (
        "import sys, greenfold.classifier.estimator, greenfold.classifier.export\n"
        "optional = {'aeon', 'onnx', 'onnxruntime', 'reservoirpy', 'torch'}\n"
        "assert not optional & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
