#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is missing is said once and plainly, with what is lost by it; the daemon goes on, and rule probe-missing fires."""
import os
import pwd
import re
import signal

from life import Skip, check, main, probe, rule_state, target

# as shipped, with a window that is full sooner
SHORT = 'rules = ( { name = "probe-missing"; when = "probes.missing[1s] > 0"; for = "1s"; clear_for = "1s"; } );\n'
SERVICE_CAPS = "+bpf,+perfmon,+net_admin"


def nobody():
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        raise Skip("no user nobody") from None


def without(*caps):
    """As root would be in a container that lacks them; CAP_SYS_ADMIN stands for them all and goes too."""
    return ("setpriv", "--bounding-set=" + ",".join("-" + c for c in ("sys_admin",) + caps))


def in_namespace(flags, commands):
    return ("unshare", *flags, "sh", "-c", 'mount --make-rprivate / 2>/dev/null; %s; exec "$@"' % commands, "sh")


def run(box, wrap, line, missing, perhaps=(), **kw):
    """Starts, is ready, says one line that matches, and misses these probes; the daemon and its status."""
    d = box.daemon(wrap=wrap, config=SHORT, **kw).ready()
    said = [text for text in d.log().splitlines() if re.search(line, text)]
    check(len(said) == 1, "%d lines match %r:\n%s" % (len(said), line, d.log()))
    s = d.status()
    got = {p["signal"] for p in s["probes"] if not p["attached"]}
    check(set(missing) <= got <= set(missing) | set(perhaps), "probes that are missing: %s; log:\n%s" % (sorted(got), d.log()))
    for p in s["probes"]:
        check(p["attached"] or p["reason"], "%s is missing without a reason" % p["signal"])
        check(p["attached"] or re.search(r"probe %s: .*(unseen|no dwell|told apart)|every signal of the kernel" % p["signal"], d.log()),
              "what is lost without %s is not said:\n%s" % (p["signal"], d.log()))
    s = d.wait_status("probe-missing fires", lambda s: rule_state(s, "probe-missing") == "firing" and s)
    check(s["verdict"] not in ("ok", "idle"), "verdict %s without %s" % (s["verdict"], sorted(got)))
    check(s["host"]["cpu"]["busy"] is not None, "the host's own signals are gone too")
    check(len(d.log().splitlines()) < 25, "too many words:\n" + d.log())
    return d, s


ALL = ("dwell", "runq", "softirq", "drops", "rtp")


def not_root(box):
    uid = nobody()
    d, s = run(box, ("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"),
               r"BPF: missing CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN$", ALL, uid=uid)
    check(len(re.findall("no probes at all", d.log())) == 1, d.log())
    check("memory is not locked" in d.log() and "nice stays" in d.log(), "what else is refused is not said:\n" + d.log())
    check(s["targets"][0]["signals"]["dwell"] is None, "dwell reads something")
    d.stop()


def as_the_service_runs(box):
    """An unprivileged user with the three capabilities: nothing is missing."""
    uid = nobody()
    child = box.reader("-i", "5000", "0", name="life-unpriv")
    d = box.daemon(wrap=("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--inh-caps=-all," + SERVICE_CAPS,
                         "--ambient-caps=-all," + SERVICE_CAPS, "--bounding-set=-all," + SERVICE_CAPS, "--no-new-privs"), uid=uid)
    d.ready()
    s = d.wait_status("the reader is found by its name", lambda s: target(s, "life-unpriv") and s)
    check(all(p["attached"] for p in s["probes"]), "missing: %r" % [p for p in s["probes"] if not p["attached"]])
    check(child.pid in target(s, "life-unpriv")["pids"], "pids %s" % target(s, "life-unpriv")["pids"])
    check("missing CAP" not in d.log(), d.log())
    d.stop()


def no_perfmon(box):
    d, _ = run(box, without("perfmon"), r"BPF: missing CAP_PERFMON$", ALL)
    d.stop()


def no_bpf(box):
    d, _ = run(box, without("bpf"), r"BPF: missing CAP_BPF$", ALL)
    d.stop()


def no_net_admin(box):
    """cgroup_skb programs are the network's: without them the last rungs have no begin."""
    d, s = run(box, without("net_admin"), r"BPF: missing CAP_NET_ADMIN$", ("rtp",), ("dwell",))
    check(probe(s, "softirq")["attached"] and probe(s, "runq")["attached"], "tracing is gone too")
    d.stop()


def no_btf(box):
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise Skip("this kernel has none anyway")
    d, _ = run(box, in_namespace(("-m",), "mount -t tmpfs none /sys/kernel/btf"), r"no kernel BTF in /sys/kernel/btf/vmlinux", ALL)
    d.stop()


def no_cgroup2(box):
    d, s = run(box, in_namespace(("-m",), "for m in $(awk '$3 == \"cgroup2\" { print $2 }' /proc/mounts); do umount -l $m; done"),
               r"no cgroup2 is mounted: rtp reads unknown", ("rtp",), ("dwell",))
    check("no cgroup2" in probe(s, "rtp")["reason"], "why: %r" % probe(s, "rtp"))
    d.stop()


def no_loopback(box):
    """No self-test packets: the probes are attached, and said to be unproven; none is taken that may measure nothing."""
    box.reader("-i", "5000", "0", name="life-outside")
    d = box.daemon(wrap=("unshare", "-n")).ready()
    s = d.wait_status("dwell of a reader elsewhere",
                      lambda s: ((target(s, "life-outside") or {}).get("signals", {}).get("dwell") or {}).get("count") and s)
    for p in s["probes"]:
        check("not proven" in (p["reason"] or ""), "%s: %r" % (p["signal"], p["reason"]))
    said = [text for text in d.log().splitlines() if "no loopback" in text and "warning" in text]
    check(len(said) == 1, "%d warnings of the missing loopback:\n%s" % (len(said), d.log()))
    d.stop()


def number_inside(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        return int(re.search(r"^NSpid:.*\s(\d+)$", f.read(), re.M).group(1))


def in_a_pid_namespace(box):
    """In a container with a pid namespace of its own: targets have the numbers that are known there."""
    inner = 'mount --make-rprivate / 2>/dev/null; "$0" -i 5000 0 & exec "$@"'
    program = box.path("bin", box.tagged("life-inside"))
    os.link(box.path("bin", "reader"), program)
    d = box.daemon(wrap=("unshare", "-pf", "--mount-proc", "--kill-child", "sh", "-c", inner, program))
    d.ready()
    with open("/proc/%d/task/%d/children" % (d.child.pid, d.child.pid), encoding="utf-8") as f:
        d.pid = int(f.read().split()[0])
    with open("/proc/%d/task/%d/children" % (d.pid, d.pid), encoding="utf-8") as f:
        inside = [number_inside(int(pid)) for pid in f.read().split()]
    s = d.wait_status("the reader in the namespace", lambda s: target(s, "life-inside") and target(s, "life-inside")["pids"] and s)
    pids = target(s, "life-inside")["pids"]
    check(s["self"]["pid"] == 1, "our own number there is %s" % s["self"]["pid"])
    check(pids == inside, "pids %s, but there it is %s" % (pids, inside))
    d.wait_status("its dwell", lambda s: (target(s, "life-inside")["signals"]["dwell"] or {}).get("count"))
    check(probe(s, "dwell")["attached"], "dwell: %r" % probe(s, "dwell"))
    os.kill(d.pid, signal.SIGTERM)
    d.wait_end()
    d.close()


if __name__ == "__main__":
    main([not_root, as_the_service_runs, no_perfmon, no_bpf, no_net_admin, no_btf, no_cgroup2, no_loopback, in_a_pid_namespace])
