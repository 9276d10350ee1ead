/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bpf_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "bpf/core.skel.h"
#include "bpf/drops.skel.h"
#include "bpf/media.skel.h"
#include "bpf/runq.skel.h"
#include "bpf/softirq.skel.h"

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static const void *object_bytes(enum fixture_object which, size_t *ret_size)
{
	switch (which) {
	case FIXTURE_RUNQ:
		return runq_bpf__elf_bytes(ret_size);
	case FIXTURE_SOFTIRQ:
		return softirq_bpf__elf_bytes(ret_size);
	case FIXTURE_DROPS:
		return drops_bpf__elf_bytes(ret_size);
	case FIXTURE_MEDIA:
		return media_bpf__elf_bytes(ret_size);
	}
	return NULL;
}

static bool listed(const char *const *programs, const char *name)
{
	for (; programs && *programs; programs++)
		if (!strcmp(*programs, name))
			return true;
	return false;
}

static void add(struct fixture *f, const void *bytes, size_t size, const char *const *programs)
{
	struct bpf_object *o = bpf_object__open_mem(bytes, size, NULL);
	struct bpf_program *p;
	struct bpf_map *m;

	cr_assert_not_null(o);
	cr_assert_lt(f->objects, FIXTURE_OBJECTS);
	bpf_object__for_each_program(p, o)
		bpf_program__set_autoload(p, listed(programs, bpf_program__name(p)));
	bpf_object__for_each_map(m, o) {
		struct bpf_map *shared = f->objects ? bpf_object__find_map_by_name(f->object[0], bpf_map__name(m)) : NULL;

		if (shared && !bpf_map__is_internal(m))
			cr_assert_eq(bpf_map__reuse_fd(m, bpf_map__fd(shared)), 0);
	}
	cr_assert_eq(bpf_object__load(o), 0, "load: %s", strerror(errno));
	f->object[f->objects++] = o;
}

static int cgroup2_root(void)
{
	char line[512], path[256], type[64];
	FILE *mounts = fopen("/proc/self/mounts", "re");
	int fd = -1;

	cr_assert_not_null(mounts);
	while (fd < 0 && fgets(line, sizeof(line), mounts))
		if (sscanf(line, "%*s %255s %63s", path, type) == 2 && !strcmp(type, "cgroup2"))
			fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fclose(mounts);
	return fd;
}

void fixture_open(struct fixture *f)
{
	size_t size;
	const void *bytes = core_bpf__elf_bytes(&size);

	*f = (struct fixture){ .cgroup_fd = -1 };
	if (geteuid())
		cr_skip_test("needs root: loads BPF programs");
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		cr_skip_test("this kernel has no BTF");
	libbpf_set_print(quiet);
	add(f, bytes, size, NULL);
	for (uint32_t row = 1; row < MAP_SOCKETS; row++)
		cr_assert_eq(bpf_map_update_elem(fixture_map(f, "free_sockets"), NULL, &row, 0), 0);
	f->cgroup_fd = cgroup2_root();
	if (f->cgroup_fd < 0)
		cr_skip_test("no cgroup2 is mounted");
}

void fixture_load(struct fixture *f, enum fixture_object which, const char *const *programs)
{
	size_t size = 0;
	const void *bytes = object_bytes(which, &size);

	add(f, bytes, size, programs);
}

struct bpf_program *fixture_program(const struct fixture *f, const char *name)
{
	for (unsigned int i = 0; i < f->objects; i++) {
		struct bpf_program *p = bpf_object__find_program_by_name(f->object[i], name);

		if (p)
			return p;
	}
	cr_assert_fail("no program %s", name);
	return NULL;
}

void fixture_attach(struct fixture *f, const char *program)
{
	struct bpf_program *p = fixture_program(f, program);
	struct bpf_link *l = bpf_program__type(p) == BPF_PROG_TYPE_CGROUP_SKB ? bpf_program__attach_cgroup(p, f->cgroup_fd)
									       : bpf_program__attach(p);

	cr_assert_not_null(l, "attach %s: %s", program, strerror(errno));
	f->link[f->links++] = l;
}

/* The kernel runs raw tracepoints on request, but not typed ones: the same instructions are loaded again as one. */
void fixture_run(struct fixture *f, const char *program, unsigned int cpu, uint64_t argument)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &argument, .ctx_size_in = sizeof(argument),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);
	const struct bpf_program *p = fixture_program(f, program);
	const int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, program, "GPL", bpf_program__insns(p),
				     bpf_program__insn_cnt(p), NULL);

	cr_assert_geq(fd, 0, "load %s: %s", program, strerror(errno));
	cr_assert_eq(bpf_prog_test_run_opts(fd, &opts), 0, "run %s: %s", program, strerror(errno));
	close(fd);
}

void fixture_close(struct fixture *f)
{
	while (f->links)
		bpf_link__destroy(f->link[--f->links]);
	while (f->objects)
		bpf_object__close(f->object[--f->objects]);
	if (f->cgroup_fd >= 0)
		close(f->cgroup_fd);
}

int fixture_map(const struct fixture *f, const char *name)
{
	for (unsigned int i = 0; i < f->objects; i++) {
		int fd = bpf_object__find_map_fd_by_name(f->object[i], name);

		if (fd >= 0)
			return fd;
	}
	cr_assert_fail("no map %s", name);
	return -1;
}

/* A per-CPU value of `words` 64-bit words, added up. */
static void summed(int fd, uint32_t key, size_t words, uint64_t *ret)
{
	const int cpus = libbpf_num_possible_cpus();
	uint64_t *all = calloc((size_t)cpus * words, sizeof(*all));

	cr_assert_not_null(all);
	cr_assert_eq(bpf_map_lookup_elem(fd, &key, all), 0);
	for (size_t w = 0; w < words; w++) {
		ret[w] = 0;
		for (int c = 0; c < cpus; c++)
			ret[w] += all[(size_t)c * words + w];
	}
	free(all);
}

uint64_t fixture_count(const struct fixture *f, uint32_t slot, enum map_count what)
{
	struct map_counts c;

	summed(fixture_map(f, "counts"), slot, MAP_COUNTS, (uint64_t *)c.n);
	return c.n[what];
}

void fixture_hist(const struct fixture *f, const char *map, uint32_t key, uint64_t ret_slot[HIST_SLOTS])
{
	summed(fixture_map(f, map), key, HIST_SLOTS, ret_slot);
}

uint64_t fixture_hist_count(const uint64_t slot[HIST_SLOTS])
{
	uint64_t n = 0;

	for (int i = 0; i < HIST_SLOTS; i++)
		n += slot[i];
	return n;
}

uint64_t fixture_hist_sum_ns(const uint64_t slot[HIST_SLOTS])
{
	uint64_t ns = 0;

	for (unsigned int i = 0; i < HIST_SLOTS; i++)
		ns += slot[i] * hist_midpoint(i);
	return ns;
}

uint64_t fixture_cookie(int socket_fd)
{
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);

	cr_assert_eq(getsockopt(socket_fd, SOL_SOCKET, SO_COOKIE, &cookie, &size), 0);
	return cookie;
}

uint32_t fixture_row(const struct fixture *f, int socket_fd)
{
	const uint64_t cookie = fixture_cookie(socket_fd);
	const int fd = fixture_map(f, "sockets");
	struct map_socket s;

	for (uint32_t row = 1; row < MAP_SOCKETS; row++)
		if (!bpf_map_lookup_elem(fd, &row, &s) && s.cookie == cookie)
			return row;
	return 0;
}

uint32_t fixture_own(const struct fixture *f, int socket_fd)
{
	const uint32_t row = fixture_row(f, socket_fd);
	const int fd = fixture_map(f, "sockets");
	struct map_socket s;

	cr_assert_neq(row, 0, "the socket has no row");
	cr_assert_eq(bpf_map_lookup_elem(fd, &row, &s), 0);
	s.target = FIXTURE_SLOT;
	cr_assert_eq(bpf_map_update_elem(fd, &row, &s, 0), 0);
	return row;
}

uint64_t fixture_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

int fixture_socket(int family, void *ret_address)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *a = family == AF_INET6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
	socklen_t size = family == AF_INET6 ? sizeof(six) : sizeof(four);
	const struct timeval deadline = { .tv_sec = 5 };
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, a, size), 0);
	cr_assert_eq(getsockname(fd, a, &size), 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)), 0);
	memcpy(ret_address, a, size);
	return fd;
}
