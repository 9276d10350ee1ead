#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose samples go where: ports of one process, a restart, hundreds of short-lived readers, more names than slots."""
import os
import re
import subprocess

from life import SOON, check, main, target, until


def count(status, name):
    t = target(status, name)
    return ((t or {}).get("signals", {}).get("dwell") or {}).get("count") or 0


def ports_of_one_process(box):
    """Two sockets, twice the traffic on one: each goes to its target, and neither to the process's own name."""
    child = box.reader("-i", "10000", "0*1", "0*3", "0*1", name="life-two")
    a, b, rest = child.ports
    d = box.daemon(config="""
targets = ( { name = "a"; ports = [ %d ]; }, { name = "b"; process = "life-two"; ports = [ %d ]; } );
""" % (a, b)).ready()
    s = d.wait_status("samples of all three", lambda s: min(count(s, "a"), count(s, "b"), count(s, "life-two")) > 200 and s, 60)
    ratio = count(s, "b") / count(s, "a")
    check(2.5 < ratio < 3.5, "b has three times the traffic of a, but %.2f was counted" % ratio)
    ratio = count(s, "life-two") / count(s, "a")
    check(0.7 < ratio < 1.4, "the third socket has the traffic of a, but %.2f was counted (port %d)" % (ratio, rest))
    check(target(s, "a")["configured"] and target(s, "b")["configured"], "not configured")
    for name in ("a", "b", "life-two"):
        check(target(s, name)["pids"] == [child.pid], "pids of %s: %s" % (name, target(s, name)["pids"]))
    check(target(s, "b")["sockets"] == 1, "sockets of b: %s" % target(s, "b")["sockets"])
    d.stop()


def ports_that_a_reload_moves(box):
    child = box.reader("-i", "10000", "0", "0", name="life-two")
    text = 'targets = ( { name = "%s"; ports = [ %d ]; } );\n'
    d = box.daemon(config=text % ("a", child.ports[0])).ready()
    d.wait_status("samples of a", lambda s: count(s, "a") > 20)
    box.write("dwelld.conf", text % ("b", child.ports[1]))
    check(d.ctl("reload").returncode == 0, "reload")
    s = d.wait_status("samples of b, none of a", lambda s: count(s, "b") > 20 and s)
    check(not target(s, "a") or not target(s, "a")["configured"], "a is still configured: %r" % target(s, "a"))
    box.write("dwelld.conf", "")
    check(d.ctl("reload").returncode == 0, "reload")
    d.wait_status("all goes to the process again", lambda s: target(s, "life-two")["sockets"] == 2)
    d.stop()


def restarted_process_keeps_its_place(box):
    d = box.daemon(config='targets = ( { name = "sfu"; process = "life-sfu"; } );\n').ready()
    s = d.status()
    check(target(s, "sfu")["verdict"] == "unknown", "a configured target that never was is %s" % target(s, "sfu")["verdict"])
    pids, places = [], []
    for _ in range(3):
        for name in ("life-sfu", "life-auto"):
            box.reader("-i", "5000", "0", name=name)
        now = [c.pid for c in box.children]
        s = d.wait_status("both with pids %s" % now, lambda s: [(target(s, n) or {}).get("pids") for n in ("sfu", "life-auto")] ==
                          [[p] for p in now] and count(s, "sfu") and count(s, "life-auto") and s)
        names = [t["name"] for t in s["targets"]]
        check(names.count("sfu") == 1 and names.count("life-auto") == 1, "names %s" % names)
        places.append((names.index("sfu"), names.index("life-auto")))
        pids += now
        for child in list(box.children):
            box.end(child)
        s = d.wait_status("both without processes", lambda s: not target(s, "sfu")["pids"] and
                          not (target(s, "life-auto") or {}).get("pids") and s)
    check(len(set(pids)) == 6, "pids were used again; nothing is proven")
    check(len(set(p[0] for p in places)) == 1, "places %s" % places)
    d.wait_status("idle when its processes are gone", lambda s: target(s, "sfu")["verdict"] == "idle", 60)
    d.stop()


def slots(box):
    r = subprocess.run([box.path("bin", "dwelld"), "--check", "--config", box.path("dwelld.conf")], capture_output=True, text=True,
                       timeout=SOON, check=True)
    return int(re.search(r"(\d+) target slots", r.stdout).group(1))


def hundreds_of_short_lived_readers(box):
    """Names come and go; places, entries, memory and descriptors stay."""
    d = box.daemon().ready()
    most = slots(box)
    rss = []       # of the first rounds: places that are touched for the first time
    for round_ in range(10):
        children = [box.reader("-i", "20000", "0", name="life-s%d" % (round_ * 20 + i)) for i in range(20)]
        last = "life-s%d" % (round_ * 20 + 19)
        s = d.wait_status("the last of round %d has a name of its own" % round_, lambda s: count(s, last) and s, 60)
        check(len(s["targets"]) <= most, "%d targets, %d slots" % (len(s["targets"]), most))
        rss.append((s["self"]["rss_bytes"], len(os.listdir("/proc/%d/fd" % d.pid))))
        for child in children:
            box.end(child)
    check(s["self"]["lost"]["target_slots"] == 0, "%d readers went without a place" % s["self"]["lost"]["target_slots"])
    if not os.environ.get("ASAN_OPTIONS") and not os.environ.get("DWELLD_SANITIZED"):
        check(rss[-1][0] - rss[5][0] < 1 << 20, "memory grows: %s" % rss)
    check(rss[-1][1] == rss[1][1], "descriptors grow: %s" % rss)
    d.wait_status("no process is kept", lambda s: not any(t["pids"] for t in s["targets"] if t["name"].startswith("life-s")), 60)
    d.stop()


def late_comer_gets_the_place_of_one_that_goes(box):
    d = box.daemon().ready()
    for i in range(slots(box)):
        box.reader("-i", "100000", "0", name="life-m%d" % i, wait=False)
    for child in box.children:
        check(child.stdout.readline().startswith(b"ready"), "a reader does not get ready")
    first = list(box.children)
    d.wait_status("all places are taken", lambda s: s["self"]["lost"]["target_slots"] > 0, 60)
    box.reader("-i", "5000", "0", name="life-late")
    for child in first[:20]:
        box.end(child)
    d.wait_status("it gets a place", lambda s: count(s, "life-late"), 60)
    d.stop()


def more_names_than_slots(box):
    """What has no place is `other`, and counted."""
    d = box.daemon().ready()
    most = slots(box)
    for i in range(most + 8):
        box.reader("-i", "100000", "0", name="life-m%d" % i, wait=False)
    for child in box.children:
        check(child.stdout.readline().startswith(b"ready"), "a reader does not get ready")
    s = d.wait_status("some are counted as without a place", lambda s: s["self"]["lost"]["target_slots"] > 0 and s, 60)
    s = d.wait_status("all places are taken", lambda s: len(s["targets"]) == most and s, 60)
    s = d.wait_status("the rest is other", lambda s: count(s, "other") and s, 60)
    for child in list(box.children):
        box.end(child)
    box.reader("-i", "5000", "0", name="life-after")
    d.wait_status("a place is free again", lambda s: count(s, "life-after"), 60)
    d.stop()


if __name__ == "__main__":
    main([ports_of_one_process, ports_that_a_reload_moves, restarted_process_keeps_its_place, hundreds_of_short_lived_readers,
          late_comer_gets_the_place_of_one_that_goes, more_names_than_slots])
