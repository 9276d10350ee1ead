/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "service.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NICE (-10)	/* real-time would be better, but is refused in child cpu cgroups */

/* sd_notify() waits for a manager that does not read, and a tick may not: what can't be sent now is kept, newest STATUS
 * only, and sent before what comes next. WATCHDOG=1 is not kept: it says that we are alive now. */
#define KEPT_MAX 8
static struct { char kept[KEPT_MAX][320]; unsigned int count; char status[256]; } manager;	/* of this process */

/* False when the manager's queue is full. Any other failure is as if there were none. */
static bool send_now(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const size_t n = path ? strlen(path) : 0;
	ssize_t r;
	int fd;

	if (n < 2 || n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return true;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return true;
	r = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	r = r < 0 && (errno == EAGAIN || errno == ENOBUFS) ? -1 : 0;
	close(fd);
	return r == 0;
}

static bool send_kept(void)
{
	unsigned int sent = 0;

	while (sent < manager.count && send_now(manager.kept[sent]))
		sent++;
	manager.count -= sent;
	memmove(manager.kept, manager.kept[sent], manager.count * sizeof(manager.kept[0]));
	return manager.count == 0;
}

static void keep(const char *text)
{
	const char *newest = manager.count ? manager.kept[manager.count - 1] : "";

	if (!strncmp(newest, "STATUS=", 7) && !strncmp(text, "STATUS=", 7))
		manager.count--;
	if (manager.count == KEPT_MAX) {	/* an old reload that nobody heard of */
		manager.count--;
		memmove(manager.kept, manager.kept[1], manager.count * sizeof(manager.kept[0]));
	}
	snprintf(manager.kept[manager.count++], sizeof(manager.kept[0]), "%s", text);
}

__attribute__((format(printf, 1, 2)))
static void tell(const char *format, ...)
{
	char text[sizeof(manager.kept[0])];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!send_kept() || !send_now(text))
		keep(text);
}

void service_ready(const char *status)
{
	snprintf(manager.status, sizeof(manager.status), "%s", status);
	tell("READY=1\nSTATUS=%s", manager.status);
}

void service_status(const char *status)
{
	if (!strncmp(manager.status, status, sizeof(manager.status) - 1))
		return;
	snprintf(manager.status, sizeof(manager.status), "%s", status);
	tell("STATUS=%s", manager.status);
}

void service_alive(void)
{
	if (send_kept())
		send_now("WATCHDOG=1");
}

void service_reloading(uint64_t now_us)
{
	tell("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)now_us);
}

void service_stopping(void)
{
	tell("STOPPING=1\nSTATUS=stopping");
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
