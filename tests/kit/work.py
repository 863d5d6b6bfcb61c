"""How much a block of code does, on any machine, without finalizers of other tests' garbage."""

import cProfile
import gc
import sys
from contextlib import contextmanager
from types import SimpleNamespace


@contextmanager
def counted():
    """Count the calls of this thread, in Python and C; yield a function that returns how many have ended."""
    profile = cProfile.Profile()
    gc.disable()
    profile.enable()
    try:
        yield lambda: sum(entry.callcount for entry in profile.getstats())
    finally:
        profile.disable()
        gc.enable()


@contextmanager
def instructions():
    """Count the Python instructions that this thread executes in the block."""
    clock, before = SimpleNamespace(count=0), sys.gettrace()
    gc.disable()

    def trace(frame, event, _argument):
        frame.f_trace_opcodes = True
        clock.count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        yield clock
    finally:
        sys.settrace(before)
        gc.enable()
