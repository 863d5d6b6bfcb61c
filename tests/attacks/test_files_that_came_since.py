"""A summary silently misses files that arrived or grew after a store's library had listed their folder.

Defence: `summarize_dataset`, `count_dataset`: list the store again, at each call and for each file. Known
limit: files that arrive while a call runs.
"""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace

import pytest

from summaries import count_dataset, summarize_dataset
from tests.summaries.engines_data import FEW, made, write

fsspec = pytest.importorskip("fsspec")
MemoryFileSystem = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem
REPORTS = made(FEW, 90)


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Writes a file of a store as another program does, whose library keeps listings as S3's does."""
    listings, genuine = {}, SimpleNamespace(ls=MemoryFileSystem.ls, open=MemoryFileSystem.open)
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
        patch.setattr(MemoryFileSystem, "ls", ls)
        patch.setattr(MemoryFileSystem, "find", fsspec.AbstractFileSystem.find)
        patch.setattr(MemoryFileSystem, "open", opened)
        patch.setattr(MemoryFileSystem, "invalidate_cache", lambda _self, _path=None: listings.clear())
        yield put_one
    memory.rm("/day", recursive=True)


def counts(addresses):
    """How many reports a summary has, and a count."""
    summary = summarize_dataset(FEW, addresses)
    seen = count_dataset(FEW, addresses, ["ever"]).seen
    return summary.questions["ever"].n, sum(seen.values())


@pytest.mark.parametrize("pattern", ["memory://day/*.parquet", "memory://day/?.parquet"])
def test_pattern_finds_new_and_grown_files(put, pattern):
    put("a.parquet", REPORTS[:20])
    assert counts(pattern) == (20, 20)
    put("b.parquet", REPORTS[20:50])
    assert counts(pattern) == (50, 50)
    put("a.parquet", [*REPORTS[:20], *REPORTS[50:]])
    assert counts(pattern) == (90, 90)


def test_file_that_grew_after_listing_is_read_completely(put):
    put("a.parquet", REPORTS[:20])
    fsspec.filesystem("memory").ls("/day")
    put("a.parquet", REPORTS)
    assert counts(["memory://day/a.parquet"]) == (90, 90)


def test_brackets_in_a_file_name_are_taken_literally(put):
    put("a[1].parquet", REPORTS[:20])
    put("a1.parquet", REPORTS[20:])
    assert counts("memory://day/a[1].parquet") == (20, 20)
