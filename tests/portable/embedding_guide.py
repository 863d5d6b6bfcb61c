"""The code blocks of docs/embed.md."""

import re

from tests.portable.npm import REPOSITORY

GUIDE = (REPOSITORY / "docs" / "embed.md").read_text(encoding="utf-8")


def code(language, having):
    """The one block of the guide in this language that contains these words."""
    (block,) = [block for block in re.findall(rf"```{language}\n(.*?)```", GUIDE, re.S) if having in block]
    return block
