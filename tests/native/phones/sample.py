"""What a sample app of the study `sleep` must do with a real collector."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ldpkit.cli import main
from tests.kit.collectors import Server
from tests.native.example import EXAMPLE

STUDY = EXAMPLE / "study.json"
Run = Callable[..., tuple[int, str]]


@contextmanager
def compiled_for(language: str, folder: Path) -> Iterator[tuple[Server, Path]]:
    """A collector without studies, and the folder of what `ldpkit compile` writes for it."""
    collector = Server(folder)
    try:
        command = ["compile", str(STUDY), "--to", language, "--collector", collector.url]
        assert main([*command, "--out", str(folder / "app")]) == 0
        yield collector, folder / "app"
    finally:
        collector.kill()


def check_sample(run: Run, collector: Server) -> None:
    """Answer, send and withdraw by the app. run: calls it with words, and returns its status and output."""
    # 1. The collector does not know the study yet.
    assert run("journal", "answer", "7.5", "yes") == (1, "0 done, 1 waiting\n")
    # 2. It knows it now, and nobody answers twice.
    assert collector.request("POST", "/v1/studies", json.loads(STUDY.read_text())) == 201
    status, output = run("journal", "answer", "7.5", "yes")
    assert status
    assert "ANSWERED" in output.upper()
    assert exported(collector) == 0
    # 3. The report is sent once, and then withdrawn.
    assert run("journal", "send") == (0, "1 done, 0 waiting\n")
    assert run("journal", "send") == (0, "0 done, 0 waiting\n")
    assert exported(collector) == 1
    assert run("journal", "withdraw") == (0, "1 done, 0 waiting\n")
    assert exported(collector) == 0


def exported(collector: Server) -> int:
    """How many reports the collector has stored."""
    return collector.read("/v1/studies/sleep/export").count("ldpkit.report/1")
