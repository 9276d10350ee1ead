/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_golden - reads a configuration and prints what there is to say about it, for comparison with a kept
 * text. Usage: config_golden [--print | --hash | --hooks | --check-hooks] PATH PATH is a file, or a directory
 * in the shape of /etc/dwelld. Paths are shown from its last component on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config_file.h"

static struct diag diag;

/* The temporary or source directory is no part of the expectation. */
static const char *shown(const char *file, const char *path, bool directory)
{
	const char *slash = strrchr(path, '/');

	if (directory && strncmp(file, path, strlen(path)) == 0)
		return file + strlen(path) + 1;
	if (!directory && slash && strcmp(file, path) == 0)
		return slash + 1;
	return file;
}

static void tell(const char *path, bool directory)
{
	char text[DIAG_TEXT + DIAG_FILE + 32];

	for (size_t i = 0; i < diag.count; i++) {
		struct diag_entry *e = &diag.entry[i];
		char file[DIAG_FILE];

		snprintf(file, sizeof(file), "%s", shown(e->file, path, directory));
		memcpy(e->file, file, sizeof(file));
		diag_format(e, text, sizeof(text));
		puts(text);
	}
	if (diag.dropped)
		printf("(and %zu more)\n", diag.dropped);
}

int main(int argc, char **argv)
{
	const char *path = argv[argc - 1], *option = argc > 2 ? argv[1] : "";
	struct model *m = calloc(1, sizeof(*m));
	struct stat st;
	bool directory;
	int r;

	if (argc < 2 || !m)
		return 2;
	directory = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	if (strcmp(option, "--hooks") == 0)
		r = config_read_hooks(directory ? NULL : path, directory ? path : NULL, &diag, m);
	else
		r = config_read(directory ? NULL : path, directory ? path : NULL, &diag, m);
	tell(path, directory);
	if (r == 0 && strcmp(option, "--print") == 0)
		r = config_print(m, stdout);
	if (r == 0 && strcmp(option, "--hash") == 0)
		puts(m->hash);
	if (r == 0 && strcmp(option, "--hooks") == 0)
		for (int i = 0; i < m->hook_count; i++)
			puts(m->hook[i].name);
	if (r == 0 && strcmp(option, "--check-hooks") == 0) {
		memset(&diag, 0, sizeof(diag));
		r = config_check_hooks(m, &diag);
		tell(path, directory);
	}
	free(m);
	return r < 0 ? 1 : 0;
}
