/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define NICE (-10)	/* real-time would be better, but is refused in child cpu cgroups */

void service_ready(const char *status)
{
	sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void service_status(const char *status)
{
	static char last[256];	/* of this process's one manager */

	if (!strncmp(last, status, sizeof(last) - 1))
		return;
	snprintf(last, sizeof(last), "%s", status);
	sd_notifyf(0, "STATUS=%s", status);
}

void service_alive(void)
{
	sd_notify(0, "WATCHDOG=1");
}

void service_reloading(uint64_t now_us)
{
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)now_us);
}

void service_stopping(void)
{
	sd_notify(0, "STOPPING=1\nSTATUS=stopping");
}

void service_stay_alive(char *why, size_t size)
{
	struct rlimit limit;
	size_t n = 0;

	why[0] = '\0';
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);	/* tables are touched sparsely: huge pages would make all of them resident */
	/* with a limit, a later allocation would fail instead of this call */
	if (geteuid() != 0 && (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur != RLIM_INFINITY))
		n = (size_t)snprintf(why, size, "memory is not locked (LimitMEMLOCK is not infinity)");
	else if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0)
		n = (size_t)snprintf(why, size, "memory is not locked (%s)", strerror(errno));
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) > NICE && setpriority(PRIO_PROCESS, 0, NICE) < 0 && n < size)
		snprintf(why + n, size - n, "%snice stays at %d (%s)", n ? "; " : "", getpriority(PRIO_PROCESS, 0),
			 strerror(errno));
}
