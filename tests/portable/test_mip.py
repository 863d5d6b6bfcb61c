"""The package for boards, installed over http as `mip` does, into an empty folder: it is whole and works."""

import json
import shutil

import pytest

from ldp_client import Study, mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import AnswerError
from tests import studies
from tests.portable import make_vectors, mip
from tests.portable.folder_site import served
from tests.portable.platforms import REPOSITORY, micropython, run_micropython
from tests.portable.stream import Stream

PACKAGE = REPOSITORY / "ldp_client"
ANSWERS = """
import json
from ldp_client import Study, mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import AnswerError
from tests.portable.stream import Stream
study = Study.from_json(open("/data/study.json").read())
random = NotForRealAnswers(Stream(b"", "mip").read)
try:
    mechanisms_of(study)["ever"].quantise("perhaps")
except AnswerError as error:
    refused = str(error)
print(json.dumps([perturb_answers(study, mechanisms_of(study), {"ever": "yes"}, random).to_json(), refused]))
"""
STUDY = studies.document(studies.YES_NO)


@pytest.fixture
def board(tmp_path):
    """A board's empty folder, and the package in it."""
    folder = tmp_path / "lib"
    folder.mkdir()
    with served(PACKAGE) as origin:
        places = mip.install(f"{origin}/package.json", folder)
    assert sorted(places) == sorted(
        one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file()
    )
    return folder


def test_package_installed_by_mip_answers(board, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "study.json").write_text(json.dumps(STUDY))
    report, refused = json.loads(run_micropython(data, ANSWERS, board))
    study, random = Study(STUDY), NotForRealAnswers(Stream(b"", "mip").read)
    mechanisms = mechanisms_of(study)
    assert report == perturb_answers(study, mechanisms, {"ever": "yes"}, random).to_json()
    with pytest.raises(AnswerError) as here:
        mechanisms["ever"].quantise("perhaps")
    assert refused == str(here.value)


@pytest.mark.slow
def test_package_installed_by_mip_passes_all_vectors(board):
    found = micropython(make_vectors.FOLDER, board)
    assert found
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_omitted_file_is_detected(board, tmp_path):
    """Only installed files are available: without one file nothing works."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "study.json").write_text(json.dumps(STUDY))
    (board / "ldp_client" / "core" / "strips.py").unlink()
    with pytest.raises(AssertionError, match="strips"):
        run_micropython(data, ANSWERS, board)


def test_package_with_a_missing_file_is_not_installed(tmp_path):
    copy = tmp_path / "package"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "core" / "strips.py").unlink()
    with served(copy) as origin, pytest.raises(mip.NotInstalledError, match=r"core/strips\.py"):
        mip.install(origin, tmp_path / "lib")
