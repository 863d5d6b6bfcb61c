"""A dataset that is written into another one's folder, whose readers count twice, or read the stale one."""

from __future__ import annotations

import shutil

import pytest

from collector.exports.dataset import export_dataset
from ldp_client.documents.errors import InputError, UsageError
from summaries.engines.dataset import find_dataset
from tests.collector.test_archives import archived, closed, many  # noqa: F401
from tests.collector.test_datasets import STUDY, contents


def test_no_dataset_is_written_into_another_s_folder_of_a_study(closed, tmp_path):  # noqa: F811
    root, named = tmp_path / "out", tmp_path / "habits"
    export_dataset(closed.order(root))
    shutil.copytree(root / STUDY, named)
    before = contents(tmp_path)
    for place in (root / STUDY, f"file://{root}/{STUDY}/", root / STUDY / "again", named, named / "a" / "b"):
        with pytest.raises(UsageError, match=r"is in a dataset's folder of one study, (study_id=)?habits:"):
            export_dataset(closed.order(place))
    closed.root = root / STUDY
    with pytest.raises(UsageError, match="is in a dataset's folder"):
        archived(closed)
    assert contents(tmp_path) == before
    # Another program's file of that name is no dataset.
    (tmp_path / "_manifest.json").write_text("[]")
    export_dataset(closed.order(root))


def test_nor_is_the_inner_one_read_in_place_of_the_outer(closed, tmp_path):  # noqa: F811
    root, study = tmp_path / "out", closed.studies[0]
    export_dataset(closed.order(root))
    right = find_dataset(study, root)
    assert len(find_dataset(study, root / STUDY).files) == len(right.files)
    (root / "_manifest.json").write_text('{"files": []}')
    assert find_dataset(study, root) == right
    shutil.copytree(root / STUDY, tmp_path / "inner")
    (tmp_path / "inner").rename(root / STUDY / STUDY)
    with pytest.raises(InputError, match="is a dataset inside the one of"):
        find_dataset(study, root / STUDY)
    assert find_dataset(study, root) == right
