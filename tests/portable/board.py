# A board for examples/esp32, on MicroPython: its modules, a collector that does as a script says, and a power
# that is cut at a write. Prints, as JSON, what became of each trial of trials.json.
import builtins
import json
import os
import sys
import time
from binascii import hexlify
from hashlib import sha256

DATA = "/data/"
IDENTITY = "0123456789abcdef" * 2
sys.path.append("/data")


def text_of(name):
    with open(DATA + name) as file:
        return file.read()


# What says something in the collector's place.
BETWEEN = {
    "server error": (503, "text/plain", "busy"),
    "portal": (200, "text/html", "<html>sign in</html>"),
    "proxy": (404, "text/html", "<html>"),
}


class PowerCut(BaseException):
    pass


class Module:
    def __init__(self, **names):
        for name, value in names.items():
            setattr(self, name, value)


class Issuer:
    """Signs one request an invitation; script: what happens to each, then all goes well."""

    def __init__(self, script):
        self.script, self.asked, self.given = list(script), [], {}

    def take(self, request):
        head, _, body = request.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:]]
        code = {name: value for name, value in fields}["LDPKit-Invitation"]
        self.asked.append([code, MOMENT[0], hexlify(body).decode()])
        deed = self.script.pop(0) if self.script else "well"
        if deed == "timeout":
            raise OSError(deed)
        if deed.startswith("code "):
            # The person was given another one, and the board starts again.
            with real_open("config.json", "w") as file:
                file.write(json.dumps(dict(CONFIG, invitation=deed[5:])))
            raise PowerCut()
        if deed.startswith("key "):
            place, _, meant = deed[4:].partition(" id ")
            said = {"type": "urn:ldpkit:problem:token-key-other", "key": json.loads(place)}
            said.update({"key_id": KEYS[int(meant)]["short_id"]} if meant else {})
            return answer(409, "application/problem+json", json.dumps(said).encode())
        if deed.startswith("says "):
            return answer(409, "application/problem+json", deed[5:].encode())
        if self.given.setdefault(code, body) != body:
            return answer(409, "application/problem+json", b'{"type": "urn:ldpkit:problem:token-issued"}')
        keys = [key for key in KEYS if key["short_id"] == body[2]]
        signed = pow(int.from_bytes(body[3:], "big"), int(keys[0]["secret"]), int(keys[0]["modulus"]))
        if deed == "lost":
            raise OSError("reset after it was given")
        if deed == "forged":
            signed += 1
        return answer(200, "application/private-token-response", signed.to_bytes(256, "big"))


class Collector:
    """script: what happens to each request, then all goes well. stored: by id; bodies: all that came."""

    def __init__(self, script, study, problems):
        self.script, self.study = list(script), study
        self.stored, self.bodies, self.asked = {}, [], []
        self.moments, self.tokens, self.problems, self.withdrawn = [], [], list(problems), []
        self.identity, self.others = IDENTITY, {}

    def take(self, request):
        head, _, body = request.partition(b"\r\n\r\n")
        method, path, _ = head.decode().split("\r\n")[0].split()
        self.note(method, head.decode().split("\r\n"))
        deed = self.script.pop(0) if self.script else "well"
        if deed in ("timeout", "reset"):
            raise OSError(deed)
        if deed in BETWEEN:
            return answer(*BETWEEN[deed], None)
        if deed.startswith("says "):
            media_type = "application/problem+json" if "type" in deed else "application/json"
            return answer(200, media_type, deed[5:])
        if deed == "echo":
            receipt = json.dumps({"id": path.split("/")[-1], "result": "stored"})
            return answer(200, "application/json", receipt, "another")
        said = self.serve(method, path, body, deed)
        if deed == "lost":
            raise OSError("reset after it was taken")
        if deed == "half":
            return said[: len(said) - 7]
        return said

    def note(self, method, lines):
        self.asked.append(method)
        if method == "DELETE":
            self.withdrawn.append(MOMENT[0])
        if method == "PUT":
            self.moments.append(MOMENT[0])
            kinds = ("Authorization: ", "LDPKit-Invitation: ")
            self.tokens.append("".join([line for line in lines if line.startswith(kinds)]))

    def serve(self, method, path, body, deed):
        report_id = path.split("/")[-1]
        if method == "GET":
            is_first = self.asked.count("GET") == 1
            is_asked_for = is_first or path.endswith("?version=1")
            served = self.study if is_asked_for else TRIAL.get("then", self.study)
            served = self.others.get(path.split("?")[0].split("/")[-1], served)
            shown = TRIAL.get("shown", IDENTITY) if is_first else self.identity
            return answer(200, "application/json", served, shown)
        if method == "DELETE" and deed.startswith("problem "):
            return problem_of(deed)
        if method == "DELETE" and deed == "stored":
            return answer(200, "application/json", json.dumps({"id": report_id, "result": "stored"}))
        if method == "DELETE":
            self.stored.pop(report_id, None)
            return answer(200, "application/json", json.dumps({"id": report_id, "result": "withdrawn"}))
        self.bodies.append(body.decode())
        if TRIAL.get("withdraws") == "meanwhile" and len(self.bodies) == 1:
            sys.modules["ledger"].withdraw()
        deed = "problem " + self.problems.pop(0) if self.problems else deed
        if deed.startswith("problem "):
            return problem_of(deed)
        result = "duplicate" if report_id in self.stored else "stored"
        self.stored[report_id] = body.decode()
        return answer(201, "application/json", json.dumps({"id": report_id, "result": result}))


def problem_of(deed):
    problem = {"type": "urn:ldpkit:problem:" + deed.split()[1], "digest": CONFIG["digest"]}
    return answer(410, "application/problem+json", json.dumps(problem))


def answer(status, media_type, text, identity="own"):
    identity = SERVER.identity if identity == "own" else identity
    media_type = TRIAL.get("spells", "{}").format(media_type)
    media_type = media_type.upper() if TRIAL.get("shouts") else media_type
    lines = [f"HTTP/1.0 {status} Words", f"Content-Type: {media_type}", f"Content-Length: {len(text)}"]
    lines += ["Date: " + TRIAL.get("date", "Mon, 15 Jun 2026 10:00:00 GMT")]
    lines += ["LDPKit-Collector: " + identity] if identity else []
    lines += ["LDPKit-Study: " + TRIAL["state"]] if "state" in TRIAL else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (text if isinstance(text, bytes) else text.encode())


class Stream:
    """A connection: what is written is a request once it is read from."""

    def __init__(self):
        self.sent, self.left = b"", None

    def settimeout(self, seconds):
        assert seconds

    def connect(self, _address):
        if not WLAN.connected:
            raise OSError("no network")

    def write(self, data):
        # Not all at once.
        self.sent += data[:100]
        return min(100, len(data))

    def read(self, size):
        if self.left is None:
            self.left = (ISSUER if self.host == "issuer.example" else SERVER).take(self.sent)
        part, self.left = self.left[:size], self.left[size:]
        return part

    def close(self):
        pass


class Context:
    verify_mode = None

    def load_verify_locations(self, cadata):
        assert cadata == b"roots"

    def wrap_socket(self, raw, server_hostname):
        assert self.verify_mode == "required"
        assert server_hostname in ("collect.example.org", "issuer.example", "other.example.org")
        raw.host = server_hostname
        return raw


class Wlan:
    """Joins at the attempt that the trial says."""

    def __init__(self):
        self.on, self.connected, self.attempts = False, False, 0

    def active(self, on=None):
        if on is not None:
            self.on = on and not TRIAL.get("radio_is_off")
        return self.on

    def connect(self, name, password):
        assert (name, password) == ("name", "password")
        self.attempts += 1
        self.connected = self.attempts > TRIAL.get("joins_after", 0)

    def isconnected(self):
        return self.connected

    def disconnect(self):
        self.connected = False


class Pin:
    IN = PULL_UP = 0

    def __init__(self, *_):
        pass

    def value(self):
        return 0


def settime():
    if TRIAL.get("no_clock"):
        raise OSError("no answer")


CUT = [0]
real_open, real_rename = builtins.open, os.rename


def cut():
    """The power, where its turn has come."""
    CUT[0] -= 1
    if CUT[0] == 0:
        raise PowerCut()


class Cutting:
    """A file whose every write may be the last thing that happens: half of it is there then."""

    def __init__(self, file):
        self.file = file

    def write(self, text):
        try:
            cut()
        except PowerCut:
            self.file.write(text[: len(text) // 2])
            raise
        return self.file.write(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


def open_file(name, mode="r"):
    if "w" not in mode:
        return real_open(name, mode)
    cut()
    return Cutting(real_open(name, mode))


def rename(old, new):
    cut()
    real_rename(old, new)
    cut()


def urandom(size):
    """Other bytes at every call, also after a reset."""
    DRAWN[0] += 1
    parts = [sha256(f"{DRAWN[0]} {place}".encode()).digest() for place in range(size // 32 + 1)]
    return b"".join(parts)[:size]


def boot():
    """Run the example as after a reset: no module remembers anything."""
    for name in ("main", "channel", "ledger", "exchange"):
        sys.modules.pop(name, None)
    import ledger
    import main

    ledger.open, ledger.os = open_file, Module(rename=rename, listdir=os.listdir, remove=os.remove)
    ledger.json = Module(
        load=json.load, loads=json.loads, dump=lambda value, file: file.write(json.dumps(value))
    )
    main.os = Module(urandom=urandom)
    main.print = lambda *words: LATER.append(" ".join([str(word) for word in words]))
    return main


def empty_board(trial):
    """No ledger; where the trial says so somebody withdrew before all else."""
    for name in ("ledger.json", "ledger.new", "withdrawn"):
        if name in os.listdir():
            os.remove(name)
    if trial.get("withdraws") == "before":
        with real_open("withdrawn", "w"):
            pass


def joined(_interface):
    return WLAN


def once(trial, number):
    """Boot until it ends, with the power cut at write `number`; 0: never. What became of it."""
    global TRIAL, SERVER, ISSUER, WLAN, LATER
    ISSUER = Issuer(trial.get("issuer", []))
    MOMENT[0] = trial.get("moment", 1_781_517_600)
    TRIAL, LATER = trial, []
    served = trial.get("serves", text_of("study.json"))
    SERVER = Collector(trial.get("script", []), served, trial.get("problems", []))
    empty_board(trial)
    CUT[0] = number
    cuts = 0
    for _ in range(3):
        WLAN = Wlan()
        sys.modules["network"] = Module(WLAN=joined, STA_IF=0)
        CLOCK[0] = 0
        try:
            boot().main()
            break
        except PowerCut:
            cuts += 1
        except AsleepError:
            if "next" not in trial:
                raise
            break
    configure_next(trial)
    if trial.get("withdraws") is True:
        ledger = sys.modules["ledger"]
        ledger.withdraw()
        boot().main()
    return {
        "cuts": cuts,
        "stored": len(SERVER.stored),
        "bodies": len(set(SERVER.bodies)),
        "puts": len(SERVER.bodies),
        "deletions": SERVER.asked.count("DELETE"),
        "fetched": SERVER.asked.count("GET"),
        "waits": CLOCK[0],
        "later": LATER,
        "left": json.loads(real_open("ledger.json").read()),
        "moments": SERVER.moments,
        "withdrawn": SERVER.withdrawn,
        "tokens": SERVER.tokens,
        "asked": ISSUER.asked,
    }


def configure_next(trial):
    """Give the board, that has done its work or is off, another configuration if there is one, and start it.

    next: what of the configuration changes, whether the person withdraws before, the text of the study that
    is served too, and the identity of who serves it.
    """
    if "next" not in trial:
        return
    other = trial["next"]
    if other.get("withdraws"):
        sys.modules["ledger"].withdraw()
    config = dict(CONFIG)
    config.update(other["config"])
    with real_open("config.json", "w") as file:
        file.write(json.dumps(config))
    SERVER.others, SERVER.identity, SERVER.script = {config["study"]: other["serves"]}, other["identity"], []
    CLOCK[0] = 0
    try:
        boot().main()
    finally:
        with real_open("config.json", "w") as file:
            file.write(json.dumps(CONFIG))


class AsleepError(Exception):
    pass


def edit(most, owed):
    """Of what was kept of each report leave as much as an earlier release kept; have these deletions wait."""
    with real_open("ledger.json") as file:
        kept = json.loads(file.read())
    kept["secrets"] = [entry[:most] for entry in kept["secrets"]]
    kept["deletions"] = owed or kept["deletions"]
    with real_open("ledger.json", "w") as file:
        file.write(json.dumps(kept))


def sleep(seconds):
    CLOCK[0] += 1
    MOMENT[0] += seconds
    if CLOCK[0] == TRIAL.get("jumps_at"):
        MOMENT[0] += 30 * 24 * 3600
    if CLOCK[0] == TRIAL.get("withdraws_at"):
        sys.modules["ledger"].withdraw()
    if "forgets" in TRIAL or "owes" in TRIAL:
        edit(TRIAL.get("forgets"), TRIAL.get("owes"))
    if CLOCK[0] > 40:
        raise AsleepError()
    assert 1 <= seconds <= 6 * 3600


def today():
    """The trial's days, one after each pause; the last one stays."""
    days = TRIAL.get("days", [[2026, 6, 15]])
    return days[min(CLOCK[0], len(days) - 1)]


CLOCK, DRAWN, MOMENT = [0], [0], [0]
KEYS = json.loads(text_of("keys.json"))
CONFIG = json.loads(text_of("config.json"))
for name in ("config.json", "roots.der"):
    with open(DATA + name, "rb") as source:
        content = source.read()
    with open(name, "wb") as target:
        target.write(content)
sys.modules["socket"] = Module(socket=Stream, getaddrinfo=lambda *place: [[place]])
sys.modules["ssl"] = Module(SSLContext=lambda _: Context(), PROTOCOL_TLS_CLIENT=0, CERT_REQUIRED="required")
sys.modules["machine"] = Module(Pin=Pin)
sys.modules["ntptime"] = Module(settime=settime)
sys.modules["time"] = Module(
    sleep=sleep,
    sleep_ms=lambda _: None,
    ticks_ms=time.ticks_ms,
    ticks_diff=time.ticks_diff,
    gmtime=lambda *moment: [1970, 1, 1] if moment else today(),
    time=lambda: MOMENT[0],
)
found = []
for trial in json.loads(text_of("trials.json")):
    for number in trial.get("cut_at", [0]):
        try:
            found.append(once(trial, number))
        except AsleepError:
            beyond = {
                "asleep": True,
                "stored": len(SERVER.stored),
                "later": LATER,
                "puts": len(SERVER.bodies),
            }
            if "next" in trial:
                beyond["deletions"] = SERVER.asked.count("DELETE")
            found.append(beyond)
print(json.dumps(found))
