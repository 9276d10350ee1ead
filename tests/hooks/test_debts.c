/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/saved_lines.h"
#include "act/saved_state.h"
#include "box.h"

#define FOUND_MAX 600

static char dir[64];
static sd_event *event;
static struct debts *debts;
static unsigned int damaged;

/* What was told: debts found at start, lines written. */
static struct { uint64_t seq; char hook[64], target[128], rule[64], alert_id[256]; } found[FOUND_MAX];
static unsigned int found_count;
static struct { enum debt_kind kind; uint64_t seq; int error; } told[FOUND_MAX];
static unsigned int told_count;

static void on_found(void *userdata, uint64_t seq, const char *hook, const char *target, const char *rule,
		     const char *alert_id)
{
	(void)userdata;
	found[found_count].seq = seq;
	snprintf(found[found_count].hook, sizeof(found[0].hook), "%s", hook);
	snprintf(found[found_count].target, sizeof(found[0].target), "%s", target);
	snprintf(found[found_count].rule, sizeof(found[0].rule), "%s", rule);
	snprintf(found[found_count++].alert_id, sizeof(found[0].alert_id), "%s", alert_id);
}

static void on_written(void *userdata, enum debt_kind kind, uint64_t seq, const char *hook, const char *target,
		       int error)
{
	(void)userdata;
	(void)hook;
	(void)target;
	told[told_count].kind = kind;
	told[told_count].seq = seq;
	told[told_count++].error = error;
}

static void setup(void)
{
	strcpy(dir, "/tmp/dwelld-debts-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_geq(sd_event_new(&event), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void teardown(void)
{
	debts_close(debts);
	debts = NULL;
	sd_event_unref(event);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(debts, .init = setup, .fini = teardown);

static void open_at(const char *path)
{
	found_count = told_count = 0;
	cr_assert_eq(debts_open(event, path, on_found, on_written, NULL, &damaged, &debts), 0);
}

static void reopen(void)
{
	debts_close(debts);
	open_at(dir);
}

/* Runs the loop until n lines were told, at most 10 s. */
static void until_told(unsigned int n)
{
	const uint64_t end = box_now_ns() + 10000000000ULL;

	while (told_count < n && box_now_ns() < end)
		sd_event_run(event, 100000);
	cr_assert_eq(told_count, n, "%u told, expected %u", told_count, n);
}

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static char *contents(const char *name)
{
	static char text[200000];
	FILE *f = fopen(path_of(name), "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = '\0';
	return text;
}

static void append(const char *text)
{
	FILE *f = fopen(path_of("owed"), "a");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static void owe(uint64_t seq)
{
	cr_assert_eq(debts_write(debts, DEBT_OWE, seq, "raise-cpu", "sfu", "reader-starved", "h-r-t-1"), 0);
}

Test(debts, a_debt_is_on_disk_when_it_is_told_and_is_found_at_the_next_start)
{
	open_at(dir);
	cr_expect_eq(found_count, 0);
	owe(7);
	cr_expect_eq(told_count, 0, "only the loop tells");
	until_told(1);
	cr_expect_eq(told[0].seq, 7);
	cr_expect_eq(told[0].error, 0);
	cr_expect(strstr(contents("owed"), "1 owe 7 raise-cpu sfu reader-starved h-r-t-1 "), "%s", contents("owed"));
	reopen();
	cr_assert_eq(found_count, 1);
	cr_expect_eq(found[0].seq, 7);
	cr_expect_str_eq(found[0].hook, "raise-cpu");
	cr_expect_str_eq(found[0].target, "sfu");
	cr_expect_str_eq(found[0].rule, "reader-starved");
	cr_expect_str_eq(found[0].alert_id, "h-r-t-1");
}

Test(debts, a_paid_debt_is_gone_at_the_next_start_and_its_number_is_remembered)
{
	open_at(dir);
	owe(7);
	owe(8);
	cr_assert_eq(debts_write(debts, DEBT_PAID, 7, "raise-cpu", "sfu", "reader-starved", "h-r-t-1"), 0);
	until_told(3);
	cr_expect_eq(told[2].kind, DEBT_PAID);
	reopen();
	cr_assert_eq(found_count, 1);
	cr_expect_eq(found[0].seq, 8);
	cr_assert_eq(debts_write(debts, DEBT_PAID, 8, "raise-cpu", "sfu", "", ""), 0);
	until_told(1);
	reopen();
	reopen();
	cr_expect_eq(found_count, 0);
	cr_expect_eq(debts_highest_seq(debts), 8, "compaction must not start the numbers anew");
}

Test(debts, hostile_names_come_back_as_they_were)
{
	const char *target = "a b\n%41\\x2d\x01\xff", *alert = "-";

	open_at(dir);
	cr_assert_eq(debts_write(debts, DEBT_OWE, 1, "h", target, "", alert), 0);
	until_told(1);
	reopen();
	cr_assert_eq(found_count, 1);
	cr_expect_str_eq(found[0].target, target);
	cr_expect_str_eq(found[0].rule, "");
	cr_expect_str_eq(found[0].alert_id, "-");
	cr_expect_eq(damaged, 0);
}

Test(debts, the_longest_names_fit_a_line)
{
	struct saved_line l = { .kind = SAVED_PAID, .seq = UINT64_MAX, .wall_us = UINT64_MAX }, back;
	char text[SAVED_LINE_MAX];
	int n;

	memset(l.hook, ' ', sizeof(l.hook) - 1);
	memset(l.target, '%', sizeof(l.target) - 1);
	memset(l.rule, '\n', sizeof(l.rule) - 1);
	memset(l.alert_id, '\xff', sizeof(l.alert_id) - 1);
	n = saved_line_format(&l, text, sizeof(text));
	cr_assert_gt(n, 0);
	text[n - 1] = '\0';
	cr_assert_eq(saved_line_parse(text, &back), 0);
	cr_expect_eq(memcmp(&l, &back, sizeof(l)), 0);
}

Test(debts, a_torn_last_line_is_dropped_and_the_next_line_is_whole)
{
	open_at(dir);
	owe(7);
	until_told(1);
	debts_close(debts);
	append("1 owe 8 raise-cpu sfu read");
	open_at(dir);
	cr_expect_eq(found_count, 1);
	cr_expect_eq(damaged, 0, "a power cut in the middle of a line is no damage: nothing was done for it");
	owe(9);
	until_told(1);
	reopen();
	cr_assert_eq(found_count, 2);
	cr_expect_eq(found[1].seq, 9);
}

Test(debts, a_line_of_another_checksum_is_damage_and_the_file_is_kept_aside)
{
	char *line;

	open_at(dir);
	owe(7);
	owe(8);
	until_told(2);
	debts_close(debts);
	line = contents("owed");
	*strstr(line, "raise-cpu") = 'R';	/* in the first of the two */
	truncate(path_of("owed"), 0);
	append(line);
	append("rubbish\n2 owe 9 h t r a 0 00000000\n\n");
	open_at(dir);
	cr_expect_eq(damaged, 4);
	cr_assert_eq(found_count, 1);
	cr_expect_eq(found[0].seq, 8);
	cr_expect(strstr(contents("owed.damaged"), "rubbish"));
	cr_expect_not(strstr(contents("owed"), "rubbish"));
	reopen();
	cr_expect_eq(damaged, 0);
	cr_expect_eq(found_count, 1);
}

Test(debts, compaction_leaves_what_is_owed_and_no_history)
{
	open_at(dir);
	for (uint64_t seq = 1; seq <= 100; seq++) {
		owe(seq);
		if (seq != 50)
			cr_assert_eq(debts_write(debts, DEBT_PAID, seq, "raise-cpu", "sfu", "", ""), 0);
		until_told(seq <= 50 ? (unsigned int)(2 * seq) - (seq == 50) : (unsigned int)(2 * seq) - 1);
	}
	reopen();
	cr_assert_eq(found_count, 1);
	cr_expect_eq(found[0].seq, 50);
	cr_expect_lt(strlen(contents("owed")), 200);
}

Test(debts, the_same_number_of_two_hooks_or_targets_are_two_debts)
{
	open_at(dir);
	cr_assert_eq(debts_write(debts, DEBT_OWE, 1, "a", "x", "r", ""), 0);
	cr_assert_eq(debts_write(debts, DEBT_OWE, 1, "b", "x", "r", ""), 0);
	cr_assert_eq(debts_write(debts, DEBT_OWE, 1, "a", "y", "r", ""), 0);
	cr_assert_eq(debts_write(debts, DEBT_PAID, 1, "a", "x", "r", ""), 0);
	until_told(4);
	reopen();
	cr_expect_eq(found_count, 2);
}

Test(debts, five_hundred_lines_at_once_are_taken_up_to_256_and_the_rest_is_refused_at_once)
{
	unsigned int taken = 0, refused = 0;

	open_at(dir);
	for (uint64_t seq = 1; seq <= 500; seq++) {
		const int r = debts_write(debts, DEBT_OWE, seq, "h", "t", "r", "");

		cr_assert(r == 0 || r == -ENOBUFS, "%d", r);
		taken += r == 0;
		refused += r != 0;
	}
	cr_expect_eq(taken, 256);
	cr_expect_eq(refused, 244);
	until_told(256);
	for (unsigned int i = 0; i < 256; i++) {
		cr_expect_eq(told[i].seq, i + 1, "in order");
		cr_expect_eq(told[i].error, 0);
	}
	for (uint64_t seq = 257; seq <= 500; seq++)
		cr_assert_eq(debts_write(debts, DEBT_OWE, seq, "h", "t", "r", ""), 0);
	until_told(500);
	reopen();
	cr_expect_eq(found_count, 500);
}

Test(debts, close_writes_what_still_waits)
{
	open_at(dir);
	for (uint64_t seq = 1; seq <= 100; seq++)
		owe(seq);
	reopen();
	cr_expect_eq(found_count, 100);
}

Test(debts, a_directory_that_cannot_be_made_is_an_error_of_each_line_not_of_the_start)
{
	char path[200];

	append("");
	snprintf(path, sizeof(path), "%s/state", path_of("owed"));	/* below a file */
	open_at(path);
	owe(1);
	owe(2);
	until_told(2);
	cr_expect_eq(told[0].error, -ENOTDIR, "%d", told[0].error);
	cr_expect_eq(told[1].error, -ENOTDIR);
}

/* The limits of a file system need one of our own. */
static void mount_small(const char *options)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
		cr_skip_test("needs root: mounts a file system of its own");
	cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	cr_assert_eq(mount("debts", dir, "tmpfs", 0, options), 0, "%s", strerror(errno));
}

Test(debts, a_full_disk_is_told_and_what_was_reported_as_failed_is_never_owed)
{
	char filler[4096];
	int fd, r = 0;

	mount_small("size=64k");
	open_at(dir);
	owe(1);
	until_told(1);
	cr_expect_eq(told[0].error, 0);
	fd = open(path_of("filler"), O_WRONLY | O_CREAT, 0600);
	memset(filler, 'x', sizeof(filler));
	while (r >= 0)
		r = (int)write(fd, filler, sizeof(filler));
	cr_assert_eq(errno, ENOSPC);
	for (uint64_t seq = 2; seq <= 100; seq++)	/* more than the last page of the file holds */
		owe(seq);
	until_told(100);
	cr_expect_eq(told[99].error, -ENOSPC, "%d", told[99].error);
	close(fd);
	unlink(path_of("filler"));
	owe(200);
	until_told(101);
	cr_expect_eq(told[100].error, 0, "%d", told[100].error);
	r = 0;
	for (unsigned int i = 0; i < told_count; i++)
		r += told[i].error == 0;
	reopen();
	cr_expect_eq(found_count, (unsigned int)r, "%u found, %d were told as written", found_count, r);
	cr_expect_eq(damaged, 0);
	debts_close(debts);
	debts = NULL;
	umount(dir);
}

Test(debts, a_read_only_directory_still_gives_its_debts_and_tells_each_line_that_fails)
{
	mount_small("size=64k");
	open_at(dir);
	owe(1);
	until_told(1);
	debts_close(debts);
	cr_assert_eq(mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	open_at(dir);
	cr_expect_eq(found_count, 1);
	owe(2);
	until_told(1);
	cr_expect_eq(told[0].error, -EROFS, "%d", told[0].error);
	debts_close(debts);
	debts = NULL;
	umount(dir);
}

Test(debts, a_state_directory_that_was_removed_is_told_and_one_that_comes_back_is_used)
{
	open_at(dir);
	owe(1);
	until_told(1);
	unlink(path_of("owed"));
	cr_assert_eq(rmdir(dir), 0);
	owe(2);
	until_told(2);
	cr_expect_eq(told[1].error, -ENOENT, "%d", told[1].error);
	cr_assert_eq(mkdir(dir, 0700), 0);
	owe(3);
	until_told(3);
	cr_expect_eq(told[2].error, 0);
	reopen();
	cr_expect_eq(found_count, 1);
}

Test(debts, a_debt_survives_kill_9_between_write_and_pay)
{
	int pipes[2], status;
	char byte;
	pid_t pid;

	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {	/* a daemon that writes its debt, reports it and never comes to pay */
		sd_event *own;

		if (sd_event_new(&own) < 0 ||
		    debts_open(own, dir, on_found, on_written, NULL, &damaged, &debts) < 0 ||
		    debts_write(debts, DEBT_OWE, 42, "drain", "sfu", "reader-busy", "h-b-s-2") < 0)
			_exit(1);
		while (!told_count)
			sd_event_run(own, 1000000);
		if (write(pipes[1], "w", 1) != 1)
			_exit(1);
		pause();
		_exit(2);
	}
	close(pipes[1]);
	cr_assert_eq(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
	open_at(dir);
	cr_assert_eq(found_count, 1);
	cr_expect_eq(found[0].seq, 42);
	cr_expect_str_eq(found[0].hook, "drain");
	cr_expect_eq(debts_highest_seq(debts), 42);
}
