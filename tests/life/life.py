# SPDX-License-Identifier: GPL-2.0-or-later
"""Start the real daemon with directories of its own, talk to it as a service manager and an operator do, and watch what it
says. What has to be waited for has a deadline; nothing sleeps and hopes."""
import ctypes
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

BUILD = os.environ.get("DWELLD_BUILD", "/nonexistent")
SOON = 30           # seconds, for what takes less than one on a quiet machine


class Skip(Exception):
    pass


def until(what, look, seconds=SOON):
    """Look again and again; the first true answer, or an error that says what was waited for."""
    end = time.monotonic() + seconds
    while True:
        got = look()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError("not within %g s: %s" % (seconds, what() if callable(what) else what))
        time.sleep(0.03)


def check(true, what):
    if not true:
        raise AssertionError(what)


# ---- BPF objects by id: what a process holds, and whether it still exists ----

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine, 321)
BPF_PROG_GET_FD_BY_ID, BPF_LINK_GET_FD_BY_ID = 13, 30
LIBC = ctypes.CDLL(None, use_errno=True)


def bpf_ids(pid):
    """({link ids}, {program ids}) behind the descriptors of a process."""
    links, programs = set(), set()
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd), encoding="utf-8") as f:
                text = f.read()
        except OSError:
            continue
        links |= set(map(int, re.findall(r"^link_id:\s*(\d+)", text, re.M)))
        programs |= set(map(int, re.findall(r"^prog_id:\s*(\d+)", text, re.M)))
    return links, programs


def bpf_exists(command, number):
    attr = (ctypes.c_uint32 * 32)(number)
    fd = LIBC.syscall(BPF_SYSCALL, command, ctypes.byref(attr), ctypes.sizeof(attr))
    if fd >= 0:
        os.close(fd)
    return fd >= 0 or ctypes.get_errno() != 2   # ENOENT


def bpf_left(ids):
    return ([i for i in ids[0] if bpf_exists(BPF_LINK_GET_FD_BY_ID, i)],
            [i for i in ids[1] if bpf_exists(BPF_PROG_GET_FD_BY_ID, i)])


# ---- a box: private directories, programs copied to where every user may read them ----

class Box:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="dwelld-life.", dir="/var/lib")
        os.chmod(self.dir, 0o755)
        for name in ("run", "state", "hook", "bin", "hooks"):
            os.mkdir(self.path(name), 0o755)
        for name, source in (("dwelld", "src/dwelld"), ("dwellctl", "src/ctl/dwellctl"), ("runner", "src/run/dwelld-hook-run"),
                             ("reader", "tests/life/life-reader")):
            shutil.copy2(os.path.join(BUILD, source), self.path("bin", name))
        self.children = []
        self.daemons = []
        # a second run of these tests on the same host has readers of its own, and both daemons see all
        self.tag = "life-" + os.path.basename(self.dir)[-4:] + "-"

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def tagged(self, text):
        return text.replace("life-", self.tag)

    def untagged(self, text):
        return text.replace(self.tag, "life-")

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(self.tagged(text))
        os.chmod(path + ".new", mode)
        os.rename(path + ".new", path)
        return path

    def read(self, name):
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def reader(self, *args, name="reader", wait=True):
        """A UDP server with a name of its own; its pid, and the ports it reads."""
        program = self.path("bin", self.tagged(name))
        if not os.path.exists(program):
            os.link(self.path("bin", "reader"), program)
        child = subprocess.Popen([program, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.children.append(child)
        if wait:
            words = child.stdout.readline().decode().split()
            check(words and words[0] == "ready", "%s does not get ready" % name)
            child.ports = list(map(int, words[1:]))
        return child

    def end(self, child):
        child.kill()
        child.wait()
        child.stdout.close()
        self.children.remove(child)

    def daemon(self, *args, **kw):
        return Daemon(self, args, **kw)

    def close(self):
        for d in self.daemons:
            d.kill()
        for child in list(self.children):
            self.end(child)
        for _ in range(5):      # a runner that ends may still write its record
            shutil.rmtree(self.dir, ignore_errors=True)
            if not os.path.exists(self.dir):
                break
            time.sleep(0.2)


class Daemon:
    """One run of dwelld: log, notify socket, control socket."""
    count = 0

    def __init__(self, box, args, config="", env=None, wrap=(), stderr=None, uid=None, config_file=None, pass_fds=()):
        Daemon.count += 1
        self.box = box
        self.messages = []              # (when, text) that came on the notify socket
        self.log_name = "log.%d" % Daemon.count
        self.notify_path = box.path("notify.%d" % Daemon.count)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.notify_path)
        os.chmod(self.notify_path, 0o666)
        self.config = config_file or box.write("dwelld.conf", config)
        if uid is not None:
            for name in ("run", "state", "hook"):
                os.chown(box.path(name), uid, uid)
        full = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "NOTIFY_SOCKET": self.notify_path,
                "DWELLD_RUN_DIR": box.path("run"), "DWELLD_STATE_DIR": box.path("state"),
                "DWELLD_HOOK_DIR": box.path("hook", "runs"), "DWELLD_RUNNER": box.path("bin", "runner")}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                full[name] = os.environ[name]
        full.update(env or {})
        self.log_file = open(box.path(self.log_name), "wb")
        self.start = time.monotonic()
        self.child = subprocess.Popen([*wrap, box.path("bin", "dwelld"), "--config", self.config, *args], env=full,
                                      stdin=subprocess.DEVNULL, stdout=self.log_file, stderr=stderr or self.log_file,
                                      start_new_session=True, pass_fds=pass_fds)
        self.pid = self.child.pid       # the wrappers that we use exec in the end
        box.daemons.append(self)

    def log(self):
        return self.box.untagged(self.box.read(self.log_name))

    def pump(self):
        while select.select([self.notify], [], [], 0)[0]:
            self.messages.append((time.monotonic(), self.notify.recv(65536).decode()))
        return self.messages

    def told(self, text, after=0.0):
        """The first message on the notify socket with that line, (when, message), or None."""
        for when, message in self.pump():
            if when >= after and any(line.startswith(text) for line in message.splitlines()):
                return when, message
        return None

    def wait_told(self, text, after=0.0, seconds=SOON):
        return until(lambda: "%r on the notify socket; log:\n%s" % (text, self.log()),
                     lambda: self.told(text, after) or self.must_live(), seconds)

    def must_live(self):
        if self.child.poll() is not None:
            raise AssertionError("dwelld ended with %d:\n%s" % (self.child.returncode, self.log()))

    def ready(self):
        self.wait_told("READY=1")
        return self

    def ctl(self, *args):
        return subprocess.run([self.box.path("bin", "dwellctl"), *args, "--socket", self.box.path("run", "control.sock")],
                              capture_output=True, text=True, timeout=SOON, check=False, stdin=subprocess.DEVNULL)

    def status(self):
        end = time.monotonic() + SOON
        r = self.ctl("status", "--json")
        while r.returncode and "no answer in time" in r.stderr and time.monotonic() < end:
            r = self.ctl("status", "--json")    # other work on this machine starves us both
        check(r.returncode == 0, "status: exit %d: %s%s" % (r.returncode, r.stdout, r.stderr))
        return json.loads(self.box.untagged(r.stdout))

    def wait_status(self, what, look, seconds=SOON):
        self.last = {}

        def again():
            self.must_live()
            self.last = self.status()
            return look(self.last)
        return until(lambda: "%s; rules: %s; log:\n%s" % (what, [(r["name"], r["target"], r["state"], r["why"])
                                                                 for r in self.last.get("rules", [])][:60], self.log()), again, seconds)

    def wait_log(self, pattern, seconds=SOON, count=1):
        return until(lambda: "%r %d times in the log:\n%s" % (pattern, count, self.log()),
                     lambda: len(re.findall(pattern, self.log(), re.M)) >= count or self.must_live(), seconds)

    def wait_end(self, seconds=SOON):
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("dwelld does not end; log:\n" + self.log()) from None

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        status = self.wait_end()
        check(status == 0, "exit status %d after TERM; log:\n%s" % (status, self.log()))
        self.close()
        return status

    def close(self):
        self.pump()
        self.notify.close()
        self.log_file.close()
        if self in self.box.daemons:
            self.box.daemons.remove(self)

    def kill(self):
        """At once, as the kernel would."""
        if self.child.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            if self.pid != self.child.pid:
                self.child.kill()
            self.child.wait()
        self.close()


# ---- looking at the status ----

def probe(status, signal_name):
    return next(p for p in status["probes"] if p["signal"] == signal_name)


def target(status, name):
    return next((t for t in status["targets"] if t["name"] == name), None)


def rule(status, name, target_name=None):
    return next((r for r in status["rules"] if r["name"] == name and target_name in (None, r["target"])), None)


def rule_state(status, name, target_name=None):
    r = rule(status, name, target_name)
    return r["state"] if r else None


# ---- running the tests of one file ----

def main(tests, needs_root=True):
    passed = failed = skipped = 0
    wanted = sys.argv[1:]
    if not os.path.exists(os.path.join(BUILD, "src/dwelld")):
        sys.exit("DWELLD_BUILD must name a build directory")
    for test in tests:
        name = test.__name__
        if wanted and name not in wanted:
            continue
        start = time.monotonic()
        try:
            if needs_root and os.geteuid() != 0:
                raise Skip("needs root")
            box = Box()
            try:
                test(box)
            finally:
                box.close()
            passed += 1
            print("ok %s (%.1f s)" % (name, time.monotonic() - start))
        except Skip as e:
            skipped += 1
            print("skip %s: %s" % (name, e))
        except Exception as e:      # a test's own mistakes count as its failure
            failed += 1
            print("NOT OK %s: %s" % (name, e))
            if not isinstance(e, AssertionError):
                traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    sys.exit(1 if failed else 0)
