#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a hook is given, and what dry-run and observe do not do. The whole way under a real load is tools/demo's."""
import json
import re
import socket
import time

from life import check, main, rule, rule_state, until

# Each action is written to a place of its own, whole before it is there.
HOOK = """#!/bin/sh
umask >BOX/out.$DWELLD_ACTION.umask
pwd >BOX/out.$DWELLD_ACTION.pwd
ls -l /proc/self/fd >BOX/out.$DWELLD_ACTION.fds
cat >BOX/out.$DWELLD_ACTION.stdin
printf '%s\\n' "$@" >BOX/out.$DWELLD_ACTION.args
cat /proc/$$/environ >BOX/out.$DWELLD_ACTION.env
echo "$DWELLD_ACTION" >>BOX/calls
echo "weight=7 done"
"""
CONFIG = """
mode = "MODE";
builtin_rules = false;
targets = ( { name = "sfu"; process = "life-sfu"; } );
rules = ( { name = "slow"; class = "server"; targets = [ "sfu" ]; when = "dwell.max[1s] > 50ms"; for = "1s"; clear_for = "1s";
            ladder = [ "help" ]; notify = [ "tell" ]; summary = "{target} is slow; $(reboot)"; } );
hooks = ( { name = "help"; kind = "remedy"; exec = [ "BOX/hooks/help", "--unit={unit}", "{target}:{ports}", "{rule}", "plain $(x)" ];
            timeout = "20s"; undo = { after = "1s"; when = "dwell.max[1s] < 20ms"; }; },
          { name = "tell"; kind = "page"; user = "root"; exec = [ "BOX/hooks/help" ]; on = [ "fire" ]; timeout = "20s"; } );
"""
WANTED = {"DWELLD_CONTRACT", "DWELLD_ACTION", "DWELLD_EVENT", "DWELLD_HOOK", "DWELLD_RULE", "DWELLD_TARGET", "DWELLD_UNIT",
          "DWELLD_CGROUP", "DWELLD_PIDS", "DWELLD_PORTS", "DWELLD_CLASS", "DWELLD_SEVERITY", "DWELLD_ALERT_ID", "DWELLD_SEQ",
          "DWELLD_ATTEMPT", "DWELLD_SUMMARY", "DWELLD_HOST", "DWELLD_DEADLINE", "DWELLD_DRY_RUN", "PATH", "LC_ALL", "TZ", "HOME",
          "STATE_DIRECTORY"}


def scene(box, mode, *args):
    box.write("hooks/help", HOOK.replace("BOX", box.dir), 0o755)
    box.write("slow", "100000\n")
    child = box.reader("-i", "10000", "-s", box.path("slow"), "0", name="life-sfu", wait=False)
    child.ports = [int(child.stdout.readline().split()[1])]
    config = CONFIG.replace("BOX", box.dir).replace("MODE", mode)
    return box.daemon(*args, config=config, env={"SECRET": "x", "LD_LIBRARY_PATH": "/nowhere"}).ready(), child


def environment(box, action):
    text = box.read("out.%s.env" % action)
    return dict(pair.split("=", 1) for pair in text.split("\0") if pair)


def called(box, d, *actions):
    until(lambda: "calls %s; there are %r; log:\n%s" % (actions, box.read("calls"), d.log()),
          lambda: sorted(box.read("calls").split()) == sorted(actions), 60)


def hook_is_given_all_and_nothing_else(box):
    d, child = scene(box, "act")
    called(box, d, "notify", "do")
    env = environment(box, "do")
    check(set(env) - {"PWD", "OLDPWD", "SHLVL", "_"} == WANTED,
          "missing %s; too much %s" % (WANTED - set(env), set(env) - WANTED))
    fixed = {"DWELLD_CONTRACT": "1", "DWELLD_ACTION": "do", "DWELLD_HOOK": "help", "DWELLD_RULE": "slow", "DWELLD_TARGET": "sfu",
             "DWELLD_EVENT": "fire", "DWELLD_CLASS": "server", "DWELLD_SEVERITY": "warning", "DWELLD_ATTEMPT": "1",
             "DWELLD_DRY_RUN": "0", "DWELLD_PIDS": str(child.pid), "DWELLD_PORTS": str(child.ports[0]), "LC_ALL": "C.UTF-8",
             "TZ": "UTC", "HOME": "/nonexistent", "DWELLD_HOST": socket.gethostname(),
             "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    for name, value in fixed.items():
        check(env[name] == value, "%s is %r, expected %r" % (name, env[name], value))
    with open("/proc/%d/cgroup" % child.pid, encoding="utf-8") as f:
        check(":" + env["DWELLD_CGROUP"] + "\n" in f.read(), "DWELLD_CGROUP=%r" % env["DWELLD_CGROUP"])
    check("sfu is slow" in env["DWELLD_SUMMARY"], "DWELLD_SUMMARY=%r" % env["DWELLD_SUMMARY"])
    check(abs(int(env["DWELLD_DEADLINE"]) - time.time() - 20) < 25, "DWELLD_DEADLINE=%r" % env["DWELLD_DEADLINE"])
    check(re.match(r"%s-slow-sfu-" % re.escape(socket.gethostname()), env["DWELLD_ALERT_ID"]), env["DWELLD_ALERT_ID"])
    unit = re.sub(r"[^A-Za-z0-9._:@/,+-]", "_", env["DWELLD_UNIT"])
    check(box.read("out.do.args").splitlines() == ["--unit=" + unit, "sfu:%d" % child.ports[0], "slow", "plain $(x)"],
          "arguments: %r" % box.read("out.do.args"))
    check(box.read("out.do.umask").strip() == "0077" and box.read("out.do.pwd").strip() == "/", "umask, directory")
    fds = re.findall(r" (\d+) -> ", box.read("out.do.fds"))
    check(fds == ["0", "1", "2", "3"], "descriptors: %s" % box.read("out.do.fds"))     # 3 is ls's own
    event = json.loads(box.read("out.do.stdin"))
    check(event["rule"] == "slow" and event["target"] == "sfu" and str(event["seq"]) == env["DWELLD_SEQ"], "event: %r" % event)
    d.wait_log(r"HOOK help do for sfu done: exit 0: weight=7 done")
    check("hook help[%s]: weight=7 done" % env["DWELLD_SEQ"] in d.log(), "its output is not in the log:\n" + d.log())
    # the cause goes: mitigated first, then the undo
    box.write("slow", "0\n")
    d.wait_log("MITIGATED sfu: slow is quiet")
    called(box, d, "notify", "do", "undo")
    undo = environment(box, "undo")
    check(undo["DWELLD_ALERT_ID"] == env["DWELLD_ALERT_ID"], "the undo's alert is another: %r" % undo["DWELLD_ALERT_ID"])
    check(int(undo["DWELLD_SEQ"]) > int(env["DWELLD_SEQ"]), "the undo's number")
    check(len(re.findall("ALERT sfu", d.log())) == 1, "fired more than once:\n" + d.log())
    d.stop()


def nothing_runs(box, mode, *args):
    d, _ = scene(box, mode, *args)
    s = d.wait_status("the rule fires and has done so for 2 s",
                      lambda s: rule_state(s, "slow") == "firing" and rule(s, "slow")["state_age_ns"] > 2e9 and s, 60)
    check("do" not in box.read("calls").split(), "it ran: %r" % box.read("calls"))
    check(not any(line.startswith("owe") for line in box.read("state/owed").splitlines()), "a debt was written")
    box.write("slow", "0\n")
    d.wait_log("RESOLVED sfu: slow is over", 60)
    check("do" not in box.read("calls").split() and "undo" not in box.read("calls").split(), "it ran: %r" % box.read("calls"))
    return d, s


def dry_run_says_what_it_would(box):
    d, s = nothing_runs(box, "dry-run")
    check(s["mode"] == "dry-run", "mode %s" % s["mode"])
    check(len(re.findall("HOOK help do for sfu asked by slow", d.log())) == 1, d.log())
    d.stop()


def dry_run_by_option_beats_act(box):
    d, s = nothing_runs(box, "act", "--dry-run")
    check(s["mode"] == "dry-run", "mode %s" % s["mode"])
    check(len(re.findall("HOOK help do for sfu asked by slow", d.log())) == 1, d.log())
    check(d.ctl("reload").returncode == 0 and d.status()["mode"] == "dry-run", "a reload forgets --dry-run")
    d.stop()


def observe_only_tells(box):
    d, s = nothing_runs(box, "observe")
    check(s["mode"] == "observe" and "ALERT sfu: server / slow" in d.log(), d.log())
    check("HOOK help" not in d.log(), "it speaks of the hook:\n" + d.log())
    d.stop()


if __name__ == "__main__":
    main([hook_is_given_all_and_nothing_else, dry_run_says_what_it_would, dry_run_by_option_beats_act, observe_only_tells])
