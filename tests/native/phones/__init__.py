"""Kotlin, Swift and other processors: `make native` runs these tests, and no other command does."""
