/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a process is named: unit or executable, out of the texts of /proc; and which configured target fits best. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sense/process.h"

/* argv is "a\0b\0..." with its length. */
#define CMDLINE(text) (text), sizeof(text)

static struct process named(const char *cgroup, const char *exe, const char *cmdline, size_t n)
{
	struct process p = { 0 };

	process_cgroup(cgroup, &p);
	process_name(&p, exe, cmdline, n);
	return p;
}

static void expect_name(const char *cgroup, const char *exe, const char *name)
{
	const struct process p = named(cgroup, exe, "", 0);

	cr_expect_str_eq(p.name, name, "%s in %s is named \"%s\", expected \"%s\"", exe, cgroup, p.name, name);
}

static void expect_script(const char *exe, const char *cmdline, size_t n, const char *name)
{
	const struct process p = named("0::/\n", exe, cmdline, n);

	cr_expect_str_eq(p.name, name, "named \"%s\", expected \"%s\"", p.name, name);
}

Test(process, a_systemd_service_names_its_processes)
{
	expect_name("0::/system.slice/janus.service\n", "/usr/bin/janus", "janus.service");
	expect_name("0::/system.slice/system-turn.slice/turn@eu.service\n", "/usr/bin/turnserver", "turn@eu.service");
}

Test(process, hybrid_hosts_are_read_from_systemds_own_line)
{
	const struct process p = named("12:cpu,cpuacct:/other\n5:pids:/x.service\n1:name=systemd:/system.slice/janus.service\n"
				       "0::/system.slice/wrong.service\n", "/usr/bin/janus", "", 0);

	cr_expect_str_eq(p.unit, "janus.service");
	cr_expect_str_eq(p.cgroup, "/system.slice/janus.service");
	/* whichever comes first */
	cr_expect_str_eq(named("0::/system.slice/wrong.service\n1:name=systemd:/system.slice/janus.service\n", "/x", "", 0).unit,
			 "janus.service");
}

Test(process, a_host_without_systemd_goes_by_the_executable)
{
	const struct process p = named("4:cpu:/demo/sfu\n0::/demo/sfu\n", "/opt/demo/demo-sfu", "", 0);

	cr_expect_str_eq(p.unit, "");
	cr_expect_str_eq(p.cgroup, "/demo/sfu");
	cr_expect_str_eq(p.name, "demo-sfu");
	cr_expect_str_eq(named("", "/usr/bin/x", "", 0).cgroup, "/");
	cr_expect_str_eq(named("12:cpu:/only/v1\n", "/usr/bin/x", "", 0).cgroup, "/");
}

Test(process, generated_units_say_nothing_about_the_service)
{
	static const char *const cgroup[] = {
		"0::/system.slice/docker-0123456789abcdef.scope\n",
		"0::/machine.slice/libpod-0123456789abcdef.scope/container\n",
		"0::/machine.slice/libpod-0123456789abcdef.scope\n",
		"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12.slice/cri-containerd-ab.scope\n",
		"0::/kubepods.slice/kubepods-pod12.slice/crio-ab.scope\n",
		"1:name=systemd:/kubepods/burstable/pod12/0123456789abcdef\n",
		"1:name=systemd:/docker/0123456789abcdef\n",
		"0::/user.slice/user-1000.slice/session-3.scope\n",
		"0::/user.slice/user-1000.slice/user@1000.service\n",
		"0::/user.slice/user-1000.slice/user@1000.service/init.scope\n",
		"0::/user.slice/user-0.slice/user@0.service/app.slice/app-foot-123.scope\n",
		"0::/system.slice/run-r0123.scope\n",
		"0::/system.slice/run-u12.service\n",
		"0::/machine.slice/machine-box.scope\n",
		"0::/lxc.payload.box/.lxc\n",
		"0::/init.scope\n",
	};

	for (size_t i = 0; i < sizeof(cgroup) / sizeof(cgroup[0]); i++)
		expect_name(cgroup[i], "/usr/bin/janus", "janus");
}

Test(process, a_service_inside_counts_and_so_does_one_with_cgroups_of_its_own)
{
	expect_name("0::/user.slice/user-1000.slice/user@1000.service/app.slice/sfu.service\n", "/usr/bin/janus", "sfu.service");
	expect_name("0::/machine.slice/systemd-nspawn@box.service/payload/system.slice/sfu.service\n", "/usr/bin/janus",
		    "sfu.service");
	expect_name("0::/system.slice/sfu.service/workers/7\n", "/usr/bin/janus", "sfu.service");
	expect_name("0::/system.slice/sfu.service/\n", "/usr/bin/janus", "sfu.service");
	/* no unit by these names */
	expect_name("0::/system.slice/.service\n", "/usr/bin/janus", "janus");
	expect_name("0::/x.services/y.serviceable\n", "/usr/bin/janus", "janus");
}

Test(process, a_deleted_executable_keeps_its_name)
{
	expect_name("0::/\n", "/usr/sbin/turnserver (deleted)", "turnserver");
	expect_name("0::/\n", " (deleted)", "__deleted_");
}

Test(process, without_a_readable_executable_the_command_line_tells)
{
	expect_script("", CMDLINE("/usr/bin/janus\0-F\0/etc"), "janus");
	expect_script("", CMDLINE("janus: worker 3"), "janus:_worker_3");
	expect_script("", "", 0, "unknown");
}

Test(process, interpreters_are_named_with_their_script)
{
	expect_script("/usr/bin/python3.11", CMDLINE("python3\0-u\0/srv/app/echo.py\0--port\0005000"), "python3.11:echo.py");
	expect_script("/usr/bin/python3.11", CMDLINE("python3\0-X\0dev\0-m\0sip.server"), "python3.11:sip.server");
	expect_script("/usr/bin/node", CMDLINE("node\0--inspect\0-r\0dotenv\0/srv/sfu/index.js"), "node:index.js");
	expect_script("/usr/bin/node", CMDLINE("node\0--require\0dotenv\0/srv/sfu/index.js"), "node:index.js");
	expect_script("/usr/lib/jvm/bin/java", CMDLINE("java\0-Xmx1g\0-jar\0/opt/jvb/jitsi-videobridge.jar\0--apis=none"),
		      "java:jitsi-videobridge.jar");
	expect_script("/usr/lib/jvm/bin/java", CMDLINE("java\0-cp\0a.jar:b.jar\0-Dx=y\0org.jitsi.Main"), "java:org.jitsi.Main");
	expect_script("/usr/lib/jvm/bin/java", CMDLINE("java\0--module-path\0/opt/m\0-m\0org.jitsi/Main"), "java:Main");
	/* one program of many: its arguments are nobody's name */
	expect_script("/usr/bin/janus", CMDLINE("janus\0/etc/janus.jcfg"), "janus");
}

Test(process, code_on_the_command_line_is_no_script)
{
	expect_script("/usr/bin/python3.11", CMDLINE("python3\0-c\0import socket; open('/tmp/x')"), "python3.11");
	expect_script("/usr/bin/perl", CMDLINE("perl\0-e\0while (1) { }"), "perl");
	expect_script("/usr/bin/node", CMDLINE("node\0--eval\0while (1);"), "node");
	expect_script("/usr/bin/python3.11", CMDLINE("python3\0-uc\0import socket"), "python3.11");
	expect_script("/usr/bin/python3.11", CMDLINE("python3"), "python3.11");
	expect_script("/usr/bin/python3.11", CMDLINE("python3\0\0x"), "python3.11");
	expect_script("/usr/bin/python3.11", CMDLINE("python3\0-X"), "python3.11");
}

static void expect_clean(const char *s)
{
	for (; *s; s++)
		cr_expect(isalnum((unsigned char)*s) || strchr("._:@-\\", *s), "byte %02x in a name", (unsigned char)*s);
}

Test(process, hostile_bytes_become_underscores)
{
	static const char hostile[] = "/tmp/\033[2J\n$(reboot)`x`\"'<é\xff>";
	struct process p = named("0::/system.slice/\033[31m;rm -rf.service\n", "/usr/bin/x", "", 0);

	cr_expect_str_eq(p.unit, "__31m_rm_-rf.service");
	expect_clean(p.name);
	p = named("0::/\n", hostile, "", 0);
	expect_clean(p.name);
	expect_clean(p.program);
	cr_expect_gt(strlen(p.program), 10U);
	p = named("0::/\n", "/usr/bin/python3", CMDLINE("python3\0/tmp/\033]0;x\a \xff.py"));
	expect_clean(p.name);
	/* an escaped unit name is left as systemd writes it */
	cr_expect_str_eq(named("0::/system.slice/a\\x2db.service\n", "/x", "", 0).name, "a\\x2db.service");
}

Test(process, texts_longer_than_their_place_are_cut)
{
	char cgroup[3000] = "0::/", long_name[1200];
	struct process p;

	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	snprintf(cgroup + 4, sizeof(cgroup) - 4, "system.slice/%s.service\n", long_name);
	p = named(cgroup, "/usr/bin/x", "", 0);
	cr_expect_lt(strlen(p.cgroup), sizeof(p.cgroup));
	cr_expect_lt(strlen(p.unit), sizeof(p.unit));
	p = named("0::/\n", long_name, "", 0);
	cr_expect_lt(strlen(p.program), sizeof(p.program));
	cr_expect_lt(strlen(p.name), sizeof(p.name));
	p = named("0:\n:\n::\n\n1:2\nx", "/usr/bin/x", "", 0);
	cr_expect_str_eq(p.cgroup, "/");
}

static void put(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	cr_assert(f && fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

Test(process, read_from_a_proc_of_our_own)
{
	char root[] = "/tmp/process.XXXXXX", path[300];
	struct process p;

	cr_assert(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/42", root);
	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/42/cgroup", root);
	put(path, "0::/system.slice/docker-ab.scope\n", 33);
	snprintf(path, sizeof(path), "%s/42/exe", root);
	cr_assert_eq(symlink("/usr/bin/node (deleted)", path), 0);
	snprintf(path, sizeof(path), "%s/42/cmdline", root);
	put(path, "node\0/srv/sfu.js", 17);
	cr_assert_eq(process_read(root, 42, &p), 0);
	cr_expect_str_eq(p.name, "node:sfu.js");
	cr_expect(p.unit_generated);
	cr_expect_eq(process_read(root, 43, &p), -ESRCH);
	for (const char *const *name = (const char *const []){ "cgroup", "exe", "cmdline", NULL }; *name; name++) {
		snprintf(path, sizeof(path), "%s/42/%s", root, *name);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/42", root);
	cr_expect_eq(rmdir(path), 0);
	cr_expect_eq(rmdir(root), 0);
}

Test(process, the_most_specific_match_wins)
{
	const struct process p = named("0::/system.slice/janus.service/workers\n", "/usr/bin/janus", "", 0);
	const struct { struct model_match match; unsigned int rank; } row[] = {
		{ { .cgroup = "/system.slice" }, 1 },
		{ { .cgroup = "/system.slice/" }, 1 },
		{ { .cgroup = "/system.slice/janus*" }, 1 },
		{ { .cgroup = "/" }, 1 },
		{ { .cgroup = "/system" }, 0 },
		{ { .unit = "janus.service" }, 2 },
		{ { .unit = "jan*" }, 2 },
		{ { .unit = "janus" }, 0 },
		{ { .unit = "janus.service", .cgroup = "/system.slice" }, 3 },
		{ { .unit = "janus.service", .cgroup = "/user.slice" }, 0 },
		{ { .process = "janus" }, 4 },
		{ { .process = "janu?" }, 4 },
		{ { .process = "janus", .unit = "other.service" }, 0 },
		{ { .process = "janus", .unit = "janus.service", .cgroup = "/system.slice" }, 7 },
		{ { .port_low = 5000, .port_high = 5000 }, 8 },
		{ { .port_low = 5000, .port_high = 5000, .process = "janus" }, 12 },
		{ { .port_low = 5000, .port_high = 5000, .process = "turnserver" }, 0 },
		{ { .cgroup = "" }, 0 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		cr_expect_eq(process_match(&p, &row[i].match), row[i].rank, "row %zu: %u, expected %u", i,
			     process_match(&p, &row[i].match), row[i].rank);
}

Test(process, an_escaped_unit_name_matches_as_it_is_written)
{
	const struct process p = named("0::/system.slice/a\\x2db.service\n", "/usr/bin/x", "", 0);

	cr_expect_eq(process_match(&p, &(struct model_match){ .unit = "a\\x2db.service" }), 2U);
	cr_expect_eq(process_match(&p, &(struct model_match){ .unit = "a-b.service" }), 0U);
}
