"""Fill the composed proxy's memory with requests that never end, and with exports that are not read.

Defence: The proxy: limits concurrent bodies per address and in total, in a folder with room for just
those; exports wait at the collector.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PROXY = (DEPLOY / "container" / "nginx.conf").read_text()
SERVICE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["proxy"]
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def bytes_of(text):
    number, unit = re.fullmatch(r"(\d+)([kmg]?)", text).groups()
    return int(number) * UNITS[unit]


def blocks():
    """What stands outside of every location, and each location."""
    locations = re.findall(r"location ([^{]*)\{([^}]*)\}", PROXY)
    return re.sub(r"location [^{]*\{[^}]*\}", "", PROXY), locations


def most_of(block, zone):
    """How many requests of a zone there may be, each with the largest body that the block lets in."""
    (number,) = re.findall(rf"limit_conn {zone} (\d+);", block)
    (size,) = re.findall(r"client_max_body_size (\w+);", block)
    return int(number) * bytes_of(size)


def test_concurrent_bodies_fit_into_the_proxy_folder():
    common, locations = blocks()
    long_ones = [text for _, text in locations if "limit_conn closings" in text]
    assert len(long_ones) == 2
    # Each node has places of its own.
    bound = most_of(common, "all") + sum(most_of(text, "closings") for text in long_ones)
    (folder,) = SERVICE["tmpfs"]
    size = bytes_of(re.search(r"size=(\w+)", folder)[1])
    assert bound <= size <= 2 * bound
    assert most_of(common, "each") * 10 < size
    # No other block that takes long bodies keeps them: it asks about the key, or is that question.
    others = [text for _, text in locations if "client_max_body_size" in text and text not in long_ones]
    assert all("auth_request /key;" in text or "proxy_pass_request_body off;" in text for text in others)


def test_proxy_does_not_buffer_exports_on_disk():
    guide = (DEPLOY.parent / "docs" / "operating.md").read_text()
    _, locations = blocks()
    exports = [text for name, text in locations if "/export$" in name]
    assert [text for text in exports if "proxy_max_temp_file_size 0;" in text] == exports != []
    assert "proxy_max_temp_file_size 0;" in guide
