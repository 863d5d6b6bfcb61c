"""The link that `ldpkit answer` takes: what `publish` and tickets print, or a study's address for devices."""

import click
import pytest

from ldpkit.cli.answering import Link


@pytest.mark.parametrize(
    ("link", "parts"),
    [
        ("https://ask.example/s/habits", ("https://ask.example", "habits", "")),
        ("https://ask.example/s/habits#ticket=aB3_x-", ("https://ask.example", "habits", "aB3_x-")),
        ("http://127.0.0.1:8000/v1/studies/habits", ("http://127.0.0.1:8000", "habits", "")),
        ("https://ask.example/panel/s/habits?lang=de#ticket=x", ("https://ask.example/panel", "habits", "x")),
        # A proxy serves a collector below /s/.
        ("https://ask.example/s/panel/s/habits/", ("https://ask.example/s/panel", "habits", "")),
    ],
)
def test_link_names_collector_study_and_ticket(link, parts):
    assert Link().convert(link, None, None) == parts


@pytest.mark.parametrize(
    "link",
    ["nonsense", "ftp://a/s/b", "https://a/survey", "https://a/s/", "https://a/s/b/c", "https://a/s/B ad"],
)
def test_other_address_is_rejected(link):
    with pytest.raises(click.BadParameter, match="as `ldpkit publish` prints it"):
        Link().convert(link, None, None)
