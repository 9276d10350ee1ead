/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_run.c - dwelld-hook-run: runs one hook of the root-owned configuration, told by name. Layer: run.
 *
 * stdin: the request (request.h). stdout: one line "result exit=... line=..." (record.h). stderr: the hook's output, tagged.
 * Exit: 0 a result line was printed, 1 it could not be, 2 usage or a request that makes no sense. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "config_file.h"
#include "path_check.h"
#include "private_dir.h"
#include "record.h"
#include "request.h"
#include "tree.h"
#include "watch.h"

#define RUNS_DIR "/var/lib/dwelld-hook/runs"
#define REQUEST_WAIT_MS 5000
#define LOCK_WAIT_MS 1000

/* What a refusal before the start is told as: sysexits.h's, all of them "nothing was changed". */
enum refusal { REFUSE_USAGE = 64, REFUSE_UNAVAILABLE = 69, REFUSE_OS = 71, REFUSE_CREATE = 73, REFUSE_LATER = 75,
	       REFUSE_CONFIG = 78 };

struct options { const char *config, *runs_dir; };

struct job {
	const struct options *options;
	struct request request;
	struct model model;
	struct diag diag;
	const struct model_hook *hook;
	struct path_checked program;
	struct record record;
	struct child child;
	struct output_log log;
	char state_dir[PRIVATE_DIR_PATH], credentials_dir[PRIVATE_DIR_PATH];
	char why[900];
	int signal_fd;
	struct record_result result;
};

static int refuse(struct job *j, enum refusal code, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int refuse(struct job *j, enum refusal code, const char *format, ...)
{
	char text[1000];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	output_say(&j->log, "refused: %s", text);
	j->result = (struct record_result){ .exit_code = code };
	output_clean(text, strlen(text), j->result.line, sizeof(j->result.line));
	return -EPERM;
}

/* ---- the configuration and the hook in it ---- */

static int check_writable_by_root_only(struct job *j, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : refuse(j, REFUSE_CONFIG, "%s: %s", path, strerror(errno));
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return refuse(j, REFUSE_CONFIG, "%s: belongs to uid %u, expected root", path, st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(j, REFUSE_CONFIG, "%s: writable by others than its owner (mode %04o), expected 0644",
			      path, st.st_mode & 07777);
	return 0;
}

static int check_config_dir(struct job *j, const char *dir)
{
	DIR *d = opendir(dir);
	int r = check_writable_by_root_only(j, dir);

	for (struct dirent *e = d && r == 0 ? readdir(d) : NULL; e && r == 0; e = readdir(d)) {
		char path[PATH_MAX];

		if (e->d_name[0] == '.' || snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
			continue;
		r = check_writable_by_root_only(j, path);
	}
	if (d)
		closedir(d);
	return r;
}

static int check_config(struct job *j)
{
	int r;

	if (j->options->config)
		return check_writable_by_root_only(j, j->options->config);
	r = check_config_dir(j, CONFIG_ETC);
	return r < 0 ? r : check_config_dir(j, CONFIG_ETC "/conf.d");
}

/* The error that names this hook, "" when none does: a hook with an error is left out of the model. */
static void find_error(const struct job *j, char *ret, size_t size)
{
	char quoted[80];

	*ret = '\0';
	snprintf(quoted, sizeof(quoted), "\"%s\"", j->request.hook);
	for (size_t i = 0; i < j->diag.count && !*ret; i++) {
		if (strstr(j->diag.entry[i].text, quoted))
			diag_format(&j->diag.entry[i], ret, size);
	}
}

static int find_hook(struct job *j)
{
	const bool page = strcmp(j->request.action, "notify") == 0;
	char text[700] = "cannot be read";
	int r = check_config(j);

	if (r < 0)
		return r;
	r = config_read_hooks(j->options->config, NULL, &j->diag, &j->model);
	if (r < 0) {
		if (j->diag.count)
			diag_format(&j->diag.entry[0], text, sizeof(text));
		return refuse(j, REFUSE_CONFIG, "configuration: %s", text);
	}
	for (unsigned int i = 0; i < j->model.hook_count; i++) {
		if (strcmp(j->model.hook[i].name, j->request.hook) == 0)
			j->hook = &j->model.hook[i];
	}
	if (!j->hook) {
		find_error(j, text, sizeof(text));
		return refuse(j, REFUSE_CONFIG, "no hook \"%s\" in the configuration%s%s", j->request.hook,
			      *text ? "; " : "", text);
	}
	if (page != (j->hook->kind == HOOK_PAGE))
		return refuse(j, REFUSE_USAGE, "hook \"%s\" is of kind %s, which has no action %s", j->hook->name,
			      hook_kind_name(j->hook->kind), j->request.action);
	return 0;
}

/* ---- one run ---- */

static int prepare(struct job *j)
{
	const struct model_hook *h = j->hook;
	const char *runs = j->options->runs_dir, *slash = strrchr(runs, '/');
	char base[PRIVATE_DIR_PATH];
	int r;

	if (path_check_program(h->argv[0], j->why, sizeof(j->why), &j->program) < 0)
		return refuse(j, REFUSE_CONFIG, "%s", j->why);
	if (child_find_user(h, &j->child.user, j->why, sizeof(j->why)) < 0)
		return refuse(j, REFUSE_CONFIG, "%s", j->why);
	/* next to the runs directory: /var/lib/dwelld-hook/hooks */
	snprintf(base, sizeof(base), "%.*s/hooks", slash ? (int)(slash - runs) : 1, slash ? runs : ".");
	r = private_dir_state(base, h, j->child.user.uid, j->child.user.gid, j->state_dir, j->why, sizeof(j->why));
	if (r == 0)
		r = private_dir_credentials(h, j->record.base, j->child.user.uid, j->child.user.gid,
					    j->credentials_dir, j->why, sizeof(j->why));
	return r < 0 ? refuse(j, REFUSE_CREATE, "%s", j->why) : 0;
}

static int run(struct job *j, uint32_t attempt)
{
	const struct watch w = { .signal_fd = j->signal_fd, .limit_ns = j->hook->timeout_ns, .log = &j->log };
	struct child *c = &j->child;
	struct watch started = w;
	int r;

	c->hook = j->hook;
	c->request = &j->request;
	c->program = &j->program;
	c->attempt = attempt;
	c->state_dir = j->state_dir;
	c->credentials_dir = j->credentials_dir;
	r = child_start(c, j->why, sizeof(j->why));
	if (r < 0)
		return refuse(j, REFUSE_UNAVAILABLE, "%s", j->why);
	started.pid = c->pid;
	started.out_fd = c->out_fd;
	started.err_fd = c->err_fd;
	watch_run(&started, &j->result);
	return 0;
}

/* Without a place for records a page still goes out, but nothing is changed on the host: paging fails open. */
static int open_record(struct job *j)
{
	int pid = 0;
	const int r = record_open(j->options->runs_dir, &j->request, LOCK_WAIT_MS, &j->record, &pid);

	if (r == -EBUSY)
		return refuse(j, REFUSE_LATER, "another run of \"%s\" for \"%s\" goes on (pid %d)", j->request.hook,
			      j->request.target, pid);
	if (r < 0 && j->hook->kind != HOOK_PAGE)
		return refuse(j, REFUSE_CREATE, "runs directory %s: %s", j->options->runs_dir, strerror(-r));
	if (r < 0) {
		output_say(&j->log, "runs directory %s: %s; this run is not recorded", j->options->runs_dir,
			   strerror(-r));
		snprintf(j->record.base, sizeof(j->record.base), "%d", getpid());	/* names its private directory */
	}
	return 0;
}

static void clean_after_crash(struct job *j)
{
	char seq[48], hook[96];

	snprintf(seq, sizeof(seq), "DWELLD_SEQ=%" PRIu64, j->request.seq);
	snprintf(hook, sizeof(hook), "DWELLD_HOOK=%s", j->request.hook);
	output_say(&j->log, "the runner of this run died before its end; %u processes of it were killed",
		   tree_kill_marked(seq, hook));
}

static int run_recorded(struct job *j)
{
	const bool recorded = j->record.dir_fd >= 0;
	uint32_t attempt = j->request.attempt;
	enum record_state state = RECORD_NEW;
	int r;

	if (recorded)
		state = record_look(&j->record, &j->request, &j->result, &attempt);
	if (state == RECORD_FOUND)
		return 0;
	if (state == RECORD_CRASHED)
		clean_after_crash(j);
	r = prepare(j);
	if (r < 0)
		return r;
	r = recorded ? record_started(&j->record, attempt) : 0;
	if (r < 0 && j->hook->kind != HOOK_PAGE)
		return refuse(j, REFUSE_CREATE, "the start could not be recorded in %s: %s", j->options->runs_dir,
			      strerror(-r));
	r = run(j, attempt);
	if (recorded && record_result(&j->record, attempt, &j->result) < 0)
		output_say(&j->log, "the result could not be recorded: %s", strerror(errno));
	if (recorded)
		record_prune(&j->record);
	return r;
}

static int do_job(struct job *j)
{
	int r;

	r = watch_prepare(&j->signal_fd);
	if (r < 0)
		return refuse(j, REFUSE_OS, "signals: %s", strerror(-r));
	r = find_hook(j);
	if (r == 0)
		r = open_record(j);
	if (r == 0)
		r = run_recorded(j);
	private_dir_remove(j->credentials_dir);
	return r;
}

/* ---- start ---- */

static int usage(FILE *out)
{
	fprintf(out, "Usage: dwelld-hook-run [--config FILE] [--runs-dir DIR] < REQUEST\n"
		     "Runs one hook of dwelld's configuration. The request names the hook, its action and its event;\n"
		     "the program, its user and its time limit come from the configuration. Started by dwelld.\n"
		     "  --config FILE   read this file instead of " CONFIG_ETC "\n"
		     "  --runs-dir DIR  records of runs, default " RUNS_DIR "\n"
		     "  --help, --version\n"
		     "Exit status: 0 a result was printed, 1 failure, 2 usage.\n");
	return out == stdout ? 0 : 2;
}

static int read_options(int argc, char *argv[], struct options *ret)
{
	static const struct option known[] = {
		{ "config", required_argument, NULL, 'c' }, { "runs-dir", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'v' }, { 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 'c':
			ret->config = optarg;
			break;
		case 'r':
			ret->runs_dir = optarg;
			break;
		case 'h':
			exit(usage(stdout));
		case 'v':
			puts("dwelld-hook-run " DWELLD_VERSION);
			exit(0);
		default:
			return -EINVAL;
		}
	}
	return optind == argc ? 0 : -EINVAL;
}

/* 0, 1 and 2 must be open, or the hook's pipes would take their places. */
static void open_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= 2);
	if (fd > 2)
		close(fd);
}

static int answer(struct job *j)
{
	char line[512];

	if (request_read(STDIN_FILENO, REQUEST_WAIT_MS, &j->request, j->why, sizeof(j->why)) < 0) {
		output_say(&j->log, "request: %s", j->why);
		return 2;
	}
	snprintf(j->log.tag, sizeof(j->log.tag), "hook %.60s[%" PRIu64 "]", j->request.hook, j->request.seq);
	do_job(j);
	record_format(&j->result, line, sizeof(line));
	return puts(line) < 0 || fflush(stdout) != 0;
}

int main(int argc, char *argv[])
{
	struct options options = { .runs_dir = RUNS_DIR };
	struct job *j;
	int status;

	open_standard_fds();
	if (read_options(argc, argv, &options) < 0)
		return usage(stderr);
	j = calloc(1, sizeof(*j));	/* the model alone has megabytes */
	if (!j)
		return 1;
	j->options = &options;
	j->record = (struct record){ .dir_fd = -1, .lock_fd = -1 };
	j->log = (struct output_log){ .fd = STDERR_FILENO, .tag = "dwelld-hook-run" };
	status = answer(j);
	record_close(&j->record);
	free(j);
	/* stdout is flushed. Not through exit(): LeakSanitizer's tracer can hang there for ever in a subreaper */
	_exit(status);
}
