"""Pure functions of arrays: sphere, margins, covariances, decisions, calibration."""
