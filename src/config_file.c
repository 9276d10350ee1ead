/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_sections.h"
#include "config_syntax.h"
#include "config_file.h"

#define FILE_BYTES_MAX (1 << 20)

static const char builtin_text[] =
#include "builtin.inc"
	;

/* The whole file, 0-terminated, malloc'ed; or NULL with the reason in *d and errno's negative in *ret_error.
 */
static char *file_load(const char *path, struct diag *d, size_t *ret_size, int *ret_error)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char *text = NULL;
	size_t size = 0;
	ssize_t got = 1;

	*ret_error = -EINVAL;
	if (fd < 0) {
		*ret_error = errno == ENOENT ? -ENOENT : -EINVAL;
		diag_add(d, path, 0, "can't be read: %s", strerror(errno));
		return NULL;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		diag_add(d, path, 0, "not a regular file");
	else if (st.st_size > FILE_BYTES_MAX)
		diag_add(d, path, 0, "larger than 1 MiB: surely not a configuration file");
	else
		text = malloc(FILE_BYTES_MAX + 1);
	/* it may grow while we read: never past the buffer */
	while (text && size < FILE_BYTES_MAX && (got = read(fd, text + size, FILE_BYTES_MAX - size)) > 0)
		size += (size_t)got;
	if (text && got < 0) {
		diag_add(d, path, 0, "can't be read: %s", strerror(errno));
		free(text);
		text = NULL;
	}
	close(fd);
	if (!text)
		return NULL;
	text[size] = '\0';
	*ret_size = size;
	return text;
}

/* One file's text to one more source of the tree. */
static int source_add(struct config_tree *t, const char *path, const char *text, size_t size)
{
	struct config_source *s = &t->source[t->count];
	char line[128];

	snprintf(s->path, sizeof(s->path), "%s", path);
	s->file = (uint8_t)(t->count + 1);
	s->told_count = 0;
	if (config_syntax_check(text, size, s, t->d) < 0) {
		t->broken = true;
		return -EINVAL;
	}
	config_init(&s->cfg);
	if (!config_read_string(&s->cfg, text)) {
		const int at = config_error_line(&s->cfg);

		config_syntax_line(text, (unsigned int)at, line, sizeof(line));
		diag_add(t->d, path, (unsigned int)at, "%s, at or before: %s", config_error_text(&s->cfg),
			 line);
		config_destroy(&s->cfg);
		t->broken = true;
		return -EINVAL;
	}
	t->count++;
	return 0;
}

static int file_add(struct config_tree *t, const char *path)
{
	size_t size;
	int r;
	char *text;

	if (t->count == MODEL_FILES) {
		t->broken = true;
		return diag_add(t->d, path, 0, "more than %d files", MODEL_FILES - 1);
	}
	text = file_load(path, t->d, &size, &r);
	if (!text) {
		t->broken = true;
		return r;
	}
	r = source_add(t, path, text, size);
	free(text);
	return r;
}

static int is_conf(const struct dirent *e)
{
	const size_t n = strlen(e->d_name);

	return n > 5 && e->d_name[0] != '.' && strcmp(e->d_name + n - 5, ".conf") == 0;
}

/* Not alphasort(): that follows the locale. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int directory_add(struct config_tree *t, const char *dir)
{
	struct dirent **list;
	char path[MODEL_PATH];
	int n, worst = 0, r;

	if (snprintf(path, sizeof(path), "%s/dwelld.conf", dir) >= (int)sizeof(path) - 16)
		return diag_add(t->d, NULL, 0, "%.60s...: path too long", dir);
	/* none: the built-ins rule, and nothing acts */
	if (access(path, F_OK) == 0 || errno != ENOENT)
		worst = file_add(t, path);
	snprintf(path, sizeof(path), "%s/conf.d", dir);
	n = scandir(path, &list, is_conf, by_bytes);
	if (n < 0) {
		if (errno == ENOENT)
			return worst;
		t->broken = true;
		return diag_add(t->d, path, 0, "can't be read: %s", strerror(errno));
	}
	for (int i = 0; i < n; i++) {
		if (snprintf(path, sizeof(path), "%s/conf.d/%s", dir, list[i]->d_name) >= (int)sizeof(path))
			r = diag_add(t->d, NULL, 0, "%.60s.../conf.d/%.80s: path too long", dir,
				     list[i]->d_name);
		else
			r = file_add(t, path);
		worst = r < 0 ? r : worst;
		free(list[i]);
	}
	free(list);
	return worst;
}

static void tree_free(struct config_tree *t)
{
	if (!t)
		return;
	for (unsigned int i = 0; i < t->count; i++)
		config_destroy(&t->source[i].cfg);
	free(t);
}

static int tree_read(const char *path, const char *dir, struct diag *d, struct config_tree **ret)
{
	struct config_tree *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->d = d;
	r = source_add(t, "built-in", builtin_text, sizeof(builtin_text) - 1);
	if (r == 0) {
		t->source[0].builtin = true;
		r = path ? file_add(t, path) : directory_add(t, dir ? dir : CONFIG_ETC);
	}
	*ret = t;
	return r;
}

/* Three sections and a model are too large for a stack. */
struct reader {
	struct config_section targets, hooks, rules;
	struct model m;
};

static void model_begin(const struct config_tree *t, struct model *m)
{
	m->tick_ns = 250000000;
	for (unsigned int i = 0; i < t->count; i++)
		snprintf(m->file[i], sizeof(m->file[i]), "%s", t->source[i].path);
	m->file_count = (uint8_t)t->count;
}

/* FNV-1a of the text without comments: the same rules from other files are the same configuration. */
static int hash(struct model *m)
{
	uint64_t h = 0xcbf29ce484222325ULL;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	config_write_model(m, false, out);
	fclose(out);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3ULL;
	free(text);
	snprintf(m->hash, sizeof(m->hash), "%016llx", (unsigned long long)h);
	return 0;
}

static int model_read(struct config_tree *t, struct reader *r)
{
	const struct config_names names = {&r->targets, &r->hooks, &r->rules};
	bool builtin_rules = true;

	model_begin(t, &r->m);
	config_top(t, &r->m, &builtin_rules);
	config_section_read(t, "targets", false, &r->targets);
	config_section_read(t, "hooks", false, &r->hooks);
	config_section_read(t, "rules", !builtin_rules, &r->rules);
	config_params(t, &r->m);
	config_targets(t, &r->targets, &r->m);
	config_hooks(t, &r->hooks, &r->m);
	config_rules(t, &names, &r->m);
	if (!t->broken)
		config_check_model(t, &names, &r->m);
	return hash(&r->m);
}

/* Files in the order they were read; first what belongs to none or to one that could not be parsed. */
static size_t file_rank(const struct config_tree *t, const char *file)
{
	for (unsigned int i = 0; i < t->count; i++)
		if (strcmp(t->source[i].path, file) == 0)
			return i + 1;
	return 0;
}

static bool comes_before(const struct config_tree *t, const struct diag_entry *a, const struct diag_entry *b)
{
	const size_t rank_a = file_rank(t, a->file), rank_b = file_rank(t, b->file);

	if (rank_a != rank_b)
		return rank_a < rank_b;
	return rank_a && a->line < b->line;
}

/* By file and line, so that a reader works through them from the top; stable. */
static void diag_sort(struct diag *d, size_t from, const struct config_tree *t)
{
	for (size_t i = from + 1; i < d->count; i++) {
		const struct diag_entry e = d->entry[i];
		size_t k = i;

		for (; k > from && comes_before(t, &e, &d->entry[k - 1]); k--)
			d->entry[k] = d->entry[k - 1];
		d->entry[k] = e;
	}
}

int config_read(const char *path, const char *dir, struct diag *d, struct model *ret)
{
	const size_t before = d->count, errors = d->errors;
	struct config_tree *t = NULL;
	struct reader *r;
	int error = tree_read(path, dir, d, &t);

	r = t && error != -ENOENT ? calloc(1, sizeof(*r)) : NULL;
	if (r) {
		const int made = model_read(t, r);

		error = error < 0 ? error : made;
		diag_sort(d, before, t);
		if (error == 0 && d->errors != errors)
			error = -EINVAL;
		if (error == 0)
			memcpy(ret, &r->m, sizeof(*ret));
	} else if (error == 0) {
		error = -ENOMEM;
	}
	free(r);
	tree_free(t);
	return error;
}

int config_read_hooks(const char *path, const char *dir, struct diag *d, struct model *ret)
{
	struct config_tree *t = NULL;
	struct reader *r = NULL;
	int error = tree_read(path, dir, d, &t);

	if (error == 0) {
		r = calloc(1, sizeof(*r));
		error = r ? 0 : -ENOMEM;
	}
	if (error == 0) {
		model_begin(t, &r->m);
		config_section_read(t, "hooks", false, &r->hooks);
		config_hooks(t, &r->hooks, &r->m);
		memcpy(ret, &r->m, sizeof(*ret));
	}
	free(r);
	tree_free(t);
	return error;
}

int config_print(const struct model *m, FILE *out)
{
	return config_write_model(m, true, out);
}
