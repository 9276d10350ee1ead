/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main.c - dwelld's command line. */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_file.h"
#include "daemon.h"
#include "sense/probes.h"

#define EXIT_USAGE 2
#define EXIT_BAD_CONFIG 78

#ifndef DWELLD_LIBEXECDIR
#define DWELLD_LIBEXECDIR "/usr/libexec/dwelld"
#endif

static void help(void)
{
	puts("Usage: dwelld [OPTION...]\n"
	     "Watch how long UDP datagrams wait for the programs that read them, tell server-side queuing from a bad network, "
	     "and act.\n\n"
	     "  --config FILE   read the built-ins and FILE only (default: /etc/dwelld/dwelld.conf, /etc/dwelld/conf.d/*.conf)\n"
	     "  --check         read the configuration, tell every error and the memory plan, exit 0 or 78\n"
	     "  --print         with --check: show the resolved configuration and where each key came from\n"
	     "  --dry-run       run no hook, whatever \"mode\" says; the journal tells what would have run\n"
	     "  --rungs LIST    force probes, such as dwell=kprobe,runq=sched_info or rtp=none; see dwelld(8)\n"
	     "  --help, --version\n\n"
	     "Exit status: 0, 1 failure while running, 2 usage, 78 bad configuration.\n"
	     "As root in the foreground these move its directories: DWELLD_RUN_DIR (/run/dwelld), DWELLD_STATE_DIR\n"
	     "(/var/lib/dwelld), DWELLD_HOOK_DIR (/var/lib/dwelld-hook/runs), DWELLD_RUNNER (the hook runner).");
}

static const char *from_env(const char *name, const char *fallback)
{
	const char *value = secure_getenv(name);

	return value && value[0] ? value : fallback;
}

static void print_diag(const struct diag *d)
{
	char line[DIAG_FILE + DIAG_TEXT + 32];

	for (size_t i = 0; i < d->count; i++) {
		diag_format(&d->entry[i], line, sizeof(line));
		fprintf(stderr, "%s\n", line);
	}
	if (d->dropped)
		fprintf(stderr, "and %zu more\n", d->dropped);
}

static int check(const char *config, bool print)
{
	struct diag *d = calloc(1, sizeof(*d));
	struct model *m = calloc(1, sizeof(*m));
	unsigned int slots;
	uint64_t bytes;
	int r;

	if (!d || !m)
		return EXIT_FAILURE;
	r = config_read(config, NULL, d, m);
	if (r >= 0)
		config_check_hooks(m, d);
	print_diag(d);
	if (r >= 0 && print)
		config_print(m, stdout);
	if (r >= 0 && !print) {
		probes_plan(&slots, &bytes);
		printf("configuration %s: %u targets, %u rules, %u hooks, mode %s\n", m->hash, m->target_count,
		       m->rule_count, m->hook_count, model_mode_name(m->mode));
		printf("BPF maps: %u target slots, at most %.1f MiB of the 64 MiB budget\n", slots,
		       (double)bytes / (1 << 20));
	}
	r = r < 0 || d->errors ? EXIT_BAD_CONFIG : EXIT_SUCCESS;
	free(d);
	free(m);
	return r;
}

static int run(const struct daemon_options *options)
{
	struct daemon *d = NULL;
	int r = daemon_new(options, &d);

	if (r == -EINVAL || r == -ENOENT)
		return EXIT_BAD_CONFIG;
	if (r < 0) {
		fprintf(stderr, "dwelld: cannot start: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	r = daemon_run(d);
	daemon_free(d);
	return r < 0 ? EXIT_FAILURE : r;
}

static int rungs_bad(const char *rungs)
{
	struct diag *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return EXIT_FAILURE;
	r = probes_check_rungs(rungs, d);
	print_diag(d);
	free(d);
	return r < 0 ? EXIT_USAGE : 0;
}

int main(int argc, char **argv)
{
	static const struct option option[] = {
		{ "config", required_argument, NULL, 'c' }, { "check", no_argument, NULL, 'k' },
		{ "print", no_argument, NULL, 'p' },        { "dry-run", no_argument, NULL, 'n' },
		{ "rungs", required_argument, NULL, 'r' },  { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },      { 0 }
	};
	struct daemon_options o = {
		.run_dir = from_env("DWELLD_RUN_DIR", "/run/dwelld"),
		.state_dir = from_env("DWELLD_STATE_DIR", "/var/lib/dwelld"),
		.hook_dir = from_env("DWELLD_HOOK_DIR", "/var/lib/dwelld-hook/runs"),
		.runner = from_env("DWELLD_RUNNER", DWELLD_LIBEXECDIR "/dwelld-hook-run"),
	};
	bool checking = false, printing = false;
	int c, r;

	/* large tables are used sparsely: each in a mapping of its own costs only the pages it touches */
	mallopt(M_MMAP_THRESHOLD, 64 * 1024);

	while ((c = getopt_long(argc, argv, "", option, NULL)) != -1) {
		switch (c) {
		case 'c': o.config = optarg; break;
		case 'k': checking = true; break;
		case 'p': printing = true; break;
		case 'n': o.dry_run = true; break;
		case 'r': o.rungs = optarg; break;
		case 'h': help(); return EXIT_SUCCESS;
		case 'v': puts("dwelld " DWELLD_VERSION); return EXIT_SUCCESS;
		default: fputs("Try 'dwelld --help'.\n", stderr); return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "dwelld: unexpected argument '%s'\nTry 'dwelld --help'.\n", argv[optind]);
		return EXIT_USAGE;
	}
	if (o.rungs) {
		r = rungs_bad(o.rungs);
		if (r)
			return r;
	}
	if (checking || printing)
		return check(o.config, printing);
#ifdef DWELLD_TEST_HOOKS
	o.tick_us = strtoull(from_env("DWELLD_TEST_TICK_US", "0"), NULL, 10);
	o.root = getenv("DWELLD_TEST_ROOT");
#endif
	return run(&o);
}
