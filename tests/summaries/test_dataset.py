"""Files of a dataset, on a disk or in a store: all that are listed are read, or an error names them."""

import pytest

from ldp_client.documents.errors import InputError, TransferError
from summaries import summarize_dataset
from tests.kit.errors import raises
from tests.summaries.engines_data import FEW, REPORTS, RIGHT, STUDY, made, write, write_dataset

OWN = "study_id=survey"
JANUARY, FEBRUARY = "study_version=1/day=2026-01-01", "study_version=1/day=2026-02-01"


@pytest.mark.attack(19)
def test_unlisted_files_in_a_dataset_are_reported_with_a_fix(tmp_path):
    """Put a later day's file into a dataset's folder, whose manifest does not list it."""
    folder = write_dataset(tmp_path, REPORTS[:200])
    write(folder / FEBRUARY / "part-00.parquet", REPORTS[200:])
    named = f"{folder}/**/*.parquet"
    for where in (tmp_path, folder):
        with raises(InputError, "merge.dataset_copied", f"{FEBRUARY}/part-00.parquet", f"'{named}'"):
            summarize_dataset(STUDY, where)
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


@pytest.mark.attack(19)
def test_pattern_finds_new_files(monkeypatch, tmp_path):
    """Let files arrive after a store's library has listed their folder."""
    fsspec = pytest.importorskip("fsspec")
    store = type(fsspec.filesystem("memory"))
    genuine, listings = store.ls, {}

    def ls(self, path, detail=True, **_named):
        if path not in listings:
            listings[path] = genuine(self, path, detail=True)
        return listings[path] if detail else [one["name"] for one in listings[path]]

    # Listings are kept as S3's are.
    monkeypatch.setattr(store, "ls", ls)
    monkeypatch.setattr(store, "find", fsspec.AbstractFileSystem.find)
    monkeypatch.setattr(store, "invalidate_cache", lambda _self, _path=None: listings.clear())
    memory, reports = fsspec.filesystem("memory"), made(FEW, 50)
    for name, some, total in (("a", reports[:20], 20), ("b", reports[20:], 50)):
        kept = dict(listings)
        memory.put_file(write(tmp_path / name, some), f"/day/{name}.parquet")
        # Of what another program writes this one's library hears nothing.
        listings.update(kept)
        assert summarize_dataset(FEW, "memory://day/*.parquet").questions["ever"].n == total
    monkeypatch.undo()
    memory.rm("/day", recursive=True)


@pytest.mark.attack(19)
def test_a_linked_folder_in_a_dataset_is_refused(tmp_path):
    """A link puts a second dataset into the folder of the first, so that its reports would be left out."""
    folder = write_dataset(tmp_path / "first", REPORTS[:200])
    write(tmp_path / "second" / "part-00.parquet", REPORTS[200:])
    (folder / "study_version=1" / "more").symlink_to(tmp_path / "second")
    with raises(InputError, "merge.dataset_copied", "more"):
        summarize_dataset(STUDY, tmp_path / "first")


class NoCredentialsError(Exception):
    """As the libraries of stores have them: none of Python's own."""


@pytest.fixture
def store(tmp_path):
    """A store with a dataset and files."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    write_dataset(tmp_path, made(FEW, 60))
    memory.put(f"{tmp_path}/study_id=survey", "/away/study_id=survey", recursive=True)
    memory.put(write(tmp_path / "one.parquet", made(FEW, 60)), "/files/one.parquet")
    yield memory
    memory.rm("/away", recursive=True)
    memory.rm("/files", recursive=True)


@pytest.mark.parametrize(("address", "after"), [("memory://away", 1), ("memory://files/*.parquet", 0)])
@pytest.mark.parametrize("error", [NoCredentialsError("no credentials,\nnowhere"), TimeoutError()])
def test_failing_store_gives_an_error_of_one_line(store, monkeypatch, address, after, error):
    genuine, left = type(store).open, iter(range(after))

    def failing(self, path, *arguments, **named):
        if path.endswith(".parquet") and next(left, None) is None:
            raise error
        return genuine(self, path, *arguments, **named)

    monkeypatch.setattr(type(store), "open", failing)
    with raises(TransferError, "files.store_not_readable") as caught:
        summarize_dataset(FEW, address)
    assert "part-0" in str(caught.value) or "files/one.parquet" in str(caught.value)
    assert "no credentials, nowhere" in str(caught.value) or "TimeoutError" in str(caught.value)


def test_damaged_content_is_distinguished_from_failing_store(store):
    store.pipe_file("/files/two.parquet", b"PAR1 and nothing")
    with raises(InputError, "files.not_parquet", "two.parquet"):
        summarize_dataset(FEW, "memory://files/*.parquet")
