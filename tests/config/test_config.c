/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_file.h"
#include "decide/event.h"

#define SECOND 1000000000ULL

static struct diag diag;
static struct model *model;
static char dir[256], path[320];

static void begin(void)
{
	snprintf(dir, sizeof(dir), "/tmp/dwelld-config-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/test.conf", dir);
	model = calloc(1, sizeof(*model));
	cr_assert(model);
	memset(&diag, 0, sizeof(diag));
}

static void end(void)
{
	unlink(path);
	rmdir(dir);
	free(model);
}

static void put_bytes(const char *text, size_t size)
{
	FILE *f = fopen(path, "w");

	cr_assert(f);
	cr_assert_eq(fwrite(text, 1, size, f), size);
	cr_assert_eq(fclose(f), 0);
}

static int read_text(const char *text)
{
	put_bytes(text, strlen(text));
	memset(&diag, 0, sizeof(diag));
	return config_read(path, NULL, &diag, model);
}

static const char *said(size_t i)
{
	return i < diag.count ? diag.entry[i].text : "(nothing)";
}

TestSuite(config, .init = begin, .fini = end);

Test(config, without_any_file_the_built_ins_watch_and_do_not_act)
{
	const struct model_rule *starved;
	double ms;

	cr_assert_eq(config_read(NULL, dir, &diag, model), 0, "%s", said(0));
	cr_expect_eq(diag.count, 0, "%s", said(0));
	cr_expect_eq(model->mode, MODE_OBSERVE);
	cr_expect_eq(model->rule_count, 9);
	cr_expect_eq(model->hook_count, 0);
	cr_expect_eq(model->tick_ns, 250000000);
	cr_expect_eq(model->window_ns[0], 10 * SECOND);
	cr_expect_leq(model->window_count, 3, "the built-ins leave windows for the operator");
	cr_expect_eq(strlen(model->hash), 16);
	starved = &model->rule[model_rule_find(model, "reader-starved")];
	cr_expect_eq(starved->for_ns, 5 * SECOND);
	cr_expect_eq(starved->clear_for_ns, 15 * SECOND);
	cr_expect(starved->all_targets && starved->has_clear && starved->has_critical);
	cr_expect_eq(starved->ladder, -1);
	cr_expect(model_param(model, model_profile_find(model, "media"), "slow", &ms) && ms == 10e6);
	cr_expect(model_param(model, -1, "bad", &ms) && ms == 300e6, "no profile: generic's");
	cr_expect_eq(model->profile[model_profile_find(model, "generic")].at_most, SEVERITY_WARNING);
}

Test(config, every_planned_built_in_rule_is_there_and_network_rules_ask_for_nothing)
{
	static const struct {
		const char *name;
		enum rule_class class;
	} want[] = {
		{"reader-starved", CLASS_SERVER},  {"reader-slow", CLASS_SERVER},
		{"reader-stuck", CLASS_SERVER},	   {"buffer-small", CLASS_SERVER},
		{"cpu-stolen", CLASS_HOST},	   {"softirq-late", CLASS_HOST},
		{"network-loss", CLASS_NETWORK},   {"network-jitter", CLASS_NETWORK},
		{"probe-missing", CLASS_COVERAGE},
	};

	cr_assert_eq(config_read(NULL, dir, &diag, model), 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const int k = model_rule_find(model, want[i].name);

		cr_assert_geq(k, 0, "%s", want[i].name);
		cr_expect_eq(model->rule[k].class, want[i].class, "%s", want[i].name);
		cr_expect_eq(model->rule[k].ladder, -1, "%s", want[i].name);
		cr_expect_gt(strlen(model->rule[k].summary), 10, "%s", want[i].name);
	}
}

Test(config, defaults_of_a_rule_and_a_hook)
{
	const struct model_rule *r;
	const struct model_hook *h;

	cr_assert_eq(read_text("hooks = ( { name = \"h\"; kind = \"remedy\"; exec = [ \"/bin/true\" ];"
			       "	undo = { when = \"host.cpu.busy < 80%\"; }; },"
			       "	{ name = \"p\"; kind = \"page\"; exec = [ \"/bin/true\" ]; on = [ "
			       "\"fire\", \"latched\" ]; } );"
			       "targets = ( { name = \"t\"; process = \"server\"; ports = 5000; } );"
			       "rules = ( { name = \"r\"; class = \"server\"; when = \"dwell.p99 > $slow\"; "
			       "for = \"10s\";"
			       "	targets = [ \"t\" ]; ladder = [ \"h\" ]; notify = [ \"p\" ]; } );"),
		     0, "%s", said(0));
	r = &model->rule[model_rule_find(model, "r")];
	h = &model->hook[model_hook_find(model, "h")];
	cr_expect_eq(r->severity, SEVERITY_WARNING);
	cr_expect_eq(r->clear_for_ns, 30 * SECOND);
	cr_expect_eq(r->nodata, NODATA_KEEP);
	cr_expect_not(r->has_clear);
	cr_expect_not(r->all_targets);
	cr_expect_str_eq(r->target[0], "t");
	cr_expect_eq(r->ladder, model_hook_find(model, "h"));
	cr_expect_eq(r->notify[0], model_hook_find(model, "p"));
	cr_expect_eq(h->timeout_ns, 10 * SECOND);
	cr_expect(h->undo.given && h->undo.has_when);
	cr_expect_eq(h->undo.after_ns, 300 * SECOND);
	cr_expect_str_eq(h->user, "root");
	cr_expect_str_eq(model->hook[r->notify[0]].user, "dwelld-hook");
	cr_expect_eq(model->hook[r->notify[0]].on, 1U << EVENT_FIRE | 1U << EVENT_LATCHED);
	cr_expect_eq(model->target[0].match_count, 1);
	cr_expect_str_eq(model->target[0].match[0].process, "server");
	cr_expect_eq(model->target[0].match[0].port_low, 5000);
	cr_expect_eq(model->target[0].match[0].port_high, 5000);
}

Test(config, keys_and_lists_of_a_target_multiply)
{
	const struct model_target *t = &model->target[0];

	cr_assert_eq(read_text("targets = ( { name = \"t\"; unit = [ \"a.service\", \"b\\\\x2dc.service\" ];"
			       " ports = [ \"1-2\", \"3\" ]; } );"),
		     0, "%s", said(0));
	cr_assert_eq(t->match_count, 4);
	cr_expect_str_eq(t->match[0].unit, "a.service");
	cr_expect_eq(t->match[1].port_low, 3);
	cr_expect_str_eq(t->match[3].unit, "b\\x2dc.service");
	cr_expect_eq(t->match[2].port_high, 2);
}

Test(config, the_hash_follows_what_is_in_force_not_how_it_is_written)
{
	char hash[17];

	cr_assert_eq(read_text("mode = \"act\"; rules = ( { name = \"reader-slow\"; for = \"8s\"; } );"), 0);
	memcpy(hash, model->hash, sizeof(hash));
	cr_assert_eq(read_text("/* a comment */\nrules = ( { for = \"8000ms\"; name = \"reader-slow\"; } "
			       ")\nmode : \"act\""),
		     0);
	cr_expect_str_eq(model->hash, hash);
	cr_assert_eq(read_text("mode = \"act\"; rules = ( { name = \"reader-slow\"; for = \"9s\"; } );"), 0);
	cr_expect_str_neq(model->hash, hash);
}

Test(config, windows_of_clear_critical_and_undo_are_collected)
{
	cr_assert_eq(read_text("builtin_rules = false;"
			       "hooks = ( { name = \"h\"; kind = \"remedy\"; exec = [ \"/bin/true\" ];"
			       "	undo = { when = \"host.cpu.busy[20s] < 80%\"; }; } );"
			       "rules = ( { name = \"r\"; class = \"server\"; when = \"dwell.max[1s] > 1s "
			       "and known(dwell.p99[2s])\";"
			       "	clear = \"dwell.max[4s] < 1s\"; for = \"10s\"; targets = [ \"host\" "
			       "]; ladder = [ \"h\" ];"
			       "	critical = { when = \"dwell.max[5s] > 1s\"; }; } );"),
		     0, "%s", said(0));
	cr_assert_eq(model->window_count, 6);
	cr_expect_eq(model->window_ns[0], 10 * SECOND);
	cr_expect_eq(model->window_ns[1], SECOND);
	cr_expect_eq(model->window_ns[5], 20 * SECOND);
}

Test(config, c28_a_bad_file_leaves_the_model_as_it_was_and_names_line_and_token)
{
	struct model *before = malloc(sizeof(*before));
	char text[512];

	cr_assert(before);
	cr_assert_eq(read_text("mode = \"act\";"), 0);
	memcpy(before, model, sizeof(*before));
	cr_expect_eq(
		read_text("mode = \"act\";\n\n\n\n\n\nrules = ( { name = \"reader-slow\"; for = 5s; } );"),
		-EINVAL);
	cr_expect_eq(memcmp(before, model, sizeof(*before)), 0);
	cr_expect_eq(diag.errors, 1);
	cr_expect_eq(diag.entry[0].line, 7);
	diag_format(&diag.entry[0], text, sizeof(text));
	cr_expect(strstr(text, "test.conf:7: for: a quantity needs quotes: \"5s\""), "%s", text);
	cr_expect_eq(read_text("mode = \"atc\";"), -EINVAL);
	cr_expect_eq(memcmp(before, model, sizeof(*before)), 0);
	free(before);
}

Test(config, files_that_are_none)
{
	char *large = malloc((1 << 20) + 2);

	cr_assert(large);
	cr_expect_eq(config_read(path, NULL, &diag, model), -ENOENT);
	cr_expect(strstr(said(0), "No such file"), "%s", said(0));
	memset(&diag, 0, sizeof(diag));
	cr_expect_eq(config_read(dir, NULL, &diag, model), -EINVAL);
	cr_expect(strstr(said(0), "not a regular file"), "%s", said(0));
	cr_assert_eq(mkfifo(path, 0600), 0);
	memset(&diag, 0, sizeof(diag));
	cr_expect_eq(config_read(path, NULL, &diag, model), -EINVAL, "and it does not wait for a writer");
	cr_expect(strstr(said(0), "not a regular file"), "%s", said(0));
	unlink(path);
	memset(large, '\n', (1 << 20) + 1);
	large[(1 << 20) + 1] = '\0';
	cr_expect_eq(read_text(large), -EINVAL);
	cr_expect(strstr(said(0), "1 MiB"), "%s", said(0));
	large[1 << 20] = '\0';
	cr_expect_eq(read_text(large), 0, "one MiB is still read");
	put_bytes("mode = \"act\";", 13);
	if (geteuid() != 0) {
		memset(&diag, 0, sizeof(diag));
		chmod(path, 0);
		cr_expect_eq(config_read(path, NULL, &diag, model), -EINVAL);
		cr_expect(strstr(said(0), "Permission denied"), "%s", said(0));
	}
	free(large);
}

Test(config, many_entries_and_messages_are_counted_not_overrun)
{
	char *text = malloc(1 << 19);
	size_t n = 0;

	cr_assert(text);
	n += (size_t)sprintf(text + n, "rules = (");
	for (int i = 0; i < 400; i++)
		n += (size_t)sprintf(
			text + n, "%s{ name = \"r%d\"; class = \"server\"; when = \"dwell.oldest > 1s\"; }",
			i ? "," : "", i);
	sprintf(text + n, ");");
	cr_expect_eq(read_text(text), -EINVAL);
	n = (size_t)sprintf(text, "rules = (");
	for (int i = 0; i < 200; i++)
		n += (size_t)sprintf(text + n, "%s{ name = \"r%d\"; colour = 1; }", i ? "," : "", i);
	sprintf(text + n, ");");
	cr_expect_eq(read_text(text), -EINVAL);
	cr_expect_eq(diag.count, DIAG_MAX);
	cr_expect_gt(diag.dropped, 100);
	cr_expect_eq(diag.count + diag.dropped, diag.errors + diag.warnings);
	free(text);
}

static void print_to(char **ret)
{
	size_t size = 0;
	FILE *f = open_memstream(ret, &size);

	cr_assert(f);
	cr_expect_eq(config_print(model, f), 0);
	fclose(f);
}

Test(config, odd_quantities_survive_printing)
{
	char *text = NULL, hash[17];

	cr_assert_eq(read_text("params = { x = { slow = \"1.5us\"; a = \"0.1%\"; b = \"33.333333333%\"; c = "
			       "\"0.007/s\";"
			       " d = \"123456789012GiB\"; e = \"0\"; f = \"200d\"; }; };"
			       "rules = ( { name = \"r\"; class = \"server\"; when = \"dwell.oldest > 1s\";"
			       " summary = \"tab\\tquote\\\" \\x01 back\\\\slash \303\244\"; for = "
			       "\"1234567ns\"; } );"),
		     0, "%s", said(0));
	memcpy(hash, model->hash, sizeof(hash));
	print_to(&text);
	cr_expect_eq(read_text(text), 0, "%s", said(0));
	cr_expect_str_eq(model->hash, hash);
	free(text);
}

/* A file that touches every kind of token, then broken in all ways that a fixed seed gives. */
static const char seed_text[] =
	"# c\nmode = \"act\"; builtin_rules = true /* c */\n"
	"params = { media = { slow = \"10ms\"; at_most = \"warning\" }; };\n"
	"targets = ( { name = \"sfu\"; unit = [ \"a.service\", \"b\\\\x2d.service\" ]; ports = ( 5, \"6-7\" "
	"); profile = \"media\"; } );\n"
	"hooks = ( { name = \"h\"; kind = \"remedy\"; exec = [ \"/bin/true\", \"{target}\" ]; timeout = "
	"\"3s\"; user = \"root\";\n"
	"  undo = { after = \"5m\"; when = \"host.cpu.busy < 80%\"; }; credential = [ \"a:/b\" ]; },\n"
	" { name = \"p\"; kind = \"page\"; exec = [ \"/bin/true\" ]; on = [ \"fire\" ]; } );\n"
	"rules = ( { name = \"r\"; class = \"server\"; severity = \"info\"; targets = [ \"sfu\" ]; for = "
	"\"5s\"; clear_for = \"6s\";\n"
	"  when = \"dwell.p99 > $slow and dwell.max[3s] > 1s\"; clear = \"dwell.over(20ms)[3s] < 5%\" ; "
	"nodata = \"fire\";\n"
	"  critical = { when = \"dwell.max > 1s\"; for = \"9s\"; }; samples = { p99 = 0xC8; p50 = 20L; };\n"
	"  inhibits = [ \"reader-slow\" ]; ladder = [ \"h\" ]; notify = [ \"p\" ]; allow_network = FALSE;\n"
	"  summary = \"a \" // c\n \"b\"; } );\n";

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static size_t mutate(char *text, size_t size, uint64_t *state)
{
	static const char *const bits[] = {"\"",
					   "{",
					   "}",
					   "(",
					   ")",
					   "[",
					   "]",
					   ";",
					   "=",
					   ",",
					   "\\",
					   "/*",
					   "\n@include \"/etc/passwd\"\n",
					   "\xff",
					   "9999999999",
					   "\\x",
					   "%s",
					   "0x",
					   ".",
					   "L",
					   "'",
					   "true",
					   "\r",
					   "#",
					   "$",
					   "-"};
	const char *bit = bits[next_random(state) % (sizeof(bits) / sizeof(bits[0]))];
	const size_t at = next_random(state) % size, other = next_random(state) % size, n = strlen(bit);
	size_t length;

	switch (next_random(state) % 6) {
	case 0: /* one byte, any value, 0 too */
		text[at] = (char)next_random(state);
		return size;
	case 1: /* cut */
		return at + 1;
	case 2: /* take away */
		length = other % 40 < size - at - 1 ? other % 40 : 0;
		memmove(text + at, text + at + length, size - at - length);
		return size - length;
	case 3: /* repeat a piece elsewhere */
		length = (size - other) % 60;
		memmove(text + at + length, text + at, size - at);
		memmove(text + at, text + other, length);
		return size + length;
	case 4: /* swap */
		length = (size_t)(unsigned char)text[at];
		text[at] = text[other];
		text[other] = (char)length;
		return size;
	default: /* put in */
		memmove(text + at + n, text + at, size - at);
		memcpy(text + at, bit, n);
		return size + n;
	}
}

Test(config, the_seed_of_the_mutations_is_a_good_file)
{
	cr_expect_eq(read_text(seed_text), 0, "%s", said(0));
	cr_expect_eq(diag.errors, 0);
}

/* Every error must be told: -EINVAL with a message, or a model; what was read must print and read back. */
Test(config, two_thousand_broken_files_give_errors_and_no_crash, .timeout = 300)
{
	char *text = malloc(1 << 16), *again;
	uint64_t state = 42;
	unsigned int good = 0, bad = 0;

	cr_assert(text);
	for (int i = 0; i < 2000; i++) {
		size_t size = sizeof(seed_text) - 1;
		const uint64_t times = 1 + next_random(&state) % 4;
		int r;

		memcpy(text, seed_text, size);
		for (uint64_t k = 0; k < times; k++)
			size = mutate(text, size, &state);
		put_bytes(text, size);
		memset(&diag, 0, sizeof(diag));
		r = config_read(path, NULL, &diag, model);
		if (r < 0) {
			bad++;
			cr_assert_eq(r, -EINVAL);
			cr_assert_gt(diag.errors, 0, "mutation %d", i);
			continue;
		}
		good++;
		cr_assert_eq(diag.errors, 0, "mutation %d", i);
		again = NULL;
		print_to(&again);
		cr_assert_eq(read_text(again), 0, "mutation %d: %s", i, said(0));
		free(again);
	}
	for (int i = 0; i < 500; i++) {
		const size_t size = 1 + next_random(&state) % 3000;

		for (size_t k = 0; k < size; k++)
			text[k] = (char)next_random(&state);
		put_bytes(text, size);
		memset(&diag, 0, sizeof(diag));
		cr_assert_eq(config_read(path, NULL, &diag, model), -EINVAL, "random file %d", i);
	}
	/* both ways were really taken */
	cr_expect_gt(bad, 1000, "%u", bad);
	cr_expect_gt(good, 20, "%u", good);
	free(text);
}

Test(config, the_runner_gets_the_good_hooks_although_a_rule_is_broken)
{
	static const char text[] =
		"rules = ( { name = \"r\"; when = 5; } ); hooks = ( { name = \"bad\"; kind = \"page\"; },"
		" { name = \"good\"; kind = \"page\"; exec = [ \"/bin/true\" ]; } );";

	put_bytes(text, sizeof(text) - 1);
	cr_assert_eq(config_read_hooks(path, NULL, &diag, model), 0);
	cr_expect_eq(model->hook_count, 1);
	cr_expect_str_eq(model->hook[0].name, "good");
	cr_expect_eq(diag.errors, 1);
	cr_expect_eq(config_read(path, NULL, &diag, model), -EINVAL);
}
