"""Clocks and days that code is given in place of the true ones."""

import sys
from datetime import date


class InstructionClock:
    """The number of Python instructions executed while it was switched on."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        return self.count

    def _trace(self, frame, event, _argument):
        frame.f_trace_opcodes = True
        self.count += event == "opcode"
        return self._trace

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)


def today_is(monkeypatch, module, day):
    """Have a module that asks `date.today()` get this day."""
    monkeypatch.setattr(module, "date", type("Today", (date,), {"today": classmethod(lambda _: day)}))
