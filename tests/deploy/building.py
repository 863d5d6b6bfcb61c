"""The Containerfile as steps, and an image's root from them, for machines without a container engine."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.roots import PATH, Inside, call, copy

REPOSITORY = Path(__file__).resolve().parents[2]
CONTAINERFILE = REPOSITORY / "deploy" / "Containerfile"
KNOWN = frozenset(
    "ARG COPY CMD ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK RUN USER VOLUME WORKDIR".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Step:
    """One instruction: its word, its options (--name=value) and the rest of its text."""

    word: str
    options: dict[str, str]
    text: str

    @property
    def words(self) -> list[str]:
        """The text as a list: of a JSON array its entries."""
        return [str(one) for one in json.loads(self.text)] if self.text.startswith("[") else self.text.split()


@dataclass
class Stage:
    """What one FROM begins. base: an image's or an earlier stage's name."""

    base: str
    name: str
    steps: list[Step] = field(default_factory=list)

    def last(self, word: str) -> Step:
        """The last such step, which is the one that holds. Raises LookupError."""
        found = [step for step in self.steps if step.word == word]
        if not found:
            raise LookupError(f"stage {self.name!r} has no {word}")
        return found[-1]


def read(file: Path = CONTAINERFILE) -> list[Stage]:
    """The stages of a Containerfile. Raises ValueError for what is not understood."""
    defaults: dict[str, str] = {}
    stages: list[Stage] = []
    for step in _steps(file.read_text(encoding="utf-8")):
        if step.word == "FROM":
            base, _, name = re.sub(r"\$\{(\w+)\}", lambda found: defaults[found[1]], step.text).partition(
                " AS "
            )
            stages.append(Stage(base, name))
        elif stages:
            stages[-1].steps.append(step)
        elif step.word == "ARG":
            defaults.update(pairs([step.text]))
        else:
            raise ValueError(f"{step.word} before the first FROM")
    return stages


def pairs(words: list[str]) -> dict[str, str]:
    """NAME=value words as names and values."""
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _steps(text: str) -> list[Step]:
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    steps = []
    for line in filter(None, map(str.strip, kept.replace("\\\n", "").splitlines())):
        word, _, rest = line.partition(" ")
        if word not in KNOWN:
            raise ValueError(f"not understood: {line[:80]}")
        options = {}
        while found := re.match(r"--([\w-]+)=(\S+)\s+", rest):
            options[found[1]] = found[2]
            rest = rest[found.end() :]
        steps.append(Step(word, options, rest.strip()))
    return steps


class Build:
    """The stages of the Containerfile, each in a root of its own.

    base: a Debian root, which stands for the image that every stage begins with. context: the folder that
    COPY reads. arguments: build arguments. pip: how pip reaches packages.
    Raises ValueError for a COPY of nothing.
    """

    def __init__(
        self, folder: Path, base: Path, context: Path, arguments: dict[str, str], pip: Inside
    ) -> None:
        self._folder = folder
        self._base = base
        self._context = context
        self._arguments = arguments
        self._pip = pip
        self._roots: dict[str, Path] = {}

    def make(self) -> Path:
        """Run every step; the last stage's root."""
        root = self._base
        for number, stage in enumerate(read()):
            root = copy(self._base, self._folder / (stage.name or f"stage-{number}"))
            self._roots[stage.name] = root
            self._make_stage(root, stage)
        return root

    def _make_stage(self, root: Path, stage: Stage) -> None:
        variables = {"PATH": PATH}
        for step in stage.steps:
            if step.word == "ARG":
                name, _, default = step.text.partition("=")
                variables[name] = self._arguments.get(name, default)
            elif step.word == "ENV":
                variables.update(pairs(step.words))
            elif step.word == "RUN":
                told = {**self._pip.environment, **variables}
                call(root, ["/bin/sh", "-c", step.text], Inside(told, self._pip.binds))
            elif step.word == "COPY":
                self._copy(root, step)

    def _copy(self, root: Path, step: Step) -> None:
        *sources, target = step.words
        folder = self._roots[step.options["from"]] if "from" in step.options else self._context
        found = [Path(one) for name in sources for one in sorted(glob.glob(str(folder / name.lstrip("/"))))]
        if not found:
            raise ValueError(f"COPY {step.text}: there is no such file; `make release` makes dist/")
        into = root / target.lstrip("/")
        (into if target.endswith("/") else into.parent).mkdir(parents=True, exist_ok=True)
        for one in found:
            there = into / one.name if target.endswith("/") else into
            if one.is_dir():
                shutil.copytree(one, there, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy(one, there)
                os.chmod(there, int(step.options.get("chmod", "0644"), 8))


def image_variables(stage: Stage) -> dict[str, str]:
    """What ENV says in a stage."""
    return pairs([one for step in stage.steps if step.word == "ENV" for one in step.words])
