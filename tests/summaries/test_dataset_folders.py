"""Files of a dataset: all that the manifest lists are read, or an error names them."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace

import pytest

from ldp_client.documents.errors import InputError
from summaries import summarize_dataset
from tests.kit.errors import raises
from tests.summaries.engines_data import FEW, REPORTS, RIGHT, STUDY, made, write, write_dataset

OWN = "study_id=survey"
JANUARY, FEBRUARY = "study_version=1/day=2026-01-01", "study_version=1/day=2026-02-01"


@pytest.fixture
def both(tmp_path):
    """The folder of an earlier export's manifest, with a day of a later one's."""
    write_dataset(tmp_path, REPORTS[:200])
    write(tmp_path / OWN / FEBRUARY / "part-00.parquet", REPORTS[200:])
    return tmp_path


def refusal_of(where):
    with pytest.raises(InputError) as error:
        summarize_dataset(STUDY, where)
    return str(error.value)


@pytest.mark.attack(19)
def test_unlisted_files_in_a_dataset_are_reported_with_a_fix(both):
    """Put a later day's file into a dataset's folder, whose manifest does not list it."""
    said = refusal_of(both)
    assert said == refusal_of(both / OWN)
    assert said.startswith(
        f"{both / OWN} has 1 Parquet file that _manifest.json does not list: {FEBRUARY}/part-00.parquet. "
    )
    named = f"{both / OWN}/**/*.parquet"
    assert f"name the files, '{named}'," in said
    assert summarize_dataset(STUDY, named).to_json() == RIGHT


@pytest.mark.parametrize(
    "name",
    [
        f"study_id=other/{FEBRUARY}/part-00.parquet",
        f"{OWN}/study_version=2/day=2026-02-01/part-00.parquet",
        f"{OWN}/{JANUARY}/._part-00.parquet",
        f"{OWN}/study_version=1/_temporary/part-00.parquet",
    ],
)
def test_unrelated_files_in_a_dataset_are_ignored(tmp_path, name):
    write_dataset(tmp_path, REPORTS)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"")
    assert summarize_dataset(STUDY, tmp_path).to_json() == RIGHT


OF_FEW = made(FEW, 90)


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Writes a file of a store as another program does, whose library keeps listings as S3's does."""
    fsspec = pytest.importorskip("fsspec")
    store = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem
    listings, genuine = {}, SimpleNamespace(ls=store.ls, open=store.open)
    memory = fsspec.filesystem("memory")

    def ls(self, path, detail=True, **_named):
        if path not in listings:
            listings[path] = genuine.ls(self, path, detail=True)
        return listings[path] if detail else [one["name"] for one in listings[path]]

    def opened(self, path, mode="rb", **named):
        if mode != "rb":
            return genuine.open(self, path, mode, **named)
        known = [one["size"] for some in listings.values() for one in some if one["name"] == path]
        return BytesIO(memory.cat_file(path)[: known[0] if known else None])

    def put_one(name, reports):
        kept = dict(listings)
        memory.put_file(write(tmp_path / name, reports), f"/day/{name}")
        # Of what another program writes this one's library hears nothing.
        listings.update(kept)

    with monkeypatch.context() as patch:
        patch.setattr(store, "ls", ls)
        patch.setattr(store, "find", fsspec.AbstractFileSystem.find)
        patch.setattr(store, "open", opened)
        patch.setattr(store, "invalidate_cache", lambda _self, _path=None: listings.clear())
        yield put_one
    memory.rm("/day", recursive=True)


def count(addresses):
    """How many reports a summary has."""
    return summarize_dataset(FEW, addresses).questions["ever"].n


@pytest.mark.attack(19)
def test_pattern_finds_new_and_grown_files(put):
    """Let files arrive or grow after a store's library has listed their folder."""
    put("a.parquet", OF_FEW[:20])
    assert count("memory://day/*.parquet") == 20
    put("b.parquet", OF_FEW[20:50])
    assert count("memory://day/*.parquet") == 50
    put("a.parquet", [*OF_FEW[:20], *OF_FEW[50:]])
    assert count("memory://day/*.parquet") == 90


@pytest.mark.attack(19)
def test_a_linked_folder_in_a_dataset_is_refused(tmp_path):
    """A link puts a second dataset into the folder of the first, so that its reports would be left out."""
    write_dataset(tmp_path / "first", REPORTS[:200])
    write(tmp_path / "second" / "part-00.parquet", REPORTS[200:])
    (tmp_path / "first" / OWN / "study_version=1" / "more").symlink_to(tmp_path / "second")
    with raises(InputError, "merge.dataset_copied", "more"):
        summarize_dataset(STUDY, tmp_path / "first")
