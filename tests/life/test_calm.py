#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing that others do or fail to do stops the tick: readers of our stderr, the service manager, a SIGSTOP."""
import fcntl
import os
import pty
import select
import signal
import socket
import time

from life import SOON, check, main, rule_state, target, until

LATE = 2e9          # ns; a tick that blocked would be late for ever, a starved one is late for less


def ticks_go_on(d, what):
    """For two seconds the ticks come, and the last ones were in time. Alive says uptime, which the status computes, and WATCHDOG."""
    after = time.monotonic()
    until(lambda: "ticks with %s" % what,
          lambda: len([1 for when, m in d.pump() if when > after and "WATCHDOG=1" in m]) >= 6)
    late = d.status()["self"]["tick_late_max_ns"]
    check(late < LATE, "a tick was %.1f s late with %s" % (late / 1e9, what))


def full_pipe():
    r, w = os.pipe()
    fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(w, False)
    try:
        while True:
            os.write(w, b"x" * 512)
    except BlockingIOError:
        os.set_blocking(w, True)
    return r, w


def many_words(d):
    for _ in range(20):
        check(d.ctl("reload").returncode == 0, "reload")


def stderr_is_a_full_pipe(box):
    r, w = full_pipe()
    d = box.daemon(stderr=w).ready()
    os.close(w)
    many_words(d)
    ticks_go_on(d, "a full stderr")
    d.stop()
    os.close(r)


def stderr_is_closed_at_the_other_end(box):
    r, w = os.pipe()
    d = box.daemon(stderr=w).ready()
    os.close(w)
    os.close(r)
    many_words(d)
    ticks_go_on(d, "a closed stderr")
    d.stop()


def stderr_is_a_terminal_that_nobody_reads(box):
    master, slave = pty.openpty()
    os.set_blocking(slave, False)
    try:
        while True:
            os.write(slave, b"x" * 512)
    except BlockingIOError:
        os.set_blocking(slave, True)
    for room in range(1, 40):       # too little for a line: poll() says that it can be written, write() waits
        os.read(master, room)
        if select.select([], [slave], [], 0)[1]:
            break
    d = box.daemon(stderr=slave).ready()
    os.close(slave)
    many_words(d)
    ticks_go_on(d, "a terminal that stands still")
    d.stop()
    os.close(master)


def manager_does_not_read(box):
    """The service manager's socket is full from the start; what it must hear comes when it reads again."""
    d = box.daemon(env={"DWELLD_TEST_TICK_US": "1500000"})
    fill = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    fill.setblocking(False)
    try:
        while True:
            fill.sendto(b"junk", d.notify_path)
    except BlockingIOError:
        pass
    until("status", lambda: d.ctl("status").returncode == 0 or d.must_live())
    check(d.ctl("reload").returncode == 0, "reload")
    first = d.status()["self"]["uptime_ns"]
    d.wait_status("two seconds of ticks", lambda s: s["self"]["uptime_ns"] > first + 2e9)
    check(d.status()["self"]["tick_late_max_ns"] < LATE, "a tick was late")
    d.wait_told("READY=1")
    d.wait_told("WATCHDOG=1")
    kinds = [m.split("=")[0] for _, m in d.messages if m != "junk" and not m.startswith(("STATUS", "WATCHDOG"))]
    check(kinds[:3] == ["READY", "RELOADING", "READY"], "order: %s" % kinds)
    fill.close()
    d.stop()


def client_that_never_reads(box):
    d = box.daemon().ready()
    socks = []
    for _ in range(20):
        s = socket.socket(socket.AF_UNIX)
        s.connect(box.path("run", "control.sock"))
        s.sendall(b"status")
        socks.append(s)
    ticks_go_on(d, "clients that stop in the middle")
    for s in socks:
        s.close()
    d.stop()


RULES = """
builtin_rules = false;
targets = ( { name = "calm"; process = "life-calm"; } );
rules = (
  { name = "late"; class = "server"; targets = [ "calm" ]; when = "dwell.max[1s] > 2s"; for = "1s"; clear_for = "1s"; },
  { name = "burst"; class = "server"; targets = [ "calm" ]; when = "dwell.rate[1s] > 400/s"; for = "500ms"; clear_for = "1s"; },
  { name = "gone"; class = "server"; targets = [ "calm" ]; when = "dwell.rate[1s] < 2/s"; for = "500ms"; clear_for = "1s"; }
);
"""


def stopped_for_three_seconds(box):
    """One late tick, no burst of ticks, no events: a gap shows rules nothing."""
    box.reader("-i", "10000", "0", name="life-calm")
    d = box.daemon(config=RULES).ready()
    d.wait_status("all rules ok", lambda s: [rule_state(s, r) for r in ("late", "burst", "gone")] == ["ok"] * 3)
    seen = d.log()
    os.kill(d.pid, signal.SIGSTOP)
    d.pump()
    time.sleep(3)           # the stop itself
    check(not d.told("WATCHDOG=1", time.monotonic() - 2), "it ran while it was stopped")
    woken = time.monotonic()
    os.kill(d.pid, signal.SIGCONT)
    until("eight ticks", lambda: len([1 for when, m in d.pump() if when > woken and "WATCHDOG=1" in m]) >= 8)
    alive = [when - woken for when, m in d.messages if when > woken and "WATCHDOG=1" in m]
    check(alive[7] > 1.4, "eight ticks within %.2f s: missed ones were made up for" % alive[7])
    s = d.status()
    check(2.2e9 < s["self"]["tick_late_max_ns"], "the late tick is not told: %d" % s["self"]["tick_late_max_ns"])
    d.wait_status("all rules ok again", lambda s: [rule_state(s, r) for r in ("late", "burst", "gone")] == ["ok"] * 3)
    check(d.log() == seen, "events:\n" + d.log()[len(seen):])
    d.stop()


if __name__ == "__main__":
    main([stderr_is_a_full_pipe, stderr_is_closed_at_the_other_end, stderr_is_a_terminal_that_nobody_reads, manager_does_not_read,
          client_that_never_reads, stopped_for_three_seconds])
