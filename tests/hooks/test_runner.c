/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dwelld-hook-run as the daemon and a hook see it: a real process, real hooks. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "box.h"

static struct box box;
static struct box_answer answer;	/* large */

static void setup(void)
{
	box_open(&box);
}

static void teardown(void)
{
	box_close(&box);
}

TestSuite(runner, .init = setup, .fini = teardown);

/* Asks for a do of this hook with a number of its own. */
static void ask(const char *hook)
{
	static uint64_t seq = 1;

	box_ask(&box, &(struct box_question){ .hook = hook, .action = "do", .seq = seq++, .attempt = 1 }, &answer);
}

static void ask_with(const char *hook, const char *action, uint64_t seq, uint32_t attempt)
{
	box_ask(&box, &(struct box_question){ .hook = hook, .action = action, .seq = seq, .attempt = attempt },
		&answer);
}

/* A script's line that writes to a file of the box. */
static const char *script(const char *format)
{
	static char text[4][2048];
	static unsigned int n;
	char *to = text[n++ % 4];

	snprintf(to, sizeof(text[0]), "cd %s\n%s", box.dir, format);
	return to;
}

Test(runner, c43_exit_codes_come_back_as_they_are_with_the_last_line)
{
	const int codes[] = { 0, 1, 64, 69, 75, 78, 80, 126, 255 };
	char name[16], text[64];

	for (unsigned int i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		snprintf(name, sizeof(name), "exit%d", codes[i]);
		snprintf(text, sizeof(text), "echo first\necho weight=%d\nexit %d", codes[i], codes[i]);
		box_hook(&box, name, "", text);
		ask(name);
		cr_expect_eq(answer.exit_code, codes[i], "%s", answer.out);
		cr_expect_eq(answer.signal + answer.timeout + answer.lost, 0);
		cr_expect_eq(answer.ran, 1);
		snprintf(text, sizeof(text), "weight=%d", codes[i]);
		cr_expect_str_eq(answer.line, text);
		cr_expect_eq(answer.status, 0);
	}
}

Test(runner, c43_a_command_that_is_not_found_and_a_segmentation_fault_are_named)
{
	box_hook(&box, "lost", "", "no-such-command-here");
	ask("lost");
	cr_expect_eq(answer.exit_code, 127);
	cr_expect(strstr(answer.line, "not found"), "%s", answer.line);

	box_hook(&box, "crash", "", "kill -SEGV $$");
	ask("crash");
	cr_expect_eq(answer.exit_code, -1);
	cr_expect_eq(answer.signal, SIGSEGV);
	cr_expect_str_eq(answer.line, "killed by SIGSEGV");
}

Test(runner, the_environment_is_complete_and_holds_nothing_else)
{
	static const char *const names[] = {
		"DWELLD_CONTRACT=1", "DWELLD_ACTION=do", "DWELLD_EVENT=fire", "DWELLD_HOOK=env",
		"DWELLD_RULE=reader-starved", "DWELLD_TARGET=sfu", "DWELLD_UNIT=janus.service",
		"DWELLD_CGROUP=/system.slice/janus.service", "DWELLD_PIDS=12 13", "DWELLD_PORTS=5000,5002-5004",
		"DWELLD_CLASS=server", "DWELLD_SEVERITY=warning", "DWELLD_ALERT_ID=h-r-t-1", "DWELLD_SEQ=7",
		"DWELLD_ATTEMPT=1", "DWELLD_SUMMARY=threads wait; $(reboot)", "DWELLD_HOST=", "DWELLD_DEADLINE=",
		"DWELLD_DRY_RUN=0", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LC_ALL=C.UTF-8", "TZ=UTC", "HOME=/nonexistent", "STATE_DIRECTORY=",
	};
	const char *extra = "target=sfu\nevent=fire\nrule=reader-starved\nunit=janus.service\n"
			    "cgroup=/system.slice/janus.service\npids=12 13\nports=5000,5002-5004\nclass=server\n"
			    "severity=warning\nalert_id=h-r-t-1\nsummary=threads wait; $(reboot)\n";
	const char *const text = answer.err, *found;
	char wanted[300];
	unsigned int lines = 0;
	long deadline;

	/* env itself, so that no shell adds variables of its own */
	box_exec(&box, "env", "timeout = \"5s\";", "\"/usr/bin/env\"");
	box_ask(&box, &(struct box_question){ .hook = "env", .action = "do", .seq = 7, .attempt = 1, .extra = extra },
		&answer);
	cr_assert_eq(answer.exit_code, 0, "%s", answer.err);
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(wanted, sizeof(wanted), "hook env[7]: %s", names[i]);
		cr_expect(strstr(text, wanted), "missing: %s", names[i]);
	}
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	cr_expect_eq(lines, sizeof(names) / sizeof(names[0]), "something else is in it:\n%s", text);
	found = strstr(text, "DWELLD_DEADLINE=");
	cr_assert_not_null(found);
	deadline = atol(found + 16);
	cr_expect(deadline >= time(NULL) && deadline <= time(NULL) + 6, "%ld", deadline);
	snprintf(wanted, sizeof(wanted), "STATE_DIRECTORY=%s/hooks/env\n", box.dir);
	cr_expect(strstr(text, wanted), "%s", text);
}

Test(runner, a_hook_has_stdin_stdout_stderr_and_no_other_descriptor)
{
	box_hook(&box, "fds", "", "ls /proc/self/fd | tr '\\n' ' '");
	ask("fds");
	cr_expect_str_eq(answer.line, "0 1 2 3 ", "3 is ls's own directory: %s", answer.line);
}

Test(runner, stdin_is_the_event_as_a_sealed_file)
{
	box_hook(&box, "stdin", "", script("cat > got; echo x 2>/dev/null >> /proc/self/fd/0 && echo written || echo sealed"));
	ask("stdin");
	cr_expect_str_eq(box_read(&box, "got"), "{\"contract\": 1}");
	cr_expect_str_eq(answer.line, "sealed");
}

Test(runner, directory_mask_session_and_signals_are_as_promised)
{
	box_hook(&box, "place", "", "echo \"$(pwd) $(umask) $(cut -d' ' -f6 /proc/$$/stat | grep -cx $$) "
				    "$(grep -c 'SigBlk:.0000000000000000' /proc/$$/status)\"");
	ask("place");
	cr_expect_str_eq(answer.line, "/ 0077 1 1", "%s", answer.line);
}

Test(runner, the_hook_runs_as_its_user_with_that_users_groups_only)
{
	const struct passwd *pw = getpwnam("nobody");
	char wanted[64];

	if (!pw)
		cr_skip_test("needs the user nobody");
	snprintf(wanted, sizeof(wanted), "%d %d %d", pw->pw_uid, pw->pw_gid, pw->pw_gid);
	box_hook(&box, "user", "user = \"nobody\";", "echo \"$(id -u) $(id -g) $(id -G)\"");
	ask("user");
	cr_expect_str_eq(answer.line, wanted, "%s %s", answer.line, answer.err);
	box_hook(&box, "raise", "user = \"nobody\";", "grep CapEff /proc/self/status");
	ask("raise");
	cr_expect(strstr(answer.line, "0000000000000000"), "%s", answer.line);
	box_hook(&box, "opens", "user = \"nobody\";", "echo a > /dev/stderr; cat /dev/stdin > /dev/null && echo b > /dev/stdout");
	ask("opens");
	cr_expect_str_eq(answer.line, "b", "%s", answer.err);
}

Test(runner, a_page_hook_whose_user_does_not_exist_is_refused_with_the_name)
{
	box_hook(&box, "page", "kind = \"page\"; user = \"no-such-user\";", "touch ran");
	ask_with("page", "notify", 1, 1);
	cr_expect_eq(answer.exit_code, 78);
	cr_expect_eq(answer.ran, 0);
	cr_expect(strstr(answer.line, "no-such-user"), "%s", answer.line);
}

Test(runner, state_directory_is_kept_between_runs_and_belongs_to_the_user)
{
	box_hook(&box, "state", "user = \"nobody\";", "cat \"$STATE_DIRECTORY/n\" 2>/dev/null; echo kept > \"$STATE_DIRECTORY/n\"");
	ask("state");
	cr_expect_str_eq(answer.line, "", "%s", answer.line);
	cr_expect_eq(answer.exit_code, 0, "%s", answer.err);
	ask("state");
	cr_expect_str_eq(answer.line, "kept");
}

Test(runner, a_credential_is_readable_by_the_runs_user_alone_and_gone_afterwards)
{
	char keys[400], *path;

	snprintf(keys, sizeof(keys), "user = \"nobody\"; credential = [ \"token:%s\" ];",
		 box_file(&box, "secret", 0600, "s3cret\n"));
	box_hook(&box, "cred", keys, "stat -c '%a %U' \"$CREDENTIALS_DIRECTORY\" \"$CREDENTIALS_DIRECTORY/token\" | tr '\\n' ' ' >&2\n"
				     "env | grep -c s3cret >&2\n"
				     "cat \"$CREDENTIALS_DIRECTORY/token\" > /dev/null && echo \"$CREDENTIALS_DIRECTORY\"");
	ask("cred");
	cr_expect_eq(answer.exit_code, 0, "%s", answer.err);
	cr_expect(strstr(answer.err, "500 nobody 400 nobody 0"), "%s", answer.err);
	path = answer.line;
	cr_expect_eq(path[0], '/', "%s", path);
	cr_expect_neq(access(path, F_OK), 0, "%s is still there", path);

	cr_assert_eq(chmod(box_file(&box, "secret", 0600, "x"), 0666), 0);
	ask("cred");
	cr_expect_eq(answer.exit_code, 73);
	cr_expect(strstr(answer.line, "writable by everybody"), "%s", answer.line);
}

Test(runner, placeholders_are_replaced_inside_arguments_and_cannot_break_out)
{
	const char *extra = "target=-rf\nunit=a\\x2db.service\nrule=x'; reboot #\ncgroup=/c/\\d\nports=5000,5002\n";
	char exec[700];

	box_hook(&box, "args-script", "", "for a; do printf '<%s>' \"$a\"; done; echo");
	snprintf(exec, sizeof(exec), "\"%s/args-script\", \"{target}\", \"--unit={unit}\", \"{rule}\", "
		 "\"{cgroup}:{ports}\", \"plain\"", box.dir);
	box_exec(&box, "args", "", exec);
	box_ask(&box, &(struct box_question){ .hook = "args", .action = "do", .seq = 1, .attempt = 1, .extra = extra },
		&answer);
	cr_expect_str_eq(answer.line, "<_rf><--unit=a\\x2db.service><x___reboot__></c/_d:5000,5002><plain>", "%s",
			 answer.line);
}

Test(runner, output_is_tagged_cleaned_and_capped_and_the_result_cut_at_200_bytes)
{
	box_hook(&box, "loud", "", "i=0; while [ $i -lt 3000 ]; do echo \"line $i 0123456789012345678901234567890123456789\"; i=$((i+1)); done\n"
				   "printf 'a\\033[31m\\377b\\n'");
	ask("loud");
	cr_expect_eq(answer.exit_code, 0);
	cr_expect_str_eq(answer.line, "a?[31m?b", "%s", answer.line);
	cr_expect_lt(strlen(answer.err), 120000, "%zu bytes of log", strlen(answer.err));
	cr_expect(strstr(answer.err, "the rest is dropped"));
	cr_expect_eq(strncmp(answer.err, "hook loud[", 10), 0);

	box_hook(&box, "long", "", "head -c 5000 /dev/zero | tr '\\0' x; echo");
	ask("long");
	cr_expect_eq(strlen(answer.line), 200);
}

Test(runner, c34_a_hung_tree_that_ignores_term_is_killed_whole_though_a_grandchild_holds_stdout)
{
	pid_t hook, child;

	box_hook(&box, "hang", "timeout = \"1s\";",
		 script("trap '' TERM\necho $$ > hook.pid\n"
			"setsid sh -c 'trap \"\" TERM; echo $$ > child.pid; while :; do sleep 1000; done' &\n"
			"echo here\nwhile :; do sleep 1000; done"));
	ask("hang");
	cr_expect_eq(answer.timeout, 1, "%s", answer.out);
	cr_expect_eq(answer.lost, 0);
	cr_expect(answer.seconds >= 3.9 && answer.seconds < 6, "%.2f s, expected 1 + 3", answer.seconds);
	cr_expect(strstr(answer.line, "over its time limit of 1 s, ended by SIGKILL: here"), "%s", answer.line);
	hook = (pid_t)atoi(box_read(&box, "hook.pid"));
	child = (pid_t)atoi(box_read(&box, "child.pid"));
	cr_assert_gt(child, 1);
	cr_expect(box_is_gone(hook));
	cr_expect(box_is_gone(child), "the child in its own session lives on");
}

Test(runner, a_hook_that_heeds_term_ends_at_once)
{
	box_hook(&box, "obeys", "timeout = \"1s\";", "trap 'echo cleaned up; exit 3' TERM\nsleep 1000 & wait");
	ask("obeys");
	cr_expect_eq(answer.timeout, 1);
	cr_expect_eq(answer.exit_code, 3);
	cr_expect(strstr(answer.line, "cleaned up"), "%s", answer.line);
	cr_expect_lt(answer.seconds, 2.5);
}

Test(runner, a_fork_storm_is_ended_too)
{
	box_hook(&box, "storm", "timeout = \"1s\";",
		 "trap '' TERM\nf() { while :; do (setsid sleep 900 &) ; sleep 0.05; done; }\nf & f & wait");
	ask("storm");
	cr_expect_eq(answer.timeout, 1);
	cr_expect_eq(answer.lost, 0, "%s", answer.out);
	cr_expect_lt(answer.seconds, 6);
}

Test(runner, what_a_hook_leaves_behind_is_ended_and_its_result_stands)
{
	pid_t left;

	box_hook(&box, "leaves", "", script("setsid sleep 1000 & echo $! > left.pid; echo all=good"));
	ask("leaves");
	cr_expect_eq(answer.exit_code, 0);
	cr_expect_eq(answer.timeout, 0);
	cr_expect_str_eq(answer.line, "all=good");
	cr_expect_lt(answer.seconds, 2);
	left = (pid_t)atoi(box_read(&box, "left.pid"));
	cr_expect(box_is_gone(left));
}

Test(runner, term_to_the_runner_ends_the_hook_and_is_told)
{
	struct box_run run;

	box_hook(&box, "stop", "timeout = \"60s\";", script("echo $$ > stop.pid.new; mv stop.pid.new stop.pid; sleep 1000"));
	box_start(&box, &(struct box_question){ .hook = "stop", .action = "do", .seq = 1, .attempt = 1 }, &run);
	cr_assert(box_appears(&box, "stop.pid"));
	kill(run.pid, SIGTERM);
	box_wait(&run, &answer);
	cr_expect_eq(answer.timeout, 1);
	cr_expect(strstr(answer.line, "ended from outside"), "%s", answer.line);
	cr_expect(box_is_gone((pid_t)atoi(box_read(&box, "stop.pid"))));
}

Test(runner, c36_every_reason_to_refuse_is_told_and_nothing_runs)
{
	char exec[200];

	box_exec(&box, "missing", "", "\"/no/such/hook\"");
	ask("missing");
	cr_expect_eq(answer.exit_code, 78);
	cr_expect_eq(answer.ran, 0);
	cr_expect(strstr(answer.line, "/no: does not exist"), "%s", answer.line);
	cr_expect(strstr(answer.err, "refused"), "%s", answer.err);

	snprintf(exec, sizeof(exec), "\"%s\"", box_file(&box, "plain", 0644, "#!/bin/sh\n"));
	box_exec(&box, "plain", "", exec);
	ask("plain");
	cr_expect_eq(answer.exit_code, 78);
	cr_expect(strstr(answer.line, "not executable (mode 0644)"), "%s", answer.line);

	snprintf(exec, sizeof(exec), "\"%s\"", box_file(&box, "noexec", 0755, "touch ran\n"));
	box_exec(&box, "noexec", "", exec);
	ask("noexec");
	cr_expect_eq(answer.exit_code, 78);
	cr_expect(strstr(answer.line, "#!"), "%s", answer.line);

	ask("unheard-of");
	cr_expect_eq(answer.exit_code, 78);
	cr_expect(strstr(answer.line, "no hook \"unheard-of\""), "%s", answer.line);
}

Test(runner, c37_permissions_that_become_unsafe_are_seen_at_the_next_run)
{
	char path[128];

	box_hook(&box, "drift", "", "echo fine");
	ask("drift");
	cr_expect_eq(answer.exit_code, 0);
	snprintf(path, sizeof(path), "%s/drift", box.dir);
	cr_assert_eq(chmod(path, 0775), 0);
	ask("drift");
	cr_expect_eq(answer.exit_code, 78);
	cr_expect(strstr(answer.line, "writable by its group"), "%s", answer.line);
	cr_assert_eq(chmod(path, 0755), 0);
	cr_assert_eq(chmod(box.dir, 0777), 0);
	ask("drift");
	cr_expect_eq(answer.exit_code, 78);
	cr_expect(strstr(answer.line, box.dir), "%s", answer.line);
}

Test(runner, a_configuration_that_others_may_write_is_refused)
{
	box_hook(&box, "fine", "", "touch ran");
	cr_assert_eq(chmod(box.config, 0666), 0);
	ask("fine");
	cr_expect_eq(answer.exit_code, 78);
	cr_expect(strstr(answer.line, "test.conf"), "%s", answer.line);
}

Test(runner, an_action_that_does_not_fit_the_kind_is_refused)
{
	box_hook(&box, "remedy", "", "touch ran");
	ask_with("remedy", "notify", 1, 1);
	cr_expect_eq(answer.exit_code, 64);
	cr_expect_eq(answer.ran, 0);
}

Test(runner, a_sequence_number_runs_once)
{
	box_hook(&box, "once", "", script("echo x >> count; wc -l < count"));
	ask_with("once", "do", 5, 1);
	cr_expect_str_eq(answer.line, "1");
	ask_with("once", "do", 5, 1);
	cr_expect_str_eq(answer.line, "1", "the stored answer");
	cr_expect_str_eq(box_read(&box, "count"), "x\n");
	ask_with("once", "undo", 5, 1);
	cr_expect_str_eq(answer.line, "2", "another action is another run");
	ask_with("once", "undo", 5, 1);
	cr_expect_str_eq(answer.line, "2");
	box_ask(&box, &(struct box_question){ .hook = "once", .action = "do", .seq = 5, .attempt = 1,
					      .extra = "target=sfu\nevent=fire\nalert_id=another\n" }, &answer);
	cr_expect_str_eq(answer.line, "3", "the same number of another alert is another run");
}

Test(runner, a_retry_and_a_failed_undo_run_again_with_a_higher_attempt)
{
	box_hook(&box, "later", "", script("echo $DWELLD_ATTEMPT >> attempts; exit 75"));
	ask_with("later", "do", 5, 1);
	ask_with("later", "do", 5, 2);
	ask_with("later", "do", 5, 2);
	cr_expect_str_eq(box_read(&box, "attempts"), "1\n2\n");
	ask_with("later", "undo", 5, 1);
	ask_with("later", "undo", 5, 1);	/* a restarted daemon counts from 1 again */
	cr_expect_str_eq(box_read(&box, "attempts"), "1\n2\n1\n2\n");
}

Test(runner, after_kill_9_of_the_runner_the_same_number_runs_again_as_attempt_2)
{
	struct box_run run;
	pid_t hook, child;

	box_hook(&box, "mid", "timeout = \"60s\";",
		 script("[ $DWELLD_ATTEMPT = 2 ] && { echo again; exit 0; }\n"
			"setsid sleep 1000 & echo $! > child.pid\necho $$ > mid.new; mv mid.new mid.pid; sleep 1000"));
	box_start(&box, &(struct box_question){ .hook = "mid", .action = "do", .seq = 9, .attempt = 1 }, &run);
	cr_assert(box_appears(&box, "mid.pid"));
	hook = (pid_t)atoi(box_read(&box, "mid.pid"));
	child = (pid_t)atoi(box_read(&box, "child.pid"));
	cr_expect(strstr(box_read(&box, "runs/9-mid-do.started"), "attempt=1\nrunner="));
	kill(run.pid, SIGKILL);
	/* the grandchild still holds the pipes: the runner's are ours to close */
	cr_expect(box_is_gone(hook), "the hook must not outlive its runner");
	ask_with("mid", "do", 9, 1);
	cr_expect_eq(answer.exit_code, 0, "%s", answer.out);
	cr_expect_str_eq(answer.line, "again");
	cr_expect(box_is_gone(child), "what the crashed run left must be ended");
	cr_expect(strstr(answer.err, "processes of it were killed"), "%s", answer.err);
	box_wait(&run, &answer);
}

Test(runner, two_runs_of_one_hook_and_target_never_overlap)
{
	struct box_run run;

	box_hook(&box, "slow", "timeout = \"30s\";", script("echo $$ > slow.new; mv slow.new slow.pid; while [ ! -e go ]; do sleep 0.02; done"));
	box_start(&box, &(struct box_question){ .hook = "slow", .action = "do", .seq = 1, .attempt = 1 }, &run);
	cr_assert(box_appears(&box, "slow.pid"));
	ask_with("slow", "undo", 1, 1);
	cr_expect_eq(answer.exit_code, 75);
	cr_expect_eq(answer.ran, 0);
	cr_expect(strstr(answer.line, "another run"), "%s", answer.line);
	box_file(&box, "go", 0644, "");
	box_wait(&run, &answer);
	cr_expect_eq(answer.exit_code, 0);
	ask_with("slow", "undo", 1, 1);
	cr_expect_eq(answer.exit_code, 0);
	cr_expect_eq(answer.ran, 1);
}

Test(runner, records_are_pruned_to_a_hundred)
{
	char name[64];
	unsigned int left = 0;

	box_hook(&box, "many", "", "exit 0");
	mkdir(box.runs, 0750);
	for (unsigned int i = 1; i <= 150; i++) {	/* as if 150 runs had been */
		snprintf(name, sizeof(name), "runs/%u-many-do.result", i);
		box_file(&box, name, 0640, "mark=\nattempt=1\nresult exit=0 signal=0 timeout=0 lost=0 ran=1 line=\n");
	}
	ask_with("many", "do", 1000, 1);
	for (unsigned int i = 1; i <= 1000; i++) {
		snprintf(name, sizeof(name), "runs/%u-many-do.result", i);
		left += *box_read(&box, name) != '\0';
	}
	cr_expect_eq(left, 100, "%u", left);
	cr_expect_neq(*box_read(&box, "runs/1000-many-do.result"), '\0', "the newest stays");
}

Test(runner, without_a_place_for_records_a_page_goes_out_and_a_remedy_does_not_run)
{
	box_hook(&box, "page", "kind = \"page\"; user = \"nobody\";", "echo paged");
	box_hook(&box, "remedy", "", script("touch ran"));
	box_file(&box, "runs", 0644, "a file where the directory should be");
	ask_with("page", "notify", 1, 1);
	cr_expect_eq(answer.exit_code, 0, "%s", answer.err);
	cr_expect_str_eq(answer.line, "paged");
	ask_with("remedy", "do", 2, 1);
	cr_expect_eq(answer.exit_code, 73, "%s", answer.out);
	cr_expect_eq(answer.ran, 0);
}

Test(runner, a_request_that_makes_no_sense_is_told_what_was_expected)
{
	const char *const bad[] = { "hook=../../etc\n", "action=rm\n", "attempt=0\n", "surprise=1\n", "no equals\n" };

	box_hook(&box, "fine", "", "touch ran");
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		box_ask(&box, &(struct box_question){ .hook = "fine", .action = "do", .seq = 1, .attempt = 1,
						      .extra = bad[i] }, &answer);
		cr_expect_eq(WEXITSTATUS(answer.status), 2, "%s", bad[i]);
		cr_expect(strstr(answer.err, "expected") || strstr(answer.err, "not a known key"), "%s: %s", bad[i],
			  answer.err);
		cr_expect_str_empty(answer.out);
	}
}
