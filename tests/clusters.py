"""A real dask cluster in separate processes, to be killed one by one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: Starts a LocalCluster, scheduler in its own process, and says where it is.
SCRIPT = """
import sys, time
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(
        n_workers=int(sys.argv[1]),
        threads_per_worker=1,
        dashboard_address=None,
        memory_limit=0,
    ) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        print(cluster.scheduler_address, *pids, flush=True)
        sys.stdin.read()
"""


class Cluster:
    """A scheduler and its workers."""

    def __init__(self, folder: Path, n_workers: int = 2) -> None:
        script = folder / "cluster.py"
        script.write_text(SCRIPT)
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(n_workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            # A worker that is gone is given up after this time; 30 s by default.
            env={**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "4s"},
        )
        assert self._process.stdout is not None
        self.address, *pids = self._process.stdout.readline().split()
        self.workers = [int(pid) for pid in pids]

    def kill_worker(self) -> None:
        os.kill(self.workers[0], 9)

    def kill(self) -> None:
        self._process.kill()  # the scheduler, and with it the guards of the workers

    def close(self) -> None:
        self._process.communicate(timeout=20)
