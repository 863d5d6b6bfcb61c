"""How much a block of code does: it is the same on a slow machine and on a busy one."""

import cProfile
import gc
import sys
from contextlib import contextmanager
from types import SimpleNamespace


@contextmanager
def counted():
    """Count the calls that this thread makes in the block; yield a function that returns how many have ended.

    Calls are of functions in Python and in C; each step of a generator is one. Garbage of other tests waits,
    because its finalizers would count.
    """
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

    def trace(frame, event, _argument):
        frame.f_trace_opcodes = True
        clock.count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        yield clock
    finally:
        sys.settrace(before)
