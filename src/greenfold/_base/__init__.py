"""Common foundations: arrays, checks, files, progress, printing."""
