/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/hook_client.h"
#include "act/hook_request.h"
#include "box.h"

#define S(n) ((uint64_t)(n) * 1000000000ULL)
#define TICK_US 10000

static struct box box;
static sd_event *event;
static struct hook_client *client;

static struct { char hook[64], target[128], line[512]; uint64_t seq; struct run_result result; } done[64];
static unsigned int done_count;

/* The loop's lateness is measured by a timer beside the runs: the longest time between two of its ticks. */
static uint64_t last_tick_ns, worst_tick_ns;

static void on_done(void *userdata, const char *hook, const char *target, uint64_t seq, struct run_result result,
		    const char *line)
{
	(void)userdata;
	snprintf(done[done_count].hook, sizeof(done[0].hook), "%s", hook);
	snprintf(done[done_count].target, sizeof(done[0].target), "%s", target);
	snprintf(done[done_count].line, sizeof(done[0].line), "%s", line);
	done[done_count].seq = seq;
	done[done_count++].result = result;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
	const uint64_t now = box_now_ns();

	(void)usec;
	(void)userdata;
	if (last_tick_ns && now - last_tick_ns > worst_tick_ns)
		worst_tick_ns = now - last_tick_ns;
	last_tick_ns = now;
	sd_event_source_set_time_relative(source, TICK_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void client_with(const char *runner)
{
	const struct hook_client_setup setup = { .runner = runner, .config = box.config, .runs_dir = box.runs };

	cr_assert_geq(sd_event_new(&event), 0);
	cr_assert_eq(hook_client_new(event, &setup, on_done, NULL, &client), 0);
	cr_assert_geq(sd_event_add_time_relative(event, NULL, CLOCK_MONOTONIC, TICK_US, 1, on_tick, NULL), 0);
}

static void setup(void)
{
	box_open(&box);
	cr_assert_not_null(getenv("DWELLD_HOOK_RUN"), "DWELLD_HOOK_RUN names no runner");
	client_with(getenv("DWELLD_HOOK_RUN"));
}

static void teardown(void)
{
	hook_client_free(client);
	sd_event_unref(event);
	box_close(&box);
}

TestSuite(hook_client, .init = setup, .fini = teardown);

static const struct event starved = {
	.kind = EVENT_FIRE, .alert_id = "host-reader-starved-sfu-1", .rule = "reader-starved", .target = "sfu",
	.unit = "janus.service", .pids = { 10, 11 }, .pid_count = 2, .class = CLASS_SERVER,
	.severity = SEVERITY_WARNING, .state = STATE_FIRING, .prev_state = STATE_PENDING,
	.summary = "the threads that read sfu wait for a CPU",
};

static int start_on(const char *hook, const char *target, uint64_t seq, uint64_t timeout_ns)
{
	const struct hook_request q = { .hook = hook, .target = target, .action = "do", .seq = seq, .attempt = 1,
					.timeout_ns = timeout_ns, .event = &starved };

	return hook_client_run(client, &q);
}

static void start(const char *hook, uint64_t seq, uint64_t timeout_ns)
{
	cr_assert_eq(start_on(hook, "sfu", seq, timeout_ns), 0);
}

/* Runs the loop until n runs were told, at most 30 s. */
static void until_done(unsigned int n)
{
	const uint64_t end = box_now_ns() + S(30);

	while (done_count < n && box_now_ns() < end)
		sd_event_run(event, 100000);
	cr_assert_eq(done_count, n, "%u runs were told, expected %u", done_count, n);
}

static const char *script(const char *format)
{
	static char text[2048];

	snprintf(text, sizeof(text), "cd %s\n%s", box.dir, format);
	return text;
}

Test(hook_client, a_good_run_comes_back_through_the_loop_with_its_last_line)
{
	box_hook(&box, "good", "", "echo weight=1000 was=100");
	start("good", 3, S(10));
	cr_expect_eq(done_count, 0, "never from inside the call");
	cr_expect_eq(hook_client_running(client), 1);
	until_done(1);
	cr_expect_eq(hook_client_running(client), 0);
	cr_expect_str_eq(done[0].hook, "good");
	cr_expect_str_eq(done[0].target, "sfu");
	cr_expect_eq(done[0].seq, 3);
	cr_expect_eq(done[0].result.exit_code, 0);
	cr_expect_str_eq(done[0].line, "weight=1000 was=100");
}

Test(hook_client, c43_codes_and_signals_come_through)
{
	box_hook(&box, "later", "", "exit 75");
	box_hook(&box, "segv", "", "kill -SEGV $$");
	box_hook(&box, "none", "", "no-such-command");
	start("later", 1, S(10));
	until_done(1);
	cr_expect_eq(done[0].result.exit_code, 75);
	start("segv", 2, S(10));
	until_done(2);
	cr_expect_eq(done[1].result.signal, SIGSEGV);
	cr_expect_str_eq(done[1].line, "killed by SIGSEGV");
	start("none", 3, S(10));
	until_done(3);
	cr_expect_eq(done[2].result.exit_code, 127);
	cr_expect(strstr(done[2].line, "not found"), "%s", done[2].line);
}

Test(hook_client, c34_a_hung_hook_is_ended_and_the_loop_is_never_late)
{
	box_hook(&box, "hang", "timeout = \"1s\";", "trap '' TERM\nsetsid sh -c 'trap \"\" TERM; sleep 900' &\nwhile :; do sleep 900; done");
	start("hang", 1, S(1));
	until_done(1);
	cr_expect(done[0].result.timeout);
	cr_expect_not(done[0].result.lost);
	cr_expect(strstr(done[0].line, "SIGKILL"), "%s", done[0].line);
	cr_expect_gt(last_tick_ns, 0);
	cr_expect_lt(worst_tick_ns, 100000000, "a tick came after %.1f ms", (double)worst_tick_ns / 1e6);
}

Test(hook_client, a_runner_that_is_missing_is_a_result_and_names_itself)
{
	hook_client_free(client);
	sd_event_unref(event);
	client_with("/no/such/runner");
	start("good", 1, S(10));
	cr_expect_eq(done_count, 0, "never from inside the call");
	until_done(1);
	cr_expect_eq(done[0].result.exit_code, 69, "nothing ran: refused, no debt");
	cr_expect(strstr(done[0].line, "/no/such/runner: No such file"), "%s", done[0].line);
	cr_expect_eq(hook_client_running(client), 0);
}

/* A runner of ours: a script in the box. */
static void client_with_script(const char *text)
{
	char whole[1024];

	hook_client_free(client);
	sd_event_unref(event);
	snprintf(whole, sizeof(whole), "#!/bin/sh\n%s\n", text);
	client_with(box_file(&box, "runner", 0755, whole));
}

Test(hook_client, a_runner_that_hangs_gets_term_then_kill_and_the_run_is_lost)
{
	const uint64_t begin = box_now_ns();

	client_with_script("trap '' TERM; echo noise; while :; do sleep 900; done");
	start("any", 1, 0);	/* 0 + 5 s: TERM, + 3 s: KILL */
	until_done(1);
	cr_expect(done[0].result.lost);
	cr_expect(strstr(done[0].line, "killed by signal 9"), "%s", done[0].line);
	cr_expect_lt(box_now_ns() - begin, S(11));
	cr_expect_lt(worst_tick_ns, 100000000, "a tick came after %.1f ms", (double)worst_tick_ns / 1e6);
}

Test(hook_client, a_runner_that_says_nothing_or_nonsense_is_lost_not_good)
{
	client_with_script("echo result exit=0; exit 0");
	start("any", 1, S(10));
	until_done(1);
	cr_expect(done[0].result.lost, "%s", done[0].line);
	client_with_script("exit 2");
	start("any", 2, S(10));
	until_done(2);
	cr_expect_not(done[1].result.lost);
	cr_expect_eq(done[1].result.exit_code, 64);
}

Test(hook_client, a_runner_that_floods_its_stdout_does_not_hold_the_loop)
{
	client_with_script("head -c 50000000 /dev/zero; echo; echo result exit=0 signal=0 timeout=0 lost=0 ran=1 line=x");
	start("any", 1, S(10));
	until_done(1);
	cr_expect(done[0].result.lost, "its answer is past what is kept");
	cr_expect_lt(worst_tick_ns, 200000000, "a tick came after %.1f ms", (double)worst_tick_ns / 1e6);
}

Test(hook_client, runs_of_two_targets_go_side_by_side)
{
	box_hook(&box, "meet", "timeout = \"20s\";", script("touch here.$DWELLD_TARGET; while [ ! -e here.a ] || [ ! -e here.b ]; do sleep 0.02; done; echo met"));
	cr_assert_eq(start_on("meet", "a", 1, S(20)), 0);
	cr_assert_eq(start_on("meet", "b", 2, S(20)), 0);
	cr_expect_eq(hook_client_running(client), 2);
	until_done(2);
	cr_expect_str_eq(done[0].line, "met");
	cr_expect_str_eq(done[1].line, "met");
}

Test(hook_client, free_ends_what_runs_and_tells_nothing_more)
{
	const uint64_t begin = box_now_ns();

	box_hook(&box, "long", "timeout = \"60s\";", script("echo $$ > long.new; mv long.new long.pid; sleep 900"));
	start("long", 1, S(60));
	cr_assert(box_appears(&box, "long.pid"));
	hook_client_free(client);
	client = NULL;
	cr_expect_lt(box_now_ns() - begin, S(8));
	cr_expect_eq(done_count, 0);
	cr_expect(box_is_gone((pid_t)atoi(box_read(&box, "long.pid"))));
}

Test(hook_client, the_hook_gets_the_event_as_environment_and_json)
{
	box_hook(&box, "event", "", script("cat > event.json; echo \"$DWELLD_ACTION $DWELLD_EVENT $DWELLD_RULE $DWELLD_UNIT $DWELLD_PIDS $DWELLD_CLASS $DWELLD_SEVERITY $DWELLD_ALERT_ID\""));
	start("event", 12, S(10));
	until_done(1);
	cr_expect_str_eq(done[0].line, "do fire reader-starved janus.service 10 11 server warning host-reader-starved-sfu-1");
	cr_expect(strstr(box_read(&box, "event.json"), "\"seq\":12"), "%s", box_read(&box, "event.json"));
}

Test(hook_client, a_request_without_names_is_refused_at_once)
{
	const struct hook_request q = { .hook = "", .target = "t", .action = "do", .attempt = 1, .event = &starved };

	cr_expect_eq(hook_client_run(client, &q), -EINVAL);
	cr_expect_eq(hook_client_running(client), 0);
}

Test(hook_client, no_descriptor_and_no_child_is_left_after_many_runs)
{
	unsigned int before = 0, after = 0;

	box_hook(&box, "quick", "", "exit 0");
	start("quick", 1, S(10));
	until_done(1);
	for (int fd = 0; fd < 256; fd++)
		before += fcntl(fd, F_GETFD) >= 0;
	for (uint64_t seq = 2; seq <= 21; seq++) {
		start("quick", seq, S(10));
		until_done((unsigned int)seq);
	}
	for (int fd = 0; fd < 256; fd++)
		after += fcntl(fd, F_GETFD) >= 0;
	cr_expect_eq(after, before, "%u descriptors, %u before", after, before);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1);
	cr_expect_eq(errno, ECHILD);
}

/* ---- the JSON; needs no root ---- */

static void expect_valid(const char *json)
{
	char path[] = "/tmp/dwelld-event-XXXXXX", command[512];
	const int fd = mkstemp(path);
	int status;

	if (!getenv("DWELLD_EVENT_SCHEMA") || system("python3 -c 'import jsonschema' 2>/dev/null") != 0) {
		close(fd);
		unlink(path);
		cr_skip_test("needs python3-jsonschema: the event is NOT checked against its schema");
	}
	cr_assert_eq(write(fd, json, strlen(json)), (ssize_t)strlen(json));
	close(fd);
	snprintf(command, sizeof(command), "python3 -c 'import json,sys,jsonschema; jsonschema.validate("
		 "json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))' %s %s", path,
		 getenv("DWELLD_EVENT_SCHEMA"));
	status = system(command);
	unlink(path);
	cr_expect_eq(status, 0, "not as the schema says: %s", json);
}

Test(event_json, an_event_of_each_kind_and_an_empty_one_fit_the_schema)
{
	char json[16384];
	struct event e = { 0 };

	cr_assert_eq(hook_event_json(&e, "notify", "page", 1, 1, json, sizeof(json)), 0);
	expect_valid(json);
	e = starved;
	e.value_known = true;
	e.value = 41e6;
	e.threshold = 10e6;
	e.peak = NAN;
	e.dim = UNIT_TIME;
	e.started_us = 1796000000123456;
	e.evidence_count = 2;
	strcpy(e.evidence[0].term, "dwell.p99");
	e.evidence[0].known = true;
	e.evidence[0].value = 41e6;
	e.evidence[0].dim = UNIT_TIME;
	strcpy(e.evidence[1].term, "runq.p99");
	cr_assert_eq(hook_event_json(&e, "do", "raise-cpu", UINT32_MAX, 4, json, sizeof(json)), 0);
	cr_expect(strstr(json, "\"started\":\"2026-11-30T"), "%s", json);
	cr_expect(strstr(json, "{\"term\":\"runq.p99\",\"value\":null"), "unknown is null: %s", json);
	expect_valid(json);
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++) {
		char wanted[64];

		e.kind = (enum event_kind)kind;
		cr_assert_eq(hook_event_json(&e, "do", "raise-cpu", 1, 1, json, sizeof(json)), 0);
		snprintf(wanted, sizeof(wanted), "\"event\":\"%s\"", event_kind_name(e.kind));
		cr_expect(strstr(json, wanted), "%s", json);
	}
}

Test(event_json, hostile_bytes_stay_inside_their_string)
{
	char json[16384];
	struct event e = starved;

	strcpy(e.target, "a\",\"hook\":\"x\n\\\x01\xff\xc0\xaf\xe2\x82");
	strcpy(e.summary, "line one\nline two\r\t\x1b[31m\x7f");
	cr_assert_eq(hook_event_json(&e, "do", "raise-cpu", 1, 1, json, sizeof(json)), 0);
	for (const char *p = json; *p; p++)
		cr_expect_geq((unsigned char)*p, 0x20, "a raw control byte at %zu", (size_t)(p - json));
	cr_expect(strstr(json, "a\\\",\\\"hook\\\":"), "%s", json);
}

Test(event_json, a_small_buffer_is_told)
{
	char json[100];

	cr_expect_eq(hook_event_json(&starved, "do", "raise-cpu", 1, 1, json, sizeof(json)), -ENOBUFS);
}

Test(event_json, the_runners_answer_is_read_whole_or_not_at_all)
{
	struct run_result result;
	char line[16];

	cr_expect(hook_request_result("result exit=3 signal=0 timeout=1 lost=0 ran=1 line=a b\n", &result, line, sizeof(line)));
	cr_expect_eq(result.exit_code, 3);
	cr_expect(result.timeout);
	cr_expect_str_eq(line, "a b");
	cr_expect(hook_request_result("noise\nresult exit=-1 signal=9 timeout=0 lost=0 ran=1 line=\n", &result, line, sizeof(line)));
	cr_expect_eq(result.signal, 9);
	cr_expect_str_eq(line, "");
	cr_expect_not(hook_request_result("", &result, line, sizeof(line)));
	cr_expect_not(hook_request_result("result exit=0 signal=0\n", &result, line, sizeof(line)));
	cr_expect_not(hook_request_result("my result exit=0 signal=0 timeout=0 lost=0 ran=1 line=\n", &result, line, sizeof(line)));
}
