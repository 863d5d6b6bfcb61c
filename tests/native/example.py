"""The example in C, and how what it prints is sent."""

import json
import urllib.request

from conformance.native import CORE

EXAMPLE = CORE.parent / "examples" / "native"


def sent(url, words, body, **headers):
    """Send what `sleep next` printed. Return the answer."""
    method, report, *secret = words.split()
    fields = {"Content-Type": "application/json", **headers}
    if secret:
        fields["LDPKit-Withdrawal"] = secret[0]
    address = f"{url}/v1/studies/sleep/reports/{report}"
    data = None if secret else body.encode()
    request = urllib.request.Request(address, data, fields, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)
