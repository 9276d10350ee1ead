/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host_paths.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INITIAL_PIDNS_INO 0xEFFFFFFCU	/* PROC_PID_INIT_INO, fixed in the kernel's proc_ns.h */

int host_cgroup2_root(char *buf, size_t size)
{
	char line[1024], point[512], type[64];
	FILE *f = fopen("/proc/self/mountinfo", "re");
	int r = -ENOENT;

	if (!f)
		return -errno;
	while (r < 0 && fgets(line, sizeof(line), f)) {
		const char *dash = strstr(line, " - ");

		if (!dash || sscanf(line, "%*s %*s %*s %*s %511s", point) != 1 || sscanf(dash + 3, "%63s", type) != 1)
			continue;
		if (!strcmp(type, "cgroup2") && (size_t)snprintf(buf, size, "%s", point) < size)
			r = 0;
	}
	fclose(f);
	return r;
}

bool host_initial_pidns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == INITIAL_PIDNS_INO;
}

bool host_bpf_missing(char *buf, size_t size)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };
	static const struct { int bit; const char *name; } need[] = {
		{ CAP_BPF, "CAP_BPF" }, { CAP_PERFMON, "CAP_PERFMON" }, { CAP_NET_ADMIN, "CAP_NET_ADMIN" }
	};
	size_t n = 0;

	buf[0] = '\0';
	if (syscall(SYS_capget, &head, caps) == 0 &&
	    !(caps[CAP_SYS_ADMIN / 32].effective & 1U << CAP_SYS_ADMIN % 32))
		for (size_t i = 0; i < sizeof(need) / sizeof(need[0]); i++)
			if (!(caps[need[i].bit / 32].effective & 1U << need[i].bit % 32) && n < size)
				n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "missing ", need[i].name);
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0 && n < size)
		n += (size_t)snprintf(buf + n, size - n, "%sno kernel BTF in /sys/kernel/btf/vmlinux", n ? "; " : "");
	return n > 0;
}
