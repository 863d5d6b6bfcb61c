"""Error codes: each error states one, and one file shows all messages."""

import re

from ldp_client.documents import errors
from ldp_client.documents.errors import LdpkitError
from tests.kit.messages import GOLDEN, calls, code_of, lines

CODE = re.compile(r"[a-z_]+(\.[a-z0-9_]+)+")


def test_each_error_states_a_code():
    codes = {f"{file}:{call.lineno}": code_of(call) for file, call, _name in calls()}
    assert len(codes) > 500
    assert [place for place, code in codes.items() if code is None] == []
    assert [code for code in codes.values() if code and not CODE.fullmatch(code)] == []


def test_each_error_class_has_unique_code():
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    classes = [one for one in classes if issubclass(one, LdpkitError)]
    codes = [one.code for one in classes]
    assert len(classes) > 10
    assert len(set(codes)) == len(codes)


def test_error_keeps_code_across_processes():
    import pickle

    error = pickle.loads(pickle.dumps(errors.InputError("a line", code="files.not_utf8")))
    assert (str(error), error.code) == ("a line", "files.not_utf8")


def test_the_golden_file_shows_all_messages():
    """After a change of messages, run `python -m tests.kit.messages` and read the difference."""
    assert GOLDEN.read_text(encoding="utf-8").splitlines() == lines()
