#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""From start to stop: what the service manager hears, reload, a second instance, a stale socket, forced rungs."""
import os
import re
import signal
import socket
import subprocess
import time

from life import SOON, check, main, probe, rule, rule_state, until

SLOW_TICK = {"DWELLD_TEST_TICK_US": "1500000"}
WORDS = r"^(ok|idle|unknown|server|network|mixed): \d+ targets?, \d+ alerts? firing; dwell by \w+; mode observe$"
# probe-missing as shipped, with a window that is full sooner
SHORT = 'rules = ( { name = "probe-missing"; when = "probes.missing[1s] > 0"; for = "1s"; clear_for = "1s"; } );\n'
BAD = 'mode = "observe";\nrules = (\n  { name = "x"; when = "dwell.p99 > 10"; }\n);\n'


def lines(message, start):
    return [line[len(start):] for line in message.splitlines() if line.startswith(start)]


def start_ready_after_the_first_tick(box):
    d = box.daemon(env=SLOW_TICK)
    until("a control socket", lambda: os.path.exists(box.path("run", "control.sock")) or d.must_live())
    r = d.ctl("status")
    check(d.told("READY=1") is None, "READY before the first tick")
    check(r.returncode != 0 and "not ready" in r.stdout + r.stderr, "status before the first tick: %r" % (r,))
    when, message = d.wait_told("READY=1")
    check(when - d.start >= 1.5, "READY %.2f s after the start, but the first tick is at 1.5 s" % (when - d.start))
    check(d.messages[0][0] == when, "something was told before READY: %r" % d.messages)
    words = lines(message, "STATUS=")
    check(words and re.match(WORDS, words[0]), "STATUS is not in words: %r" % message)
    s = d.status()
    check(len(s["probes"]) == 5 and s["targets"][0]["name"] == "host", "the first tick was not complete")
    check(s["host"]["cpu"]["busy"] is None, "a share out of one reading")
    d.stop()


def start_watchdog_and_stop(box):
    d = box.daemon().ready()
    after = time.monotonic()
    until("WATCHDOG=1 four times a second",
          lambda: len([1 for when, m in d.pump() if when > after and "WATCHDOG=1" in m]) >= 8)
    took = time.monotonic() - after
    check(took > 1.5, "eight WATCHDOG=1 within %.2f s" % took)
    d.stop()
    check([m for _, m in d.messages if "STOPPING=1" in m], "no STOPPING=1: %r" % d.messages[-3:])
    check("WATCHDOG=1" not in d.messages[-1][1], "alive after STOPPING")
    check(not os.listdir(box.path("run")), "left in the run directory: %s" % os.listdir(box.path("run")))


def start_term_while_probes_are_loaded(box):
    """The service manager may stop or reload us at any moment, also while libbpf works."""
    for sig, ends in ((signal.SIGTERM, True), (signal.SIGHUP, False)):
        d = box.daemon(env=SLOW_TICK)
        until("a control socket", lambda: os.path.exists(box.path("run", "control.sock")) or d.must_live())
        os.kill(d.pid, sig)
        if ends:
            check(d.wait_end() == 0, "exit status %s after TERM at start:\n%s" % (d.child.returncode, d.log()))
            check(not os.path.exists(box.path("run", "control.sock")), "its socket is left")
            d.close()
        else:
            d.ready()
            d.stop()


def reload_good_file(box):
    d = box.daemon().ready()
    before = d.status()["config_hash"]
    after = time.monotonic()
    box.write("dwelld.conf", 'mode = "dry-run";\n')
    os.kill(d.pid, signal.SIGHUP)
    when, message = d.wait_told("RELOADING=1", after)
    stamp = lines(message, "MONOTONIC_USEC=")
    check(stamp and abs(int(stamp[0]) / 1e6 - when) < 5, "MONOTONIC_USEC in %r" % message)
    d.wait_told("READY=1", when)
    s = d.status()
    check(s["config_hash"] != before and s["mode"] == "dry-run", "the new file is not in force")
    until("STATUS in words again",
          lambda: any(re.search(r"STATUS=\w+: \d+ target.*mode dry-run", m) for t, m in d.pump() if t > when))
    d.stop()


def reload_bad_file_keeps_the_old_one(box):
    d = box.daemon().ready()
    old = d.status()
    rules = [(r["name"], r["target"]) for r in old["rules"]]
    after = time.monotonic()
    box.write("dwelld.conf", BAD)
    os.kill(d.pid, signal.SIGHUP)
    when, _ = d.wait_told("RELOADING=1", after)
    _, message = d.wait_told("READY=1", when)
    check("fail" in "".join(lines(message, "STATUS=")), "STATUS after a bad reload: %r" % message)
    d.wait_log(r"dwelld\.conf:3: ")
    d.wait_told("STATUS=", when + 0.001)
    check(re.search(r"STATUS=\w+: \d+ target.*reload failed", d.messages[-1][1] + d.told("STATUS=", when + 0.001)[1]),
          "STATUS later: %r" % d.messages[-3:])
    s = d.status()
    check(s["config_hash"] == old["config_hash"], "the bad file is in force")
    check(set(rules) <= {(r["name"], r["target"]) for r in s["rules"]}, "rules are gone")
    after = time.monotonic()
    r = d.ctl("reload")
    check(r.returncode not in (0, 2), "dwellctl reload: exit %d" % r.returncode)
    check(re.search(r"dwelld\.conf:3: ", r.stdout + r.stderr), "no file:line in %r" % (r.stdout + r.stderr))
    d.wait_told("READY=1", after)
    box.write("dwelld.conf", "")
    r = d.ctl("reload")
    check(r.returncode == 0, "dwellctl reload of a good file: %r" % (r,))
    check(d.told("READY=1", after), "no READY")
    until("STATUS without the failure",
          lambda: [m for _, m in d.pump() if "STATUS=" in m][-1].find("failed") < 0)
    d.stop()


def reload_tells_of_a_hook_that_cannot_run(box):
    """At start such a hook is named; a reload that brings one in must not be silent about it."""
    d = box.daemon().ready()
    box.write("dwelld.conf", """
hooks = ( { name = "gone"; kind = "page"; exec = [ "%s" ]; on = [ "fire" ]; } );
rules = ( { name = "reader-slow"; notify = [ "gone" ]; } );
""" % box.path("hooks", "not-there"))
    r = d.ctl("reload")
    check("not-there" in r.stdout + r.stderr, "dwellctl reload: %r" % (r,))
    d.wait_log("not-there")
    d.stop()


def second_instance_is_refused(box):
    first = box.daemon().ready()
    second = box.daemon()
    check(second.wait_end() == 1, "exit status of the second: %d" % second.child.returncode)
    check(str(first.pid) in second.log() and "another dwelld" in second.log(), "its words: %s" % second.log())
    check(not second.told("READY=1"), "the second said READY")
    second.close()
    check(first.status()["self"]["pid"] == first.pid, "the first no longer answers")
    first.stop()


def stale_socket_is_replaced(box):
    s = socket.socket(socket.AF_UNIX)
    s.bind(box.path("run", "control.sock"))
    s.close()       # bound, and nobody listens
    d = box.daemon().ready()
    check(d.status()["self"]["pid"] == d.pid, "another answers")
    d.stop()


def file_in_place_of_the_socket_is_kept(box):
    box.write("run/control.sock", "somebody's\n")
    d = box.daemon()
    check(d.wait_end() == 1, "exit status %s" % d.child.returncode)
    check(box.read("run/control.sock") == "somebody's\n", "the file was replaced")
    check("control.sock" in d.log(), "its words: %s" % d.log())
    d.close()


def bad_usage_and_bad_configuration(box):
    def run(*args):
        return subprocess.run([box.path("bin", "dwelld"), *args], capture_output=True, text=True, timeout=SOON, check=False)
    for bad in ("dwell=warp", "nothing", "runq=fifo", "dwell="):
        r = run("--rungs", bad)
        check(r.returncode == 2, "--rungs %s: exit %d" % (bad, r.returncode))
        for rung in ("dwell=fentry", "dwell=fifo", "runq=sched_info", "rtp=cgroup_skb"):
            check(rung in r.stderr, "--rungs %s: %s is not named: %s" % (bad, rung, r.stderr))
    check(run("--no-such").returncode == 2 and run("word").returncode == 2, "usage")
    d = box.daemon(config=BAD)
    check(d.wait_end() == 78, "exit status with a bad file: %s" % d.child.returncode)
    check(re.search(r"dwelld\.conf:3: ", d.log()), "its words: %s" % d.log())
    d.close()
    d = box.daemon(config_file=box.path("not-there.conf"))
    check(d.wait_end() == 78, "exit status without the file: %s" % d.child.returncode)
    check("not-there.conf" in d.log(), "its words: %s" % d.log())
    d.close()


def rungs_forced(box):
    """C63: what is not there reads unknown and is told by a rule; the others work."""
    box.reader("-i", "5000", "0")
    d = box.daemon("--rungs", "runq=sched_info,rtp=none", config=SHORT).ready()
    s = d.wait_status("dwell and runq samples",
                      lambda s: s["targets"][0]["signals"]["dwell"]["count"] and
                      (s["targets"][0]["signals"]["runq"] or {}).get("count") and s)
    p = probe(s, "runq")
    check((p["rung"], p["attached"], p["exact"]) == ("sched_info", True, False), "runq: %r" % p)
    check("wakeup" in p["reason"] and "not asked for" in p["reason"], "why not wakeup: %r" % p)
    p = probe(s, "rtp")
    check((p["rung"], p["attached"]) == ("none", False) and p["reason"], "rtp: %r" % p)
    check(all(t["signals"]["rtp"] is None for t in s["targets"]), "rtp reads something")
    d.wait_status("probe-missing fires", lambda s: rule_state(s, "probe-missing") == "firing")
    d.wait_log(r"ALERT host: coverage / probe-missing")
    check("rtp" in d.log(), "which one: %s" % d.log())
    d.stop()


def rung_dwell_none(box):
    box.reader("-i", "5000", "0", name="life-alone")
    d = box.daemon("--rungs", "dwell=none", config=SHORT).ready()
    s = d.wait_status("probe-missing fires", lambda s: rule_state(s, "probe-missing") == "firing" and s)
    check(probe(s, "dwell")["rung"] == "none" and not probe(s, "dwell")["attached"], "dwell: %r" % probe(s, "dwell"))
    check(s["targets"][0]["signals"]["dwell"] is None, "dwell reads something")
    check(s["targets"][0]["verdict"] == "unknown", "verdict %s without dwell" % s["targets"][0]["verdict"])
    check(s["host"]["softirq"]["run"]["count"], "softirq does not work")
    check(rule(s, "reader-slow")["state"] == "unknown", "reader-slow is %s" % rule(s, "reader-slow")["state"])
    d.wait_log("probe dwell: .*no dwell")
    d.stop()


def rung_muted(box):
    d = box.daemon(env={"DWELLD_TEST_MUTE_RUNG": "wakeup"}).ready()
    p = probe(d.status(), "runq")
    check((p["rung"], p["exact"]) == ("sched_info", False) and "wakeup" in p["reason"], "runq: %r" % p)
    d.wait_log("probe runq: rung sched_info, not exact")
    d.stop()
    d = box.daemon(env={"DWELLD_TEST_MUTE_RUNG": "fentry,kprobe,consume,fifo"}, config=SHORT).ready()
    s = d.wait_status("probe-missing fires", lambda s: rule_state(s, "probe-missing") == "firing" and s)
    p = probe(s, "dwell")
    check((p["rung"], p["attached"]) == ("none", False), "dwell: %r" % p)
    check(re.search(r"fifo: attached, but of 8 self-test", p["reason"]), "why: %r" % p)
    d.wait_log("probe dwell: .*no dwell")
    d.stop()


if __name__ == "__main__":
    main([start_ready_after_the_first_tick, start_watchdog_and_stop, start_term_while_probes_are_loaded, reload_good_file,
          reload_bad_file_keeps_the_old_one, reload_tells_of_a_hook_that_cannot_run, second_instance_is_refused,
          stale_socket_is_replaced, file_in_place_of_the_socket_is_kept, bad_usage_and_bad_configuration, rungs_forced,
          rung_dwell_none, rung_muted])
