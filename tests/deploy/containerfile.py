"""A Containerfile as steps, for machines without a container engine."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "deploy" / "Containerfile"
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


def read(file: Path = FILE) -> list[Stage]:
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
