"""Many jobs, one result file each: resumed after a stop, on one machine or on a cluster."""

from .engine import Summary, run_jobs
from .job import SEAL, Job
from .pools import ClusterLostError, default_jobs
from .store import Failure, State, Store

__all__ = [
    "SEAL",
    "ClusterLostError",
    "Failure",
    "Job",
    "State",
    "Store",
    "Summary",
    "default_jobs",
    "run_jobs",
]
