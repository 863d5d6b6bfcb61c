"""`ldpkit export` over HTTP, from a collector that a test may put behind a faulty network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ldpkit.cli.dataset import write_dataset
from schemas import Study
from tests.kit.collectors import TOKEN, Harness, build_report, build_study
from tests.kit.commands import run


def run_export(url: str, out: Any, token: str = TOKEN) -> int:
    """Export `habits`; return 0, or raise the command's error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDPKIT_TOKEN", token)
        run("export", "habits", "--collector", url, "--out", str(out))
    return 0


def cutting(app: Any, sizes: Iterator[int]) -> Any:
    """The app behind a network that lets only so many bytes of each answer through."""

    def cut(environ: Any, start_response: Any) -> list[bytes]:
        body = b"".join(app(environ, start_response))
        return [body[: next(sizes, None)]]

    return cut


class Many:
    """A collector with reports of two versions, and the datasets that they make."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.studies = [build_study(1), build_study(2)]
        self.sent = []
        for study in self.studies:
            harness.publish(study)
            some = [build_report(study) for _ in range(60)]
            assert harness.post([one.to_document() for one in some]).status_code == 200
            self.sent += some

    @property
    def ids(self) -> set[str]:
        return {one.id for one in self.sent}

    def find(self, version: int, digest: str) -> Study:
        (found,) = (study for study in self.studies if (study.version, study.digest) == (version, digest))
        return found

    def write(self, address: Any, reports: Any = None) -> Any:
        ordered = sorted(self.sent, key=lambda one: one.id) if reports is None else reports
        return write_dataset(ordered, "habits", str(address), self.find)


def contents(root: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
