"""An image's root from the Containerfile's own steps."""

from __future__ import annotations

import glob
import os
import shutil
from pathlib import Path

from tests.deploy.containerfile import Stage, Step, pairs, read
from tests.deploy.roots import PATH, Inside, call, copy

REPOSITORY = Path(__file__).resolve().parents[2]


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
