"""What importing greenfold brings along."""

from __future__ import annotations

import subprocess
import sys


def test_importing_greenfold_imports_no_optional_package():
    code = (
        "import sys, greenfold.estimators.margin.classifier\n"
        "import greenfold.estimators.margin.export\n"
        "optional = {'aeon', 'onnx', 'onnxruntime', 'reservoirpy', 'torch'}\n"
        "assert not optional & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pooled_names_load_when_they_are_used():
    code = (
        "import sys, greenfold\n"
        "assert 'greenfold.estimators.pooled.classifier' not in sys.modules\n"
        "from greenfold import PooledReservoirClassifier, ReservoirFeatures\n"
        "assert not {'aeon', 'numba', 'onnx', 'torch'} & set(sys.modules)\n"
        "assert {'PooledReservoirRegressor', 'pooled'} <= set(dir(greenfold))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
