"""Expected errors by what stays when words change: class, code, field and the facts in the message."""

import re
from contextlib import contextmanager

import pytest

Code = str | tuple[str, ...]


@contextmanager
def raises(kind, code, *facts, field=None):
    """Fail unless the block raises an error of this class and code.

    Args:
        kind: the error's class, or classes of which it has one.
        code: its `code`; from a table of cases also a tuple of the code and facts.
        facts: what the message must name, such as a file, a row or an option.
        field: the error's `field`, where that is part of what is expected.
    """
    wanted, more = (code, ()) if isinstance(code, str) else (code[0], code[1:])
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.code == wanted, f"{error.code}: {error}"
    if field is not None:
        assert error.field == field, error
    for fact in (*more, *facts):
        # 1 is no fact about 12.
        stated = re.findall(r"\d+", str(error)) if fact.isdecimal() else str(error)
        assert fact in stated, f"{fact!r} is not in: {error}"
