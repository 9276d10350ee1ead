#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""dwellctl against a fake control server: golden output, hostile answers, the panel in a pty.

usage: test_ctl.py DWELLCTL [unittest arguments]; UPDATE_GOLDEN=1 writes the golden files anew (then read the diff).
"""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import fake_server  # noqa: E402

DWELLCTL = os.path.abspath(sys.argv.pop(1))
DEADLINE = 30       # seconds, for what takes far less


def file(name):
    return os.path.join(HERE, "canned", name + ".json")


def environment(**extra):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "COLUMNS": "100"}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
        if name in os.environ:
            env[name] = os.environ[name]
    env.update(extra)
    return env


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.path = os.path.join(self.dir, "control.sock")

    def serve(self, answer):
        self.server = fake_server.Server(self.path, answer)
        self.addCleanup(self.server.close)

    def run_ctl(self, *args, **extra):
        return subprocess.run([DWELLCTL, *args, "--socket", self.path], env=environment(**extra), timeout=DEADLINE,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def golden(self, name, text):
        path = os.path.join(HERE, "golden", name + ".txt")
        if os.environ.get("UPDATE_GOLDEN"):
            with open(path, "wb") as f:
                f.write(text)
        with open(path, "rb") as f:
            self.assertEqual(text.decode(), f.read().decode())


class Plain(Case):
    def check(self, name, columns="100", **extra):
        self.serve(fake_server.canned([file(name)]))
        r = self.run_ctl("status", COLUMNS=columns, **extra)
        self.assertEqual((r.returncode, r.stderr), (0, b""))
        for line in r.stdout.decode().splitlines():
            self.assertLessEqual(len(line), int(columns), line)
        return r.stdout

    def test_starved(self):
        self.golden("starved", self.check("starved"))

    def test_starved_80_columns(self):
        self.golden("starved_80", self.check("starved", "80"))

    def test_starved_120_columns(self):
        self.golden("starved_120", self.check("starved", "120"))

    def test_network(self):
        self.golden("network", self.check("network"))

    def test_unknown_is_a_dash(self):
        out = self.check("unknown")
        self.golden("unknown", out)
        rows = [r for r in out.decode().splitlines() if r.startswith("turn ")]
        self.assertEqual(rows[0].split(), ["turn", "unknown"] + ["-"] * 10 + ["probe-missing"])

    def test_empty(self):
        self.golden("empty", self.check("empty"))

    def test_ascii_where_the_locale_is(self):
        out = self.check("starved", "80", LC_ALL="C")
        self.assertTrue(out.isascii())
        self.assertIn(b"syste~vice", out)

    def test_one_target(self):
        self.serve(fake_server.canned([file("starved")]))
        out = self.run_ctl("status", "sfu").stdout.decode()
        self.assertIn("reader-starved on sfu", out)
        self.assertNotIn("systemd-resolved", out)
        r = self.run_ctl("status", "nobody")
        self.assertEqual((r.returncode, r.stdout), (1, b""))
        self.assertIn(b'no target "nobody"; there are: host other self sfu systemd-resolved.service', r.stderr)

    def test_json(self):
        self.serve(fake_server.canned([file("starved")]))
        r = self.run_ctl("status", "--json")
        with open(file("starved"), encoding="utf-8") as f:
            self.assertEqual(json.loads(r.stdout), json.load(f)["status"])
        one = json.loads(self.run_ctl("status", "--json", "sfu").stdout)
        self.assertEqual([t["name"] for t in one["targets"]], ["sfu"])
        self.assertEqual({t["target"] for t in one["rules"] + one["hooks"]}, {"sfu"})

    def test_canned_answers_obey_the_schema(self):
        try:
            import jsonschema
        except ImportError:
            print("SKIPPED: python3-jsonschema is missing, the canned answers were NOT checked", file=sys.stderr)
            self.skipTest("python3-jsonschema is missing")
        with open(os.path.join(HERE, "../../conf/status.schema.json"), encoding="utf-8") as f:
            check = jsonschema.Draft202012Validator(json.load(f))
        for name in ("starved", "network", "unknown", "empty"):
            with open(file(name), encoding="utf-8") as f:
                check.validate(json.load(f)["status"])

    def test_prometheus_passes_through(self):
        text = b'# TYPE dwelld_x gauge\ndwelld_x{target="a"} 1\n'
        self.serve(lambda line: fake_server.ok(text) if line == "prometheus" else b"ERR EINVAL ?\n")
        self.assertEqual(self.run_ctl("status", "--prometheus").stdout, text)


class Verbs(Case):
    def test_reload_and_undo_say_what_the_daemon_says(self):
        self.serve(fake_server.canned([file("empty")]))
        self.assertEqual(self.run_ctl("reload").stdout, b"configuration read: 3 files, 14 rules\n")
        for args, line in ((("raise-cpu",), "undo raise-cpu"), (("raise-cpu", "sfu"), "undo raise-cpu sfu"),
                           (("--all",), "undo --all")):
            r = self.run_ctl("undo", *args)
            self.assertEqual((r.returncode, r.stdout), (0, b"1 undo started\n"))
            self.assertEqual(self.server.lines[-1], line)

    def test_usage_errors_are_2_and_ask_nobody(self):
        self.serve(fake_server.canned([file("empty")]))
        for args in ((), ("bogus",), ("status", "--bogus"), ("status", "a", "b"), ("status", "--json", "--prometheus"),
                     ("status", "--watch=soon"), ("status", "--watch=1ms"), ("reload", "x"), ("undo",),
                     ("undo", "--all", "x"), ("undo", "a", "b", "c"), ("undo", "a b"), ("undo", "a\nstatus"),
                     ("status", "--all"), ("undo", "x", "--json")):
            r = subprocess.run([DWELLCTL, *args] + (["--socket", self.path] if args else []), env=environment(),
                               capture_output=True, timeout=DEADLINE, check=False)
            self.assertEqual(r.returncode, 2, args)
            self.assertEqual(r.stdout, b"")
            self.assertNotEqual(r.stderr, b"")
        self.assertEqual(self.server.lines, [])

    def test_a_socket_without_a_value(self):
        r = subprocess.run([DWELLCTL, "status", "--socket"], env=environment(), capture_output=True, check=False)
        self.assertEqual(r.returncode, 2)
        self.assertIn(b"--socket needs a value", r.stderr)

    def test_verbs_of_later_versions(self):
        for verb in "top explain events rules hooks hook hold clear record was report doctor".split():
            r = subprocess.run([DWELLCTL, verb, "x"], env=environment(), capture_output=True, check=False)
            self.assertEqual((r.returncode, r.stderr), (2, b"dwellctl: %s: not supported yet\n" % verb.encode()))

    def test_help_and_version(self):
        for verb in ("status", "reload", "undo", "check"):
            r = subprocess.run([DWELLCTL, verb, "--help"], env=environment(), capture_output=True, check=False)
            self.assertEqual((r.returncode, r.stderr), (0, b""))
            self.assertTrue(r.stdout.startswith(b"usage: dwellctl " + verb.encode()))
        r = subprocess.run([DWELLCTL, "--version"], env=environment(), capture_output=True, check=False)
        self.assertRegex(r.stdout.decode(), r"^dwellctl \d+\.\d+\.\d+\n$")

    def test_check_runs_the_daemon_with_the_file(self):
        with open(os.path.join(self.dir, "dwelld"), "w", encoding="ascii") as f:
            f.write("#!/bin/sh\necho \"$@\"\nexit 78\n")
        os.chmod(f.name, 0o755)
        if os.path.exists("/usr/sbin/dwelld") or os.path.exists("/usr/local/sbin/dwelld"):
            self.skipTest("an installed dwelld comes first")
        r = subprocess.run([DWELLCTL, "check", "a.conf"], env=environment(PATH=self.dir + ":/bin"),
                           capture_output=True, check=False)
        self.assertEqual((r.returncode, r.stdout), (78, b"--check --config a.conf\n"))

    def test_no_daemon(self):
        r = self.run_ctl("status")
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"dwelld does not run", r.stderr)

    def test_a_refusal_names_the_group(self):
        self.serve(lambda line: b"ERR EPERM not allowed: needs root or group dwelld-admin\n")
        r = self.run_ctl("reload")
        self.assertEqual((r.returncode, r.stdout), (1, b""))
        self.assertEqual(r.stderr, b"dwellctl: not allowed: needs root or group dwelld-admin\n")

    def test_all_errors_of_a_configuration_are_printed(self):
        lines = b"a.conf:1: mode: expected x\n" + b"b.conf:2: " + b"y" * 700 + b"\x1b[2J\nc.conf:3: z\n"
        self.serve(lambda line: b"ERR 22 " + lines)
        r = self.run_ctl("reload")
        self.assertEqual((r.returncode, r.stdout), (1, b""))
        self.assertEqual(r.stderr, b"dwellctl: " + lines.replace(b"\x1b", b"?"))


class Hostile(Case):
    def refused(self, answer, expect, **extra):
        self.serve(answer)
        r = self.run_ctl("status", **extra)
        self.assertEqual((r.returncode, r.stdout), (1, b""))
        self.assertIn(expect, r.stderr.decode())
        self.assertNotIn(b"\x1b", r.stderr)
        self.assertLess(len(r.stderr), 2000)

    def test_truncated(self):
        self.refused(lambda line: b"OK 5000\n{\"schema\":1", "cut off")

    def test_closed_at_once(self):
        self.refused(lambda line: b"", "closed without an answer")

    def test_half_a_header(self):
        self.refused(lambda line: b"OK 12", "cut off")

    def test_huge_length(self):
        self.refused(lambda line: b"OK 99999999999999999999999\n", "more than 16 MiB")

    def test_negative_length(self):
        self.refused(lambda line: b"OK -1\n{}", "not dwelld")

    def test_endless_header(self):
        self.refused(lambda line: b"A" * 100000, "not dwelld")

    def test_garbage(self):
        self.refused(lambda line: b"\x00\xff\x1b[31m\n", "not dwelld")

    def test_not_json(self):
        self.refused(lambda line: fake_server.ok(b"\x1b[2J{"), "not the JSON")

    def test_json_of_another_shape(self):
        self.refused(lambda line: fake_server.ok(b"[1,2]"), "not an object")

    def test_deep_nesting(self):
        self.refused(lambda line: fake_server.ok(b"[" * 1000000), "not the JSON")

    def test_an_error_with_escape_sequences(self):
        self.refused(lambda line: b"ERR EINVAL \x1b]0;owned\x07\n", "?]0;owned?")

    def test_an_endless_error(self):
        self.serve(lambda line: b"ERR 5 " + b"x\n" * 1000000)
        r = self.run_ctl("status")
        self.assertEqual(r.returncode, 1)
        self.assertLess(len(r.stderr), 40000)

    def test_a_server_that_hangs(self):
        start = time.monotonic()
        self.refused(lambda line: None, "no answer in time")
        self.assertLess(time.monotonic() - start, 20)

    def test_every_shape_of_every_member_is_survived(self):
        with open(file("starved"), encoding="utf-8") as f:
            status = json.load(f)["status"]
        for key in status:
            for value in (None, 7, "x", [], {}, [1], [[]], [{}], {"a": 1}, -1e300):
                broken = fake_server.ok(json.dumps({**status, key: value}).encode())
                self.path = os.path.join(self.dir, "s")
                server = fake_server.Server(self.path, lambda line, broken=broken: broken)
                r = self.run_ctl("status")
                server.close()
                self.assertEqual(r.returncode, 0, (key, value, r.stderr))

    def test_escape_sequences_in_names_never_reach_the_terminal(self):
        self.serve(fake_server.canned([file("evil")]))
        for args in (("status",), ("status", "--json")):
            out = self.run_ctl(*args).stdout
            self.assertRegex(out, rb"a(\?|\\u001[bB])\[31m")
            text = out.decode()
            bad = [c for c in text if (ord(c) < 32 and c != "\n") or 0x7f <= ord(c) < 0xa0 or c in "\u202e\u200b"]
            self.assertEqual(bad, [], args)


class Terminal:
    """A program in a pty of a given size."""

    def __init__(self, args, env, size=(30, 100)):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(args[0], args, env)
        self.resize(size)
        self.bytes = b""

    def resize(self, size):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def read_until(self, pattern, start=0):
        deadline = time.monotonic() + DEADLINE
        while not re.search(pattern, self.bytes[start:], re.S):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError("never saw %r in %r" % (pattern, self.bytes[-3000:]))
            try:
                self.bytes += os.read(self.fd, 65536)
            except OSError:
                raise AssertionError("ended before %r: %r" % (pattern, self.bytes[-3000:])) from None

    def wait(self):
        """Read to the end; the exit status."""
        try:
            while select.select([self.fd], [], [], DEADLINE)[0]:
                got = os.read(self.fd, 65536)
                if not got:
                    break
                self.bytes += got
        except OSError:
            pass
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


class Watch(Case):
    def start(self, *files, size=(30, 100), **extra):
        self.serve(fake_server.canned([file(f) for f in files]))
        env = environment(TERM="xterm-256color", **extra)
        return Terminal([DWELLCTL, "status", "--watch=100ms", "--socket", self.path], env, size)

    def restored(self, terminal):
        self.assertTrue(terminal.bytes.rstrip(b"\r\n").endswith(b"\x1b[?7h\x1b[?25h"), terminal.bytes[-200:])

    def test_the_panel_is_redrawn_in_place(self):
        t = self.start("network", "starved", "unknown")
        t.read_until(rb"network: it hurts the packets")
        t.read_until(rb"server: this host queues the packets.*\xe2\x96\x88.*p99")
        t.read_until(rb"unknown: what is needed to judge is not measured")
        os.kill(t.pid, signal.SIGINT)
        self.assertEqual(t.wait(), 0)
        self.restored(t)
        self.assertGreaterEqual(t.bytes.count(b"\x1b[H"), 3)
        self.assertEqual(t.bytes.count(b"\x1b[?25l"), 1)
        self.assertIn(b"\x1b[1;31m", t.bytes)

    def test_term_and_q_end_it_cleanly(self):
        t = self.start("starved")
        t.read_until(rb"reader-starved")
        os.kill(t.pid, signal.SIGTERM)
        self.assertEqual(t.wait(), 0)
        self.restored(t)
        self.server.close()
        t = self.start("starved")
        t.read_until(rb"reader-starved")
        os.write(t.fd, b"q")
        self.assertEqual(t.wait(), 0)
        self.restored(t)

    def test_a_new_size_is_drawn_at_once_and_never_too_wide(self):
        t = self.start("starved")
        t.read_until(rb"reader-starved")
        for size in ((24, 80), (8, 40), (3, 20), (1, 1), (50, 200)):
            start = len(t.bytes)
            t.resize(size)
            os.kill(t.pid, signal.SIGWINCH)
            t.read_until(rb"\x1b\[H.*\x1b\[J.*\x1b\[H.*\x1b\[J", start)
            frame = t.bytes[start:].split(b"\x1b[H")[-2].split(b"\x1b[J")[0].decode(errors="replace")
            lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", frame).replace("\r", "").split("\n")
            self.assertLessEqual(len(lines), size[0])
            self.assertLessEqual(max(len(line) for line in lines), size[1], lines)
        os.kill(t.pid, signal.SIGINT)
        self.assertEqual(t.wait(), 0)

    def test_no_color_and_an_ascii_locale(self):
        t = self.start("starved", NO_COLOR="1", LC_ALL="C")
        t.read_until(rb"reader-starved.*\x1b\[J")
        os.kill(t.pid, signal.SIGINT)
        t.wait()
        self.assertTrue(t.bytes.isascii())
        self.assertIsNone(re.search(rb"\x1b\[[1-9][0-9;]*m", t.bytes))
        self.assertIn(b"######", t.bytes)

    def test_names_with_escape_sequences(self):
        t = self.start("evil")
        t.read_until(rb"a\?\[31mred.*\x1b\[J")
        os.kill(t.pid, signal.SIGINT)
        t.wait()
        for sequence in re.findall(rb"\x1b[^a-zA-Z]*[a-zA-Z]?", t.bytes):
            self.assertRegex(sequence, rb"^\x1b\[(H|J|K|[?](25|7)[hl]|[0-9;]+m)$")
        self.assertIsNone(re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202e]", t.bytes.decode()))

    def test_a_daemon_that_goes_away_and_comes_back(self):
        t = self.start("starved")
        t.read_until(rb"reader-starved")
        self.server.close()
        t.read_until(rb"no answer from dwelld.*does not run")
        start = len(t.bytes)
        self.serve(fake_server.canned([file("network")]))
        t.read_until(rb"network: it hurts", start)
        os.kill(t.pid, signal.SIGINT)
        self.assertEqual(t.wait(), 0)

    def test_piped_it_prints_plain_blocks(self):
        self.serve(fake_server.canned([file("starved")]))
        p = subprocess.Popen([DWELLCTL, "status", "--watch=100ms", "--socket", self.path], env=environment(TERM="xterm"),
                             stdout=subprocess.PIPE)
        out = b""
        while out.count(b"SERVER ") < 3:
            got = os.read(p.stdout.fileno(), 65536)
            self.assertTrue(got, out)
            out += got
        p.terminate()
        out += p.stdout.read()
        p.stdout.close()
        self.assertEqual(p.wait(DEADLINE), 0)
        self.assertNotIn(b"\x1b", out)
        with open(os.path.join(HERE, "golden", "starved.txt"), "rb") as f:
            self.assertTrue(out.startswith(f.read() + b"\n"))

    def test_a_closed_pipe_ends_it(self):
        self.serve(fake_server.canned([file("starved")]))
        p = subprocess.Popen([DWELLCTL, "status", "--watch=100ms", "--socket", self.path], env=environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.read(10)
        p.stdout.close()
        self.assertEqual((p.wait(DEADLINE), p.stderr.read()), (0, b""))
        p.stderr.close()

    def test_no_daemon_at_the_start(self):
        r = self.run_ctl("status", "--watch")
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"does not run", r.stderr)


if __name__ == "__main__":
    unittest.main()
