"""What everything stands on: arrays, checks, files, progress, printing."""
