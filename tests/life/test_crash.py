#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kill -9 while a remedy is in force and while a hook runs: nothing stays attached, and the next start settles what is owed."""
import os
import signal

from life import bpf_ids, bpf_left, check, main, rule_state, until

# Slow while reader's file says so; the hook tells what it was asked, and waits while "hold" is there.
HOOK = """#!/bin/sh
echo "begin $DWELLD_ACTION $DWELLD_SEQ $DWELLD_ATTEMPT $$" >>BOX/calls
while [ -e BOX/hold ] && [ "$DWELLD_ACTION" = do ]; do sleep 0.05; done
echo "end $DWELLD_ACTION $DWELLD_SEQ" >>BOX/calls
"""
CONFIG = """
mode = "act";
builtin_rules = false;
targets = ( { name = "sfu"; process = "life-sfu"; } );
rules = ( { name = "slow"; class = "server"; targets = [ "sfu" ]; when = "dwell.max[1s] > 50ms"; for = "1s"; clear_for = "1s";
            ladder = [ "help" ]; summary = "{target} is slow"; } );
hooks = ( { name = "help"; kind = "remedy"; exec = [ "BOX/hooks/help" ]; timeout = "60s";
            undo = { after = "1s"; when = "dwell.max[1s] < 20ms"; }; } );
"""


class Scene:
    def __init__(self, box):
        self.box = box
        box.write("hooks/help", HOOK.replace("BOX", box.dir), 0o755)
        box.write("slow", "100000\n")
        box.write("calls", "")
        box.reader("-i", "10000", "-s", box.path("slow"), "0", name="life-sfu", wait=False)

    def daemon(self):
        return self.box.daemon(config=CONFIG.replace("BOX", self.box.dir)).ready()

    def calls(self):
        return [tuple(line.split()) for line in self.box.read("calls").splitlines()]

    def wait_call(self, what, action, count=1):
        until(lambda: "%s %s %d times; calls: %s; log:\n%s" % (what, action, count, self.calls(), self.box.daemons[-1].log()),
              lambda: len([c for c in self.calls() if c[:2] == (what, action)]) >= count, 60)

    def owed(self):
        return self.box.read("state/owed")


def crash(d):
    ids = bpf_ids(d.pid)
    check(len(ids[0]) > 5 and len(ids[1]) > 5, "links and programs before: %s" % (ids,))
    d.kill()
    until(lambda: "the kernel lets go of links and programs %s" % (bpf_left(ids),), lambda: bpf_left(ids) == ([], []), 10)


def settled(scene, d):
    """The undo was run once and well, nothing is owed, and nothing was done twice."""
    scene.wait_call("end", "undo")
    d.wait_status("the hook rests", lambda s: all(h["state"] == "idle" for h in s["hooks"]))
    until("the debt is settled on disk: " + scene.owed(), lambda: "paid" in scene.owed() or not any(
        line.startswith("owe") for line in scene.owed().splitlines()))
    begun = [c for c in scene.calls() if c[0] == "begin"]
    check([c[1] for c in begun] == ["do", "undo"], "calls: %s" % (scene.calls(),))
    check(len({c[2] for c in begun}) == 2, "a number was used twice: %s" % (begun,))


def killed_while_a_remedy_is_in_force(box):
    scene = Scene(box)
    d = scene.daemon()
    scene.wait_call("end", "do")
    d.wait_status("in force", lambda s: any(h["state"] == "done" for h in s["hooks"]))
    crash(d)
    check(os.path.exists(box.path("run", "control.sock")), "the socket is gone after KILL")
    check("help" in scene.owed(), "nothing is owed on disk: %r" % scene.owed())
    d = scene.daemon()
    check("an undo is owed from before: hook help on sfu" in d.log(), "the debt is not told:\n" + d.log())
    d.wait_status("the rule fires again", lambda s: rule_state(s, "slow") == "firing")
    box.write("slow", "0\n")
    d.wait_status("mitigated, for the remedy of before is in force", lambda s: rule_state(s, "slow") == "mitigated")
    settled(scene, d)
    d.stop()
    d = scene.daemon()
    check("owed from before" not in d.log(), "a settled debt is found again:\n" + d.log())
    d.stop()


def cause_gone_while_dead(box):
    scene = Scene(box)
    d = scene.daemon()
    scene.wait_call("end", "do")
    d.wait_status("in force", lambda s: any(h["state"] == "done" for h in s["hooks"]))
    crash(d)
    box.write("slow", "0\n")
    d = scene.daemon()
    settled(scene, d)
    d.stop()


def killed_while_a_hook_runs(box):
    """The run goes on by itself; its undo waits until it has ended."""
    scene = Scene(box)
    box.write("hold", "")
    d = scene.daemon()
    scene.wait_call("begin", "do")
    hook = int(scene.calls()[0][4])
    crash(d)
    check(os.path.exists("/proc/%d" % hook), "the hook died with the daemon")
    box.write("slow", "0\n")
    d = scene.daemon()
    d.wait_log("HOOK help undo for sfu failed: exit 75.*another run", 30)
    check([c[1] for c in scene.calls()] == ["do"], "undo beside the do: %s" % (scene.calls(),))
    os.unlink(box.path("hold"))
    scene.wait_call("end", "do")
    settled(scene, d)
    order = [c[:2] for c in scene.calls()]
    check(order == [("begin", "do"), ("end", "do"), ("begin", "undo"), ("end", "undo")], "order: %s" % order)
    d.stop()


def rule_still_fires_while_the_old_hook_runs(box):
    """No second do for what is being done; in force it is taken to be."""
    scene = Scene(box)
    box.write("hold", "")
    d = scene.daemon()
    scene.wait_call("begin", "do")
    crash(d)
    d = scene.daemon()
    d.wait_status("the rule fires", lambda s: rule_state(s, "slow") == "firing")
    d.wait_status("and is looked at for 2 s more", lambda s: next(
        r for r in s["rules"] if r["name"] == "slow")["state_age_ns"] > 2e9)
    os.unlink(box.path("hold"))
    scene.wait_call("end", "do")
    box.write("slow", "0\n")
    settled(scene, d)
    d.stop()


def runner_killed_too(box):
    """Daemon and runner die at once: the hook goes with its runner, the debt stays, the undo is run."""
    scene = Scene(box)
    box.write("hold", "")
    d = scene.daemon()
    scene.wait_call("begin", "do")
    hook = int(scene.calls()[0][4])
    with open("/proc/%d/stat" % hook, encoding="utf-8") as f:
        runner = int(f.read().rsplit(")", 1)[1].split()[1])
    with open("/proc/%d/comm" % runner, encoding="utf-8") as f:
        check(f.read() == "runner\n", "the hook's parent is not the runner")
    os.kill(runner, signal.SIGSTOP)
    crash(d)
    os.kill(runner, signal.SIGKILL)
    until("the hook dies with its runner", lambda: not os.path.exists("/proc/%d" % hook))
    box.write("slow", "0\n")
    d = scene.daemon()
    settled(scene, d)
    check(("end", "do") not in [c[:2] for c in scene.calls()], "the hook went on: %s" % (scene.calls(),))
    d.stop()


def runner_killed_under_a_living_daemon(box):
    """The outcome is not known: told as failed, the debt stays owed and is undone."""
    scene = Scene(box)
    box.write("hold", "")
    d = scene.daemon()
    scene.wait_call("begin", "do")
    with open("/proc/%d/stat" % int(scene.calls()[0][4]), encoding="utf-8") as f:
        os.kill(int(f.read().rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
    d.wait_log("HOOK help do for sfu failed: .*lost: the runner was killed by signal 9")
    d.wait_status("owed", lambda s: any(h["state"] == "owed" for h in s["hooks"]))
    box.write("slow", "0\n")
    settled(scene, d)
    d.stop()


def stopped_while_a_hook_runs(box):
    """TERM to the daemon ends the run, and it stays owed."""
    scene = Scene(box)
    box.write("hold", "")
    d = scene.daemon()
    scene.wait_call("begin", "do")
    hook = int(scene.calls()[0][4])
    d.stop()
    check(not os.path.exists("/proc/%d" % hook), "the hook goes on after the stop")
    check("help" in scene.owed(), "nothing is owed: %r" % scene.owed())
    box.write("slow", "0\n")
    d = scene.daemon()
    settled(scene, d)
    d.stop()


if __name__ == "__main__":
    main([killed_while_a_remedy_is_in_force, cause_gone_while_dead, killed_while_a_hook_runs,
          rule_still_fires_while_the_old_hook_runs, runner_killed_too, runner_killed_under_a_living_daemon,
          stopped_while_a_hook_runs])
