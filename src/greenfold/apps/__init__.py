"""Applications of the library: reproduction, sweep, study, report and explorer."""
