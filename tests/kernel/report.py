#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""report.py - what the guests' consoles say, as one row per kernel, signal and rung.

usage: report.py [--markdown] [--skipped FILE] [KERNEL CONSOLE]...
A rung that the kernel cannot have passes when the program said why and did not take it; one that it should have and has not
fails. Ends with "N passed, N failed, N skipped"; exit status 1 if anything failed."""
import re
import sys

STALL_US = 20000 * (1 - 0.016)  # a histogram gives the middle of its slot, 3.2 % wide


def version(release):
    return tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", release).groups())


def impossible(release, signal, rung):
    """Why this kernel cannot have it, or None."""
    v = version(release)
    table = {
        ("dwell", "consume"): (v >= (6, 18), "frees are deferred since 6.18"),
        ("dwell", "fifo"): (v < (6, 3), "sock_recv_length came with 6.3"),
        ("runq", "wakeup"): (v < (5, 12), "no task storage before 5.12"),
        ("drops", "reasons"): (v < (6, 11), "kfree_skb names no receiver before 6.11"),
    }
    cannot, why = table.get((signal, rung), (False, None))
    return why if cannot else None


class Job:
    def __init__(self, name):
        self.name, self.status, self.lines, self.probe = name, None, [], {}

    def add(self, line):
        m = re.match(r"\s+probe (\S+)\s+rung (\S+)\s+(exact|inexact) ?(.*)", line)
        if m:
            self.probe[m[1]] = (m[2], m[3] == "exact", m[4])
        self.lines.append(line)

    def cases(self, signal):
        """(name, passed, the whole line) of one signal; a job for dwell has only its cases."""
        for line in self.lines:
            m = re.match(r"(ok    |NOT OK) (.*)", line)
            if m and (signal == "dwell" or m[2].split(":")[0].split()[0] == signal):
                yield m[2].split(": ")[0], m[1].startswith("ok"), line

    def skips(self):
        return [l for l in self.lines if l.startswith("skip")]


class Guest:
    def __init__(self, label, path):
        self.label, self.release, self.jobs, self.done, self.tail = label, "", [], False, []
        job = None
        for raw in open(path, errors="replace"):
            line = raw.replace("\r", "").rstrip("\n")
            self.tail = (self.tail + [line])[-8:]
            word = line.split()
            if line.startswith("@ kernel"):
                self.release = word[2]
            elif line.startswith("@ begin"):
                job = Job(word[2])
                self.jobs.append(job)
            elif line.startswith("@ end") and job:
                job.status, job = int(word[3]), None
            elif line.startswith("@ done"):
                self.done = True
            elif job:
                job.add(line)


class Row:
    def __init__(self, guest, signal, rung):
        self.kernel, self.release, self.signal, self.rung = guest.label, guest.release, signal, rung
        self.attached = self.exact = False
        self.passed = self.failed = self.skipped = 0
        self.error, self.note, self.bad = "", "", []

    def fail(self, text):
        self.failed += 1
        self.bad.append(text)


def reason_of(text, rung):
    m = re.search(r"(?:^|; )%s: (.*?)(?=; \w+: |$)" % re.escape(rung), text)
    return m[1] if m and m[1] != "not asked for" else ""


def absent(row, reason):
    """The rung was not taken: right only where the kernel cannot have it and the program says why."""
    why = impossible(row.release, row.signal, row.rung)
    row.note = reason
    if not why:
        row.fail("not attached: " + (reason or "no reason given"))
    elif not reason:
        row.fail("no reason given, though this kernel cannot have it: " + why)
    else:
        row.passed += 1
        row.note = "as expected: " + reason


def errors(job):
    worst = 0.0, ""
    for line in job.lines:
        m = re.search(r"own p50\s+([\d.]+).*error p50\s+([-+][\d.]+)", line)
        if m and abs(float(m[2])) > worst[0]:
            worst = abs(float(m[2])), "%.2f ms of %.1f" % (abs(float(m[2])) / 1000, float(m[1]) / 1000)
    return worst[1]


def stall(row, job):
    for line in job.lines:
        m = re.search(r"recv, stall 20 ms .*bpf p50.*max\s+([\d.]+) us", line)
        if m and float(m[1]) < STALL_US:
            row.fail("a stall of 20 ms was measured as %s us at most" % m[1])
            return


def measured(row, job, signal):
    cases = list(job.cases(signal))
    for name, good, line in cases:
        if good:
            row.passed += 1
        else:
            row.fail(line)
    if not cases:
        row.fail("no case ran (status %s)" % job.status)
    if job.status not in (0, 1, 77):
        row.fail("ended with status %s" % job.status)


def row_of(guest, job, signal, rung):
    taken, exact, reason = job.probe.get(signal, ("none", False, "the job ended before it told (status %s)" % job.status))
    row = Row(guest, signal, rung)
    row.attached, row.exact = taken == rung, taken == rung and exact
    if not row.attached:
        absent(row, reason_of(reason, rung))
        return row
    why = impossible(row.release, signal, rung)
    if why:
        row.fail("attached, though it cannot measure here: " + why)
    row.note = reason_of(reason, rung)
    measured(row, job, signal)
    if signal == "dwell":
        row.error = errors(job)
        row.skipped = len(job.skips())
        stall(row, job)
    return row


def rows_of(guest):
    rows = []
    for job in guest.jobs:
        if "=" in job.name:
            signal, rung = job.name.split("=")
            rows.append(row_of(guest, job, signal, rung))
            continue
        for signal, rung in (("runq", "wakeup"), ("softirq", "tracepoint"), ("drops", "reasons"), ("rtp", "cgroup_skb")):
            rows.append(row_of(guest, job, signal, rung))
    if not guest.done:
        row = Row(guest, "boot", "-")
        row.fail("the guest did not come to its end; its last lines:\n      " + "\n      ".join(guest.tail))
        rows.append(row)
    return rows


def cells(r):
    attached = "yes" if r.attached else "no"
    exact = "" if not r.attached else "yes" if r.exact else "no"
    total = r.passed + r.failed
    if not r.attached and not r.failed:
        count = "-"
    else:
        count = "%d/%d" % (r.passed, total)
    return [r.release or r.kernel, r.signal, r.rung, attached, exact, count, r.error, r.note]


HEAD = ["kernel", "signal", "rung", "attached", "exact", "cases", "worst p50 error", "note"]


def markdown(rows):
    print("| %s |\n|%s" % (" | ".join(HEAD), "---|" * len(HEAD)))
    for r in rows:
        print("| %s |" % " | ".join(c.replace("|", "\\|") for c in cells(r)))


def table(rows):
    lines = [HEAD] + [cells(r) for r in rows]
    width = [max(len(l[i]) for l in lines) for i in range(len(HEAD) - 1)]
    for l in lines:
        print("   " + "  ".join([c.ljust(w) for c, w in zip(l, width)] + [l[-1][:100]]).rstrip())


def main():
    args, as_markdown, skipped, rows = sys.argv[1:], False, [], []
    while args and args[0].startswith("--"):
        word = args.pop(0)
        if word == "--markdown":
            as_markdown = True
        else:
            skipped = open(args.pop(0)).read().splitlines()
    while args:
        rows += rows_of(Guest(args.pop(0), args.pop(0)))
    for r in rows:
        for text in r.bad:
            print("   NOT OK %s %s=%s: %s" % (r.kernel, r.signal, r.rung, text))
    table(rows)
    for s in skipped:
        print("   skip: kernel " + s.replace("skip ", "", 1))
    if as_markdown:
        markdown(rows)
    failed = sum(r.failed for r in rows)
    print("%d passed, %d failed, %d skipped" % (sum(r.passed for r in rows), failed, sum(r.skipped for r in rows) + len(skipped)))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
