"""Many jobs, one result file each: resumed after a stop, on one machine or on a cluster."""

from greenfold.jobs.engine import Summary, run_jobs
from greenfold.jobs.job import SEAL, Job
from greenfold.jobs.pools import ClusterLostError, default_jobs
from greenfold.jobs.store import Failure, State, Store

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
