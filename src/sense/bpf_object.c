/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bpf_object.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

/* libbpf's print hook has no user data: the last failure's words pass through here, between load and its error. */
static char last_words[200];

/* The verifier's log is one long message after the one that names the program; the line before its statistics says why. */
#define VERIFIER_LOG "libbpf: prog '%s': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n"

static void add_verdict(va_list args)
{
	const char *log, *end, *line;
	size_t n = strlen(last_words);

	(void)va_arg(args, const char *);	/* the program, which the message before has named */
	log = va_arg(args, const char *);
	end = strstr(log, "\nprocessed ");
	if (!end)
		return;
	for (line = end; line > log && line[-1] != '\n'; line--)
		;
	snprintf(last_words + n, sizeof(last_words) - n, "%s%.*s", n ? ": " : "", (int)(end - line), line);
}

static int keep_words(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[400], *end;
	size_t n;

	if (level != LIBBPF_WARN)
		return 0;
	if (!strcmp(format, VERIFIER_LOG)) {
		add_verdict(args);
		return 0;
	}
	vsnprintf(line, sizeof(line), format, args);
	if (strstr(line, "BEGIN PROG LOAD LOG") || last_words[0])
		return 0;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	n = strncmp(line, "libbpf: ", 8) ? 0 : 8;
	snprintf(last_words, sizeof(last_words), "%.190s", line + n);
	return 0;
}

static void words_begin(void)
{
	last_words[0] = '\0';
	libbpf_set_print(keep_words);
}

/* Refused is refused: libbpf then talks of memlock limits, which is no help. */
static void words_end(int error, char *why, size_t size)
{
	if (error == -EPERM)
		snprintf(why, size, "the kernel refuses it (%s)", strerror(EPERM));
	else if (last_words[0])
		snprintf(why, size, "%s", last_words);
	else
		snprintf(why, size, "%s", strerror(-error));
}

int bpf_part_open(const void *bytes, size_t size, const char *name, struct bpf_part *ret)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = name);
	struct bpf_object *o;

	words_begin();
	o = bpf_object__open_mem(bytes, size, &opts);
	if (!o)
		return -errno;
	*ret = (struct bpf_part){ .object = o };
	return 0;
}

/* Where a constant lies in .rodata is in the object's own BTF. */
static void constant_set(const struct bpf_part *p, const char *name, const void *value, size_t size)
{
	const struct btf *btf = bpf_object__btf(p->object);
	struct bpf_map *map = NULL, *m;
	const struct btf_type *sec;
	char *data;
	size_t data_size = 0;
	int id;

	bpf_object__for_each_map(m, p->object)
		if (bpf_map__type(m) == BPF_MAP_TYPE_ARRAY && strstr(bpf_map__name(m), ".rodata"))
			map = m;
	id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -1;
	if (!map || id < 0)
		return;
	data = (char *)bpf_map__initial_value(map, &data_size);
	sec = btf__type_by_id(btf, (__u32)id);
	for (int i = 0; data && i < btf_vlen(sec); i++) {
		const struct btf_var_secinfo *v = btf_var_secinfos(sec) + i;
		const struct btf_type *t = btf__type_by_id(btf, v->type);

		if (!strcmp(btf__name_by_offset(btf, t->name_off), name) && v->size == size &&
		    v->offset + v->size <= data_size)
			memcpy(data + v->offset, value, size);
	}
}

void bpf_part_constants(const struct bpf_part *p, const struct bpf_constants *c)
{
	constant_set(p, "cfg_sock_hash", &c->sock_hash, sizeof(c->sock_hash));
	constant_set(p, "cfg_task_hash", &c->task_hash, sizeof(c->task_hash));
	constant_set(p, "cfg_pidns", &c->pidns, sizeof(c->pidns));
	constant_set(p, "cfg_slots", &c->slots, sizeof(c->slots));
}

static bool listed(const char *const *programs, const char *name)
{
	for (; *programs; programs++)
		if (!strcmp(*programs, name))
			return true;
	return false;
}

int bpf_part_load(struct bpf_part *p, const char *const *programs, const struct bpf_part *core, char *why, size_t why_size)
{
	struct bpf_program *prog;
	struct bpf_map *m, *shared;
	int r = 0;

	bpf_object__for_each_program(prog, p->object)
		bpf_program__set_autoload(prog, listed(programs, bpf_program__name(prog)));
	if (core) {
		bpf_object__for_each_map(m, p->object) {
			shared = bpf_object__find_map_by_name(core->object, bpf_map__name(m));
			if (!shared || strchr(bpf_map__name(m), '.'))
				continue;
			if (bpf_map__fd(shared) >= 0)
				r = bpf_map__reuse_fd(m, bpf_map__fd(shared));
			else
				r = bpf_map__set_autocreate(m, false);
			if (r < 0)
				break;
		}
	}
	words_begin();
	if (!r)
		r = bpf_object__load(p->object);
	if (r < 0)
		words_end(r, why, why_size);
	return r;
}

static struct bpf_link *attach_one(const struct bpf_program *prog, int cgroup_fd)
{
	enum bpf_prog_type type = bpf_program__type(prog);

	if (type == BPF_PROG_TYPE_CGROUP_SKB || type == BPF_PROG_TYPE_CGROUP_SOCK) {
		if (cgroup_fd < 0) {
			errno = ENOENT;
			snprintf(last_words, sizeof(last_words), "no cgroup2 is mounted");
			return NULL;
		}
		return bpf_program__attach_cgroup(prog, cgroup_fd);
	}
	if (!strncmp(bpf_program__section_name(prog), "?iter/", 6) ||
	    !strncmp(bpf_program__section_name(prog), "iter/", 5))
		return bpf_program__attach_iter(prog, NULL);
	return bpf_program__attach(prog);
}

int bpf_part_attach(struct bpf_part *p, const char *const *programs, int cgroup_fd, char *why, size_t why_size)
{
	const struct bpf_program *prog;
	struct bpf_link *link;
	size_t n = 0;
	int r;

	/* from the last to the first: ends before begins, or a datagram that entered between the two would never leave */
	words_begin();
	while (programs[n])
		n++;
	while (n--) {
		prog = bpf_object__find_program_by_name(p->object, programs[n]);
		errno = 0;
		link = prog && p->link_count < BPF_PART_LINKS ? attach_one(prog, cgroup_fd) : NULL;
		if (!link) {
			r = errno ? -errno : -ENOENT;
			words_end(r, why, why_size);
			bpf_part_detach(p);
			return r;
		}
		p->link[p->link_count++] = link;
	}
	return 0;
}

void bpf_part_detach(struct bpf_part *p)
{
	while (p->link_count)
		bpf_link__destroy(p->link[--p->link_count]);
}

void bpf_part_drop(struct bpf_part *p)
{
	bpf_part_detach(p);
	bpf_object__close(p->object);
	*p = (struct bpf_part){ 0 };
}

int bpf_part_map(const struct bpf_part *p, const char *name)
{
	int fd = p->object ? bpf_object__find_map_fd_by_name(p->object, name) : -1;

	return fd < 0 ? -ENOENT : fd;
}

unsigned long long bpf_part_bytes(const struct bpf_part *p, unsigned int cpus, const struct bpf_part *core)
{
	unsigned long long sum = 0, value;
	struct bpf_map *m;

	if (!p->object)
		return 0;
	bpf_object__for_each_map(m, p->object) {
		if (bpf_map__fd(m) < 0 || (core && bpf_object__find_map_by_name(core->object, bpf_map__name(m))))
			continue;
		value = bpf_map__value_size(m);
		switch (bpf_map__type(m)) {
		case BPF_MAP_TYPE_PERCPU_ARRAY:
			sum += bpf_map__max_entries(m) * ((value + 7) / 8 * 8) * cpus;
			break;
		case BPF_MAP_TYPE_SK_STORAGE:
		case BPF_MAP_TYPE_TASK_STORAGE:
			break;	/* charged to each socket or task that has one */
		case BPF_MAP_TYPE_RINGBUF:
			sum += bpf_map__max_entries(m);
			break;
		case BPF_MAP_TYPE_HASH:
			sum += bpf_map__max_entries(m) * (value + bpf_map__key_size(m) + 48);
			break;
		default:
			sum += bpf_map__max_entries(m) * value;
		}
	}
	return sum;
}
