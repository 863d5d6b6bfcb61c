"""Moves part of a dataset elsewhere, and leaves a link: an export deleted nothing behind it and said nothing,
while whoever read the dataset followed the link to what people had withdrawn."""

from __future__ import annotations

import os
import shutil

import pytest

from collector.exports.dataset import export_dataset
from collector.operator.retention import delete_reports
from collector.storage.migrating import opened
from ldp_client.documents.errors import InputError
from summaries import summarize_dataset
from tests.collector.test_archives import closed, many  # noqa: F401
from tests.collector.test_datasets import STUDY, contents


def moved(path, to):
    """What was there lies elsewhere, with a link in its place."""
    shutil.move(path, to)
    path.symlink_to(to)


@pytest.mark.parametrize("which", ["day=*", "*/*.parquet"])
def test_no_export_passes_by_what_a_link_leads_to(many, tmp_path, which):  # noqa: F811
    root = tmp_path / "out"
    export_dataset(many.order(root))
    moved(sorted((root / STUDY / "study_version=1").glob(which))[0], tmp_path / "elsewhere")
    before = contents(root)
    with pytest.raises(InputError, match="is a link, behind which no report could be deleted: put back"):
        export_dataset(many.order(root, forget_before=many.days[1]))
    assert contents(root) == before


def test_a_whole_dataset_may_lie_behind_a_link(many, tmp_path):  # noqa: F811
    root = tmp_path / "out"
    export_dataset(many.order(root))
    moved(root, tmp_path / "disk")
    moved(root / STUDY, tmp_path / "larger-disk")
    with opened(many.url, 5) as database:
        assert delete_reports(database, "habits", many.days[1]) == 40
    assert export_dataset(many.order(root, forget_before=many.days[1])).manifest.reports == 80
    assert not list((tmp_path / "larger-disk").rglob(f"day={many.days[0]}"))
    found = summarize_dataset(many.studies[0], root)
    assert {one.n for one in found.questions.values()} == {40}


def test_no_export_passes_by_a_folder_that_it_cannot_list(many, tmp_path, monkeypatch):  # noqa: F811
    """Another owner's, say: what was withdrawn stayed in it, and the export said that all was done."""
    root = tmp_path / "out"
    export_dataset(many.order(root))
    scan = os.scandir

    def refusing(path):
        if str(path).endswith(str(many.days[0])):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    before = contents(root)
    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(InputError, match=rf"^cannot list .*day={many.days[0]}: Permission denied$"):
        export_dataset(many.order(root, forget_before=many.days[1]))
    monkeypatch.undo()
    assert contents(root) == before


def test_links_that_lead_back_are_followed_once(many, tmp_path):  # noqa: F811
    """Two of them were followed without end."""
    root = tmp_path / "out"
    export_dataset(many.order(root))
    for name in ("one", "other"):
        (root / STUDY / "study_version=1" / name).symlink_to(root)
    found = summarize_dataset(many.studies[0], root)
    assert {one.n for one in found.questions.values()} == {60}
