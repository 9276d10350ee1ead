/* SPDX-License-Identifier: GPL-2.0-or-later */
/* status: the JSON against its schema, the metrics against promtool, both rendered by a real engine fed by hand. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed.h"

#include "decide/jsonw.h"
#include "decide/status.h"

static char buf[1 << 20];
static size_t length;
static const struct status_self self_known = { .version = "0.1.0", .boot_id = "b-o-o-t", .pid = 42, .cpu_share_known = true,
	.cpu_share = 0.003, .rss_known = true, .rss_bytes = 9000000, .tick_late_max_ns = 2 * MS, .uptime_ns = 90 * SEC };

static void render(void)
{
	cr_assert_eq(status_json(feed.engine, &self_known, buf, sizeof(buf), &length), 0);
	cr_assert_eq(strlen(buf), length);
}

static void metrics(void)
{
	cr_assert_eq(status_prometheus(feed.engine, &self_known, buf, sizeof(buf), &length), 0);
	cr_assert_eq(strlen(buf), length);
}

static bool has(const char *text)
{
	return strstr(buf, text) != NULL;
}

/* Feed buf to a command; its exit status. */
static int feed_to(const char *command)
{
	FILE *p = popen(command, "w");

	cr_assert_not_null(p);
	cr_assert_eq(fwrite(buf, 1, length, p), length);
	return WEXITSTATUS(pclose(p));
}

/* The part of the JSON that belongs to a target of a name, as far as the next target. */
static const char *part(const char *name)
{
	static char copy[1 << 16];
	char mark[200], *start, *end;

	snprintf(mark, sizeof(mark), "{\"name\":\"%s\",\"profile\"", name);
	start = strstr(buf, mark);
	cr_assert_not_null(start, "no target %s in %s", name, buf);
	snprintf(copy, sizeof(copy), "%s", start);
	end = strstr(copy + strlen(mark), "\"profile\":");
	if (end)
		*end = '\0';
	return copy;
}

#define cr_expect_has(where, text) cr_expect(strstr(where, text) != NULL, "no %s in %s", text, where)
#define cr_expect_lacks(where, text) cr_expect(strstr(where, text) == NULL, "%s in %s", text, where)

/* Everything happens: a hook in force, an alert, an unknown rule, RTP, a weak probe. */
static void busy_world(void)
{
	static struct sample_stream stream = { .id = 1, .target = SFU, .ssrc = 7, .expected = 100, .received = 100,
					       .jitter_known = true, .jitter_ns = 1200000 };
	struct model_rule *r;

	feed_model();
	feed.model.mode = MODE_ACT;
	strcpy(feed.model.hash, "0123456789abcdef");
	r = feed_starved();
	r->ladder = (int8_t)feed_hook("raise-cpu", HOOK_REMEDY, 20 * SEC, "host.cpu.busy < 80%");
	feed_rule("reader-slow", CLASS_SERVER, "dwell.p99 > $slow", NULL);
	feed_rule("network-loss", CLASS_NETWORK, "rtp.bad_streams > 20% and rtp.streams >= 1", NULL);
	feed_start();
	feed.sample.target[SFU].rcvbuf_known = true;
	feed.sample.target[SFU].rcvbuf_bytes = 212992;
	feed.sample.target[SFU].rtp_ever = true;
	feed.sample.stream = &stream;
	feed.sample.stream_count = 1;
	feed.sample.probe[0].exact = false;
	strcpy(feed.sample.probe[0].reason, "fentry: \"EPERM\"\n");
	strcpy(feed.sample.lost[0].name, "fifo_full");
	feed.sample.lost[0].count = 3;
	feed.sample.lost_count = 1;
	for (int i = 0; i < 80; i++) {
		stream.expected += 250;
		stream.received += 249;
		stream.last_ns = feed.sample.now_ns;
		feed.sample.target[SFU].counter[SAMPLE_RTP_EXPECTED] += 250;
		feed.sample.target[SFU].counter[SAMPLE_RTP_RECEIVED] += 249;
		feed.sample.host_counter[SAMPLE_HOST_CPU_BUSY] += 95;
		feed_slow(0.25);
	}
}

Test(status, a_busy_host_has_numbers_where_they_belong)
{
	const char *sfu;

	busy_world();
	render();
	cr_expect_has(buf, "{\"schema\":1,\"version\":\"0.1.0\",\"now\":\"2027-01-15T08:0");
	cr_expect_has(buf, "\"window_ns\":10000000000,\"boot_id\":\"b-o-o-t\",\"config_hash\":\"0123456789abcdef\",\"mode\":\"act\"");
	cr_expect_has(buf, "\"exact\":false,\"bias_ns\":0,\"reason\":\"fentry: \\\"EPERM\\\"\\u000a\"");
	cr_expect_has(buf, "\"lost\":{\"fifo_full\":3}");
	cr_expect_has(buf, "\"name\":\"reader-starved\",\"target\":\"sfu\",\"class\":\"server\"");
	cr_expect_has(buf, "\"evidence\":[{\"term\":\"dwell.p99\",\"value\":");
	cr_expect_has(buf, "\"summary\":\"reader-starved on sfu\"");
	cr_expect_has(buf, "{\"name\":\"raise-cpu\",\"target\":\"sfu\",\"state\":\"done\",\"last_result\":\"ok\"");
	cr_expect_has(buf, "\"budget_left\":null,\"kind\":\"remedy\"");
	sfu = part("sfu");
	cr_expect_has(sfu, "\"verdict\":\"server\",\"causes\":[\"reader-starved\"],\"configured\":true,\"unit\":\"sfu.service\",\"pids\":[4711]");
	cr_expect_has(sfu, "\"count\":10000,\"rate\":1000,");
	cr_expect_has(sfu, "\"share\":null");
	cr_expect_has(sfu, "\"irq2app\":null");
	cr_expect_has(sfu, "\"rtcp\":null,\"cpu\":null");
	cr_expect_has(sfu, "\"rcvbuf_bytes\":212992,\"set_by_application\":false");
	cr_expect_has(sfu, "\"streams\":1,\"loss\":0.004,");
}

Test(status, what_is_not_known_is_null_and_never_zero)
{
	const char *sfu;

	feed_model();
	feed_starved();
	feed_start();
	feed_probe("dwell", false);
	feed.sample.target[SFU].dist[SAMPLE_DIST_DWELL].known = false;
	feed.sample.target[SFU].oldest_known = feed.sample.target[SFU].fill_known = false;
	feed.sample.target[SFU].queued_known = false;
	feed.sample.target[SFU].counter_known = 0;
	feed.sample.host_known = 0;
	feed.sample.streams_known = false;
	feed_silence(12);
	render();
	sfu = part("sfu");
	cr_expect_has(sfu, "\"signals\":{\"dwell\":null,");
	cr_expect_has(sfu, "\"drops\":null,\"queue\":null,\"rtp\":null");
	cr_expect_has(buf, "\"squeezed\":null,\"nic_drops\":null,\"cpu\":{\"busy\":null},\"steal\":null");
	metrics();
	cr_expect_lacks(buf, "dwelld_dwell_seconds_count{target=\"sfu\"}");
	cr_expect_lacks(buf, "dwelld_drops_server_total{target=\"sfu\"}");
	cr_expect_lacks(buf, "dwelld_host_cpu_busy_ratio");
	cr_expect_lacks(buf, "dwelld_rule_firing{target=\"sfu\"");
	cr_expect_has(buf, "dwelld_verdict{target=\"sfu\",verdict=\"unknown\"} 1\n");
	cr_expect_has(buf, "dwelld_verdict{target=\"sfu\",verdict=\"ok\"} 0\n");
}

Test(status, c07_a_statistic_of_three_samples_is_null_singly_and_says_three_of)
{
	const char *sfu;

	feed_model();
	feed_rule("slow", CLASS_SERVER, "dwell.p99 > $slow", NULL)->samples[STAT_P99] = 200;
	feed_start();
	feed_silence(11);
	feed_dwell(SFU, 900 * MS, 3);
	feed_silence(1);
	render();
	sfu = part("sfu");
	cr_expect_has(sfu, "\"count\":3,");
	cr_expect_has(sfu, "\"p50_ns\":null,\"p90_ns\":null,\"p99_ns\":null,\"p999_ns\":null,\"max_ns\":88");
	cr_expect_has(buf, "\"have\":3,\"need\":200");
}

Test(status, c09_a_reader_that_stopped_shows_its_oldest_datagram)
{
	const char *sfu;

	feed_model();
	feed_start();
	feed.sample.target[SFU].oldest_ns = 8 * SEC;
	feed.sample.target[SFU].queued = 12;
	feed.sample.target[SFU].counter[SAMPLE_ENQUEUED] = 12;
	feed_silence(12);
	render();
	sfu = part("sfu");
	cr_expect_has(sfu, "\"oldest_ns\":8000000000");
	cr_expect_has(sfu, "\"queued\":12");
}

Test(status, before_the_first_tick_nothing_is_claimed)
{
	feed_model();
	feed_starved();
	feed_start();
	render();
	cr_expect_has(buf, "\"now\":null");
	cr_expect_has(buf, "\"verdict\":\"unknown\",\"probes\":[],\"targets\":[],\"host\":null,\"rules\":[]");
	metrics();
	cr_expect_has(buf, "dwelld_build_info{version=\"0.1.0\"} 1\n");
	cr_expect_lacks(buf, "dwelld_verdict{");
}

Test(status, a_buffer_of_any_size_is_either_enough_or_refused)
{
	size_t whole, size;

	busy_world();
	render();
	whole = length;
	for (size = 0; size <= whole; size += size < 200 ? 1 : 397) {
		char *small = malloc(size + 1);

		small[size] = 'x';
		cr_assert_eq(status_json(feed.engine, &self_known, small, size, &length), -ENOBUFS);
		cr_assert_eq(small[size], 'x');
		cr_assert_eq(status_prometheus(feed.engine, &self_known, small, size, &length), -ENOBUFS);
		cr_assert_eq(small[size], 'x');
		free(small);
	}
	cr_expect_eq(status_json(feed.engine, &self_known, buf, whole + 1, &length), 0);
}

Test(status, histograms_hold_every_datagram_once)
{
	char *numbers;
	double sum = 0;
	int n = 0;

	busy_world();
	cr_assert_eq(status_watch_json(feed.engine, &self_known, buf, sizeof(buf), &length), 0);
	cr_expect_eq(strncmp(buf, "{\"status\":{\"schema\":1,", 22), 0);
	cr_assert_eq(status_histograms_json(feed.engine, buf, sizeof(buf), &length), 0);
	numbers = strstr(buf, "{\"name\":\"sfu\",\"dwell\":[");
	cr_assert_not_null(numbers);
	for (numbers = strchr(numbers, '[') + 1; *numbers != ']'; n++) {
		sum += strtod(numbers, &numbers);
		numbers += *numbers == ',';
	}
	cr_expect_eq(n, 27);
	cr_expect_eq(sum, 10000);
}

#define SCHEMA_CHECK \
	"/usr/bin/python3 -c 'import json, sys, jsonschema;" \
	"jsonschema.Draft202012Validator(json.load(open(sys.argv[1]))).validate(json.load(sys.stdin))' '" SOURCE_ROOT "/conf/status.schema.json'"
static const char schema_check[] = SCHEMA_CHECK, schema_check_quiet[] = SCHEMA_CHECK " 2>/dev/null";

Test(status, the_json_obeys_its_schema)
{
	if (system("/usr/bin/python3 -c 'import jsonschema' 2>/dev/null") != 0) {
		fputs("SKIPPED: python3-jsonschema is missing, the schema was NOT checked\n", stderr);
		cr_skip_test("python3-jsonschema is missing");
	}
	busy_world();
	render();
	cr_expect_eq(feed_to(schema_check), 0, "busy: %s", buf);
	feed.sample.host_known = 0;
	feed.sample.target[SFU].dist[SAMPLE_DIST_DWELL].known = false;
	feed_silence(12);
	render();
	cr_expect_eq(feed_to(schema_check), 0, "half blind: %s", buf);
	feed_model();
	feed_start();
	render();
	cr_expect_eq(feed_to(schema_check), 0, "before the first tick: %s", buf);
	length = (size_t)snprintf(buf, sizeof(buf), "{\"schema\":1}");
	cr_expect_neq(feed_to(schema_check_quiet), 0, "the check can fail");
}

Test(status, promtool_has_no_complaint)
{
	if (system("promtool --version >/dev/null 2>&1") != 0) {
		fputs("SKIPPED: promtool (package prometheus) is missing, the metrics were NOT checked\n", stderr);
		cr_skip_test("promtool is missing");
	}
	busy_world();
	strcpy(feed.sample.target[DNS].name, "a\"b\\c\n\xff");
	feed.sample.target[DNS].used = true;
	feed_slow(1);
	metrics();
	cr_expect(has("target=\"a\\\"b\\\\c\\n?\""), "escaped: %s", buf);
	cr_expect(has("dwelld_dwell_seconds_bucket{target=\"sfu\",le=\"+Inf\"} 21000\n"), "%s", buf);
	cr_expect(has("dwelld_dwell_seconds_count{target=\"sfu\"} 21000\n"));
	cr_expect(has("dwelld_dwell_window_seconds{target=\"sfu\",stat=\"p99\"} 0.0"));
	cr_expect(has("dwelld_rule_firing{target=\"sfu\",rule=\"reader-starved\",class=\"server\"} 1\n"));
	cr_expect(has("dwelld_rtp_jitter_seconds{target=\"sfu\"} 0.0012"), "%s", strstr(buf, "# HELP dwelld_rtp_jitter"));
	cr_expect_eq(feed_to("promtool check metrics"), 0, "%s", buf);
	length = (size_t)snprintf(buf, sizeof(buf), "# TYPE dwelld_x counter\ndwelld_x 1\n");
	cr_expect_neq(feed_to("promtool check metrics 2>/dev/null"), 0, "the check can fail");
}

Test(jsonw, strings_are_escaped_and_bad_utf8_is_replaced)
{
	struct jsonw w;
	char out[200];

	jsonw_start(&w, out, sizeof(out));
	jsonw_array(&w, NULL);
	jsonw_string(&w, NULL, "a\"\\\n\x7f");
	jsonw_string(&w, NULL, "\xc2\x9b\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80");
	jsonw_string(&w, NULL, "\xff\xc0\x80\xed\xa0\x80\xe2\x82");
	jsonw_string_or_null(&w, NULL, "");
	jsonw_array_end(&w);
	cr_assert_eq(jsonw_finish(&w, &length), 0);
	cr_expect_str_eq(out, "[\"a\\\"\\\\\\u000a\\u007f\",\"\\u009b\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\","
			 "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\",null]");
}

Test(jsonw, numbers_stay_exact_or_become_null)
{
	struct jsonw w;
	char out[300];

	jsonw_start(&w, out, sizeof(out));
	jsonw_object(&w, NULL);
	jsonw_uint(&w, "a", UINT64_MAX);
	jsonw_int(&w, "b", INT64_MIN);
	jsonw_double(&w, "c", 0.051);
	jsonw_double(&w, "d", __builtin_nan(""));
	jsonw_double(&w, "e", __builtin_inf());
	jsonw_bool(&w, "f", true);
	jsonw_object(&w, "g");
	jsonw_object_end(&w);
	jsonw_int(&w, "h", -5);
	jsonw_object_end(&w);
	cr_assert_eq(jsonw_finish(&w, &length), 0);
	cr_expect_str_eq(out, "{\"a\":9007199254740991,\"b\":-9007199254740991,\"c\":0.051,\"d\":null,\"e\":null,"
			 "\"f\":true,\"g\":{},\"h\":-5}");
}
