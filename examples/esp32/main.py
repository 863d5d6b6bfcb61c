"""A device that answers a study once: it joins the Wi-Fi, answers, sends, and sleeps between its attempts.

The board needs MicroPython 1.25 with integers of any size (MICROPY_LONGINT_IMPL_MPZ, the default). The heap
holds about 180 KB for choices, 250 KB for a number, 290 KB for records; sampled products need up to 400 KB.
`random` must always be the same function. ldpkit tests 1024 of its bytes at first use and each later read
(SP 800-90B), and raises RandomnessError. Single-precision floats lose accuracy far below the noise.

config.json: {"wifi": [name, password], "host": …, "port": 443, "study": its id, "digest": of the one study
that this board answers, "ticket": where the study's collector wants one}; roots.der: its certificate
authority. Studies with a channel are not answered. `answers` says what it is asked. With another study in
its configuration the board answers that one too, within its budget; of one study it answers one version.
"""

import json
import os
import time
from binascii import hexlify
from hashlib import sha256

import ledger
import machine
import network
import ntptime
from exchange import Collector, is_deleted, is_settled

from ldp_client.documents.errors import LdpkitError
from ldp_client.documents.study import Study

JOIN_S = 20
FIRST_PAUSE_S, LONGEST_PAUSE_S = 60, 6 * 3600
WLAN = network.WLAN(network.STA_IF)


def answers():
    """{question: answer}; here, whether a contact at pin 4 is closed."""
    return {"ever": "no" if machine.Pin(4, machine.Pin.IN, machine.Pin.PULL_UP).value() else "yes"}


def random(size):
    """The chip's generator is a true one while its radio is on, and not otherwise."""
    if not WLAN.active():
        raise RuntimeError("the radio is off: no noise can be drawn")
    return os.urandom(size)


def join(name, password):
    """Whether the board is on the network; what failed is left, so that the next attempt begins anew."""
    WLAN.active(True)
    if not WLAN.isconnected():
        WLAN.connect(name, password)
    for _ in range(10 * JOIN_S):
        if WLAN.isconnected():
            return True
        time.sleep_ms(100)
    WLAN.disconnect()
    return False


def today():
    """By the network's clock, else None."""
    try:
        ntptime.settime()
    except OSError:
        return None
    year, month, day = time.gmtime()[:3]
    return f"{year}-{month:02}-{day:02}"


def fetch(collector, study, digest):
    """The study of that digest. ValueError for any other."""
    status, headers, body = collector.request("GET", "/v1/studies/" + study, [])
    if status != 200 or hexlify(sha256(body).digest()).decode() != digest:
        raise ValueError("not the study that was pinned")
    if headers.get("ldpkit-study") == "closed" and not ledger.is_answered(study):
        raise ValueError("the study is closed")
    return Study.from_json(body.decode())


def send(collector, config, day):
    """Each deletion and report in turn once, whatever becomes of the others; whether any is left."""
    ledger.take_withdrawal()
    kept = ledger.read_ledger()
    for entry in kept["deletions"]:
        attempted(delete, collector, entry)
    for text in filter(ledger.waits, kept["outbox"]):
        attempted(send_report, collector, config, text, day)
    ledger.take_withdrawal()
    kept = ledger.read_ledger()
    return bool(kept["deletions"] or kept["outbox"])


def attempted(work, *arguments):
    """Do it; what fails is left for later, and keeps nothing else from leaving."""
    try:
        work(*arguments)
    except (OSError, ValueError, RuntimeError, LdpkitError) as error:
        # It holds no answer.
        print("later:", error)


def delete(collector, entry):
    """Ask for a report's deletion."""
    study, report_id, secret, _, _, host = entry
    refuse_another(collector, host)
    answer = ask(collector, "DELETE", study, report_id, [("LDPKit-Withdrawal", secret)])
    if answer and is_deleted(answer, report_id):
        ledger.drop_deletion(report_id)


def send_report(collector, config, text, day):
    """Send a report."""
    entry = ledger.entry_of(ledger.read_ledger(), json.loads(text)["id"])
    study, report_id, _, digest, closes, host = entry
    refuse_another(collector, host)
    fields, ticket = [("Content-Type", "application/json")], config.get("ticket", "")
    if ticket and study == config["study"]:
        fields.append(("LDPKit-Ticket", ticket))
    ledger.note_left(report_id)
    answer = ask(collector, "PUT", study, report_id, fields, text)
    if answer and is_settled(answer, report_id, digest, closes, day):
        ledger.drop_report(report_id)


def refuse_another(collector, host):
    """ValueError where the board was given another host since: what waits is not for its collector."""
    if host != collector.host:
        raise ValueError("what waits is for " + host + " alone: configure that host again")


def ask(collector, method, study, report_id, fields, text=""):
    """The answer to a request about a report; None where none came."""
    path = "/v1/studies/" + study + "/reports/" + report_id
    try:
        return collector.request(method, path, fields, text.encode())
    except (OSError, ValueError):
        return None


def attempt(config, collector):
    """Go as far as the network allows; whether nothing is left to do."""
    if not join(*config["wifi"]):
        return False
    day = today()
    if not ledger.is_answered(config["study"]):
        attempted(answer_configured, collector, config, day)
    # Of a study before, too.
    return not send(collector, config, day) and ledger.is_answered(config["study"])


def answer_configured(collector, config, day):
    """Answer the study that is configured."""
    if ledger.read_ledger()["spent"]:
        # A report of another study was meant.
        ledger.take_withdrawal()
    study = fetch(collector, config["study"], config["digest"])
    ledger.answer_once(study, answers(), random, day, host=collector.host)


def pause(number):
    """Seconds, drawn from a range that doubles: boards that failed together come back apart."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S << min(number, 16))
    return 1 + int.from_bytes(os.urandom(4), "big") % longest


def main():
    with open("config.json") as file:
        config = json.load(file)
    with open("roots.der", "rb") as file:
        roots = file.read()
    collector = Collector(config["host"], config["port"], roots)
    number = 0
    while True:
        try:
            if attempt(config, collector):
                break
        except (OSError, ValueError, RuntimeError, LdpkitError) as error:
            # No network, no collector, not open yet. What is printed holds no answer.
            print("later:", error)
        time.sleep(pause(number))
        number += 1
    WLAN.active(False)


if __name__ == "__main__":
    main()
