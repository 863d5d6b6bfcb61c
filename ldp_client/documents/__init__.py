"""The documents that devices, collectors and analysts agree on: studies, reports, their shapes and errors."""
