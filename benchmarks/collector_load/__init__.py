"""What the collector's benchmarks share: a load generator, servers under load, and request bodies."""
