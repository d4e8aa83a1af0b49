"""Applications on the library: reproduction, sweep, study, report, explorer."""
