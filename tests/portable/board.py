# A board for examples/esp32, on MicroPython: its modules, a collector that does as a script says, and a power
# that is cut at a write. Prints, as JSON, what became of each trial of trials.json.
import builtins
import json
import os
import sys
import time
from hashlib import sha256

DATA = "/data/"
HOST = "collect.example.org"
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


class Collector:
    """script: what happens to each request, then all goes well. stored: by id; bodies: all that came."""

    def __init__(self, script):
        self.script, self.host = list(script), HOST
        self.stored, self.bodies, self.asked = {}, [], []

    def take(self, request):
        head, _, body = request.partition(b"\r\n\r\n")
        method, path, _ = head.decode().split("\r\n")[0].split()
        self.asked.append(method)
        deed = self.script.pop(0) if self.script else "well"
        if deed in ("timeout", "reset"):
            raise OSError(deed)
        if deed in BETWEEN:
            return answer(*BETWEEN[deed])
        if deed == "echo":
            return answer(200, "application/json", json.dumps({"id": "another", "result": "stored"}))
        said = self.serve(method, path, body, deed)
        if deed == "lost":
            raise OSError("reset after it was taken")
        if deed == "half":
            return said[: len(said) - 7]
        return said

    def serve(self, method, path, body, deed):
        report_id = path.split("/")[-1]
        if method == "GET":
            return answer(200, "application/json", text_of("study.json"))
        if method == "DELETE":
            self.stored.pop(report_id, None)
            return answer(200, "application/json", json.dumps({"id": report_id, "result": "withdrawn"}))
        self.bodies.append(body.decode())
        if deed.startswith("problem "):
            problem = {"type": "urn:ldpkit:problem:" + deed.split()[1], "digest": CONFIG["digest"]}
            return answer(410, "application/problem+json", json.dumps(problem))
        result = "duplicate" if report_id in self.stored else "stored"
        self.stored[report_id] = body.decode()
        return answer(201, "application/json", json.dumps({"id": report_id, "result": result}))


def answer(status, media_type, text):
    lines = [f"HTTP/1.0 {status} Words", f"Content-Type: {media_type}", f"Content-Length: {len(text)}"]
    lines += ["Date: Mon, 15 Jun 2026 10:00:00 GMT"]
    return ("\r\n".join(lines) + "\r\n\r\n" + text).encode()


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
            self.left = SERVER.take(self.sent)
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
        assert server_hostname == SERVER.host
        return raw


class Wlan:
    """Joins at the second attempt."""

    def __init__(self):
        self.on, self.connected, self.attempts = False, False, 0

    def active(self, on=None):
        if on is not None:
            self.on = on
        return self.on

    def connect(self, name, password):
        assert (name, password) == ("name", "password")
        self.attempts += 1
        self.connected = self.attempts > 1

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
    for name in ("main", "ledger", "exchange"):
        sys.modules.pop(name, None)
    import ledger
    import main

    with real_open("config.json", "w") as file:
        file.write(json.dumps(dict(CONFIG, host=SERVER.host)))
    ledger.open, ledger.os = open_file, Module(rename=rename, listdir=os.listdir, remove=os.remove)
    ledger.json = Module(
        load=json.load, loads=json.loads, dump=lambda value, file: file.write(json.dumps(value))
    )
    main.os = Module(urandom=urandom)
    main.print = lambda *words: LATER.append(" ".join([str(word) for word in words]))
    return main


def joined(_interface):
    return WLAN


def once(trial, number):
    """Boot until it ends, with the power cut at write `number`; 0: never. What became of it."""
    global SERVER, WLAN, LATER
    LATER = []
    SERVER = Collector(trial.get("script", []))
    for name in ("ledger.json", "ledger.new", "withdrawn"):
        if name in os.listdir():
            os.remove(name)
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
            SERVER.host = trial.get("then", HOST)
    if trial.get("withdraws"):
        sys.modules["ledger"].withdraw()
        try:
            boot().main()
        except PowerCut:
            cuts += 1
    return {
        "cuts": cuts,
        "stored": len(SERVER.stored),
        "bodies": len(set(SERVER.bodies)),
        "puts": len(SERVER.bodies),
        "deletions": SERVER.asked.count("DELETE"),
        "waits": CLOCK[0],
        "left": json.loads(real_open("ledger.json").read()),
    }


def sleep(seconds):
    CLOCK[0] += 1
    MOMENT[0] += seconds
    assert CLOCK[0] <= 40
    if SERVER.host != HOST and CLOCK[0] > 3:
        raise PowerCut()
    assert 1 <= seconds <= 6 * 3600


CLOCK, DRAWN, MOMENT = [0], [0], [1_781_517_600]
CONFIG = json.loads(text_of("config.json"))
for name in ("config.json", "roots.der"):
    with open(DATA + name, "rb") as source:
        content = source.read()
    with open(name, "wb") as target:
        target.write(content)
sys.modules["socket"] = Module(socket=Stream, getaddrinfo=lambda *place: [[place]])
sys.modules["ssl"] = Module(SSLContext=lambda _: Context(), PROTOCOL_TLS_CLIENT=0, CERT_REQUIRED="required")
sys.modules["machine"] = Module(Pin=Pin)
sys.modules["ntptime"] = Module(settime=lambda: None)
sys.modules["time"] = Module(
    sleep=sleep,
    sleep_ms=lambda _: None,
    ticks_ms=time.ticks_ms,
    ticks_diff=time.ticks_diff,
    gmtime=lambda *moment: [1970, 1, 1] if moment else [2026, 6, 15],
    time=lambda: MOMENT[0],
)
trials = json.loads(text_of("trials.json"))
print(json.dumps([once(trial, number) for trial in trials for number in trial.get("cut_at", [0])]))
