"""The Containerfile as steps, and an image's root from them, for machines without a container engine."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.roots import PATH, Inside, call, copy

REPOSITORY = Path(__file__).resolve().parents[2]
CONTAINERFILE = REPOSITORY / "deploy" / "Containerfile"
# What a stage does.
DONE = {"FROM", "ARG", "ENV", "RUN", "COPY"}
# What an engine notes for later.
NOTED = {"CMD", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "USER", "VOLUME", "WORKDIR"}


@dataclass(frozen=True)
class Step:
    """One instruction: its word, its options (--name=value) and the rest of its text."""

    word: str
    options: dict[str, str]
    text: str

    @property
    def words(self) -> list[str]:
        """The text as a list: of a JSON array its entries."""
        return [*map(str, json.loads(self.text))] if self.text.startswith("[") else self.text.split()


@dataclass(frozen=True)
class Stage:
    """What one FROM begins."""

    name: str
    steps: list[Step] = field(default_factory=list)

    def last(self, word: str) -> Step:
        """The last such step, which is the one that holds. Raises IndexError."""
        return [step for step in self.steps if step.word == word][-1]

    @property
    def variables(self) -> dict[str, str]:
        """What ENV says."""
        return pairs([words for step in self.steps if step.word == "ENV" for words in step.words])


def read() -> list[Stage]:
    """The stages of the Containerfile. Raises ValueError for an instruction that is not understood."""
    text = re.sub(r"^\s*#.*\n", "", CONTAINERFILE.read_text(encoding="utf-8"), flags=re.M)
    stages: list[Stage] = []
    for line in filter(None, map(str.strip, text.replace("\\\n", "").splitlines())):
        word, _, rest = line.partition(" ")
        if word not in DONE | NOTED:
            raise ValueError(f"not understood: {line[:80]}")
        if word == "FROM":
            stages.append(Stage(rest.partition(" AS ")[2]))
        # Before the first stage stands the image that all begin with.
        elif stages:
            options, step = re.fullmatch(r"((?:--[\w-]+=\S+\s+)*)(.*)", rest).groups()
            stages[-1].steps.append(Step(word, pairs(options.replace("--", "").split()), step))
    return stages


def pairs(words: list[str]) -> dict[str, str]:
    """NAME=value words as names and values."""
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def build(folder: Path, base: Path, context: Path, pip: Inside) -> Path:
    """Run every step of the Containerfile. Return the last stage's root.

    Args:
        folder: gets a root for each stage.
        base: a Debian root, which stands for the image that every stage begins with.
        context: the folder that COPY reads.
        pip: how pip reaches packages.
    """
    roots: dict[str, Path] = {}
    for stage in read():
        root = roots[stage.name] = copy(base, folder / (stage.name or "image"))
        variables = {"PATH": PATH}
        for step in stage.steps:
            if step.word in ("ARG", "ENV"):
                variables |= pairs(step.words)
            elif step.word == "RUN":
                inside = Inside({**pip.environment, **variables}, pip.binds)
                call(root, ["/bin/sh", "-c", step.text], inside)
            elif step.word == "COPY":
                copy_files(step, roots.get(step.options.get("from", "-"), context), root)
    return root


def copy_files(step: Step, source: Path, root: Path) -> None:
    """Do what COPY does. Raises ValueError for a file that is not there."""
    *names, target = step.words
    into = root / target.lstrip("/")
    found = [path for name in names for path in sorted(source.glob(name.lstrip("/")))]
    if not found:
        raise ValueError(f"COPY {step.text}: there is no such file; `make release` makes dist/")
    for path in found:
        copied = into / path.name if target.endswith("/") else into
        copied.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, copied, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy(path, copied)
            os.chmod(copied, int(step.options.get("chmod", "0644"), 8))
