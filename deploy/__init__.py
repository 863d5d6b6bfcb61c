"""What puts a collector on machines, and the check that runs all of it without a container engine."""
