"""Tests of the device core in C."""
