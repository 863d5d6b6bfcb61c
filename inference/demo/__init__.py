"""The whole pipeline on a real survey: study, devices, collector, posterior, report page."""
