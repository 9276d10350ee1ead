/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dwellctl - the client of dwelld. Exit status: 0, 1 failed, 2 wrong usage. Layer: ctl. */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "decide/units.h"
#include "plain.h"
#include "reply.h"
#include "usage.h"
#include "watch.h"

#define EXIT_USAGE 2

struct options {
	const char *socket;
	const char *argument[3];
	int argument_count;
	bool json, prometheus, watch, all, help;
	uint64_t interval_ns;
};

__attribute__((format(printf, 2, 0))) static int wrong(const char *verb, const char *format, const char *what)
{
	char name[128];

	snprintf(name, sizeof(name), "%s", what);
	text_clean(name);
	fputs("dwellctl: ", stderr);
	fprintf(stderr, format, name);
	fprintf(stderr, "\nTry dwellctl %s%s--help\n", verb ? verb : "", verb ? " " : "");
	return EXIT_USAGE;
}

static int failed(const struct client_why *why)
{
	fprintf(stderr, "dwellctl: %s\n", why->text);
	return EXIT_FAILURE;
}

/* What could not be written is an error: a full disk, a closed pipe. */
static int print_all(const char *bytes, size_t length)
{
	if (fwrite(bytes, 1, length, stdout) == length && fflush(stdout) == 0)
		return EXIT_SUCCESS;
	if (errno != EPIPE)
		fprintf(stderr, "dwellctl: cannot write: %s\n", strerror(errno));
	return EXIT_FAILURE;
}

static int ask(const struct options *o, const char *line, uint64_t timeout_ns, char **ret_bytes, size_t *ret_length)
{
	const struct client_ask question = { .path = o->socket, .line = line, .timeout_ns = timeout_ns };
	struct client_why why;

	return client_ask(&question, &why, ret_bytes, ret_length) < 0 ? failed(&why) : 0;
}

/* Text of the daemon line by line, each made harmless. */
static int print_lines(char *bytes)
{
	struct text out = { 0 };
	char *line = bytes, *end;
	int r;

	while (*line) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = '\0';
		text_clean(line);
		text_put(&out, line);
		text_put(&out, "\n");
		line = end;
	}
	r = print_all(out.bytes ? out.bytes : "", out.length);
	text_free(&out);
	return r;
}

/* Leave only the rows of one target. */
static void keep_target(json_t *rows, const char *key, const char *target)
{
	size_t i = 0;

	while (i < json_array_size(rows)) {
		if (reply_is(json_array_get(rows, i), key, target))
			i++;
		else
			json_array_remove(rows, i);
	}
}

static bool has_target(const json_t *status, const char *target)
{
	const json_t *t;
	size_t i;

	json_array_foreach(reply_at(status, "targets"), i, t)
		if (reply_is(t, "name", target))
			return true;
	return false;
}

static int no_target(const json_t *status, const char *target)
{
	char name[160];
	const json_t *t;
	size_t i;

	snprintf(name, sizeof(name), "%s", target);
	text_clean(name);
	fprintf(stderr, "dwellctl: no target \"%s\"; there are:", name);
	json_array_foreach(reply_at(status, "targets"), i, t)
		fprintf(stderr, " %s", reply_string(t, "name"));
	fputc('\n', stderr);
	return EXIT_FAILURE;
}

static int print_json(json_t *status, const char *target)
{
	char *text;
	int r;

	if (target) {
		keep_target(json_object_get(status, "targets"), "name", target);
		keep_target(json_object_get(status, "rules"), "target", target);
		keep_target(json_object_get(status, "hooks"), "target", target);
	}
	/* ASCII only: a terminal must not see raw control characters of anybody's names */
	text = json_dumps(status, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
	if (!text) {
		fputs("dwellctl: out of memory\n", stderr);
		return EXIT_FAILURE;
	}
	r = printf("%s\n", text) < 0 ? EXIT_FAILURE : print_all("", 0);
	free(text);
	return r;
}

static int print_plain(json_t *status, const char *target)
{
	const struct term term = term_probe();
	struct text out = { 0 };
	int r;

	reply_clean(status);
	plain_status(&out, &term, status, target);
	r = print_all(out.bytes, out.length);
	text_free(&out);
	return r;
}

static int status_once(const struct options *o)
{
	const char *target = o->argument_count ? o->argument[0] : NULL;
	json_t *status = NULL;
	struct client_why why;
	size_t length = 0;
	char *bytes = NULL;
	int r;

	r = ask(o, o->prometheus ? "prometheus" : "status", CLIENT_READ_TIMEOUT_NS, &bytes, &length);
	if (r)
		return r;
	if (o->prometheus) {
		r = print_lines(bytes);
		free(bytes);
		return r;
	}
	r = reply_parse(bytes, length, &why, &status);
	free(bytes);
	if (r < 0)
		return failed(&why);
	if (target && !has_target(status, target)) {
		reply_clean(status);
		r = no_target(status, target);
	} else {
		r = o->json ? print_json(status, target) : print_plain(status, target);
	}
	json_decref(status);
	return r;
}

static int verb_status(const struct options *o)
{
	if (o->json + o->prometheus + o->watch > 1)
		return wrong("status", "%s exclude each other", "--json, --prometheus and --watch");
	if (o->all)
		return wrong("status", "%s belongs to undo", "--all");
	if (o->argument_count > 1)
		return wrong("status", "unexpected argument \"%s\"", o->argument[1]);
	if (o->prometheus && o->argument_count)
		return wrong("status", "%s prints all targets", "--prometheus");
	if (o->watch)
		return watch_run(&(struct watch){ o->socket, o->argument_count ? o->argument[0] : NULL, o->interval_ns });
	return status_once(o);
}

static int tell(const struct options *o, const char *line)
{
	size_t length = 0;
	char *bytes = NULL;
	int r;

	r = ask(o, line, CLIENT_WRITE_TIMEOUT_NS, &bytes, &length);
	if (r)
		return r;
	r = print_lines(bytes);
	free(bytes);
	return r;
}

static int verb_reload(const struct options *o)
{
	if (o->argument_count || o->json || o->prometheus || o->watch || o->all)
		return wrong("reload", "%s", "takes no arguments");
	return tell(o, "reload");
}

/* The names go into a line of words. */
static bool is_word(const char *text)
{
	const size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@\\-");

	return n > 0 && n < 200 && !text[n] && text[0] != '-';
}

static int verb_undo(const struct options *o)
{
	char line[512];
	int i;

	if (o->json || o->prometheus || o->watch)
		return wrong("undo", "%s belong to status", "--json, --prometheus and --watch");
	if (o->argument_count > 2)
		return wrong("undo", "unexpected argument \"%s\"", o->argument[2]);
	if (o->all != (o->argument_count == 0))
		return wrong("undo", "name %s, not both", "a hook, or --all");
	for (i = 0; i < o->argument_count; i++)
		if (!is_word(o->argument[i]))
			return wrong("undo", "\"%s\" cannot be a name", o->argument[i]);
	snprintf(line, sizeof(line), "undo %s%s%s", o->all ? "--all" : o->argument[0], o->argument_count > 1 ? " " : "",
		 o->argument_count > 1 ? o->argument[1] : "");
	return tell(o, line);
}

static int verb_check(const struct options *o)
{
	char *argv[] = { "dwelld", "--check", NULL, NULL, NULL };

	if (o->argument_count > 1 || o->json || o->prometheus || o->watch || o->all)
		return wrong("check", "%s", "takes one file at most");
	if (o->argument_count) {
		argv[2] = "--config";
		argv[3] = (char *)o->argument[0];
	}
	execv(DWELLD_SBINDIR "/dwelld", argv);
	if (errno == ENOENT)
		execvp("dwelld", argv);
	fprintf(stderr, "dwellctl: cannot run dwelld --check: %s\n", strerror(errno));
	return EXIT_FAILURE;
}

static const struct { const char *name; int (*run)(const struct options *o); } verbs[] = {
	{ "status", verb_status }, { "reload", verb_reload }, { "undo", verb_undo }, { "check", verb_check } };

enum option_code { OPTION_JSON = 256, OPTION_PROMETHEUS, OPTION_WATCH, OPTION_SOCKET, OPTION_ALL };

static int read_interval(const char *text, struct options *o)
{
	if (text && (units_parse_duration(text, &o->interval_ns) < 0 || o->interval_ns < 100000000ULL ||
		     o->interval_ns > 3600000000000ULL))
		return wrong("status", "--watch=%s: expected 100ms to 1h, such as 1s", text);
	return 0;
}

/* Options and arguments in any order; argv[0] is the verb. */
static int read_options(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{ "json", no_argument, NULL, OPTION_JSON },	{ "prometheus", no_argument, NULL, OPTION_PROMETHEUS },
		{ "watch", optional_argument, NULL, OPTION_WATCH }, { "socket", required_argument, NULL, OPTION_SOCKET },
		{ "all", no_argument, NULL, OPTION_ALL },	{ "help", no_argument, NULL, 'h' }, { 0 } };
	int c, r = 0;

	opterr = 0;
	while (r == 0 && (c = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
		if (c == OPTION_JSON)
			o->json = true;
		else if (c == OPTION_PROMETHEUS)
			o->prometheus = true;
		else if (c == OPTION_ALL)
			o->all = true;
		else if (c == 'h')
			o->help = true;
		else if (c == OPTION_SOCKET)
			o->socket = optarg;
		else if (c == OPTION_WATCH) {
			o->watch = true;
			r = read_interval(optarg, o);
		} else if (c == ':')
			r = wrong(argv[0], "%s needs a value", argv[optind - 1]);
		else
			r = wrong(argv[0], "unknown option \"%s\"", argv[optind - 1]);
	}
	for (; r == 0 && optind < argc; optind++) {
		if (o->argument_count == 3)
			return wrong(argv[0], "unexpected argument \"%s\"", argv[optind]);
		o->argument[o->argument_count++] = argv[optind];
	}
	return r;
}

static int run_verb(int argc, char **argv)
{
	struct options o = { .socket = CLIENT_SOCKET, .interval_ns = 1000000000ULL };
	size_t i;
	int r;

	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(argv[0], verbs[i].name) != 0)
			continue;
		r = read_options(argc, argv, &o);
		if (r)
			return r;
		if (o.help) {
			fputs(usage_text(argv[0]), stdout);
			return EXIT_SUCCESS;
		}
		return verbs[i].run(&o);
	}
	if (usage_is_planned(argv[0])) {
		fprintf(stderr, "dwellctl: %s: not supported yet\n", argv[0]);
		return EXIT_USAGE;
	}
	return wrong(NULL, "unknown verb \"%s\"", argv[0]);
}

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, "");	/* only what a character is: numbers keep their point */
	if (argc < 2) {
		fputs(usage_text(NULL), stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(usage_text(argc > 2 ? argv[2] : NULL), stdout);
		return EXIT_SUCCESS;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("dwellctl %s\n", DWELLD_VERSION);
		return EXIT_SUCCESS;
	}
	return run_verb(argc - 1, argv + 1);
}
