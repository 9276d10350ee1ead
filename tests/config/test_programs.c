/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C36: what is wrong with a hook's program is told before it is needed, with the component. Runs below the
 * home directory of the user, because nothing below /tmp is ever safe. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_file.h"

static struct diag diag;
static struct model *model;
static char dir[256], config[320];

static void begin(void)
{
	const struct passwd *user = getpwuid(geteuid());
	static struct stat st;

	model = calloc(1, sizeof(*model));
	cr_assert(model && user);
	if (stat(user->pw_dir, &st) < 0 || (st.st_mode & 022))
		cr_skip_test("the home directory of uid %u can be written by others", geteuid());
	snprintf(dir, sizeof(dir), "%s/.dwelld-test-XXXXXX", user->pw_dir);
	if (!mkdtemp(dir))
		cr_skip_test("nothing can be created in %s", user->pw_dir);
	chmod(dir, 0755);
	snprintf(config, sizeof(config), "%s/test.conf", dir);
	memset(&diag, 0, sizeof(diag));
}

static void end(void)
{
	char command[320];

	if (strstr(dir, "/.dwelld-test-")) {
		snprintf(command, sizeof(command), "rm -rf '%s'", dir);
		cr_expect_eq(system(command), 0);
	}
	free(model);
}

TestSuite(programs, .init = begin, .fini = end);

static void put(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	cr_assert(f, "%s", path);
	fputs(text, f);
	fclose(f);
	chmod(path, mode);
}

/* What is said about a hook that runs dir/name; "" when nothing is. */
static const char *check(const char *name)
{
	char text[512];

	snprintf(
		text, sizeof(text),
		"mode = \"act\";\nhooks = ( { name = \"h\"; kind = \"page\";\n\texec = [ \"%s/%s\" ]; } );\n",
		name[0] == '/' ? "" : dir, name);
	put(config, text, 0644);
	memset(&diag, 0, sizeof(diag));
	cr_assert_eq(config_read(config, NULL, &diag, model), 0, "%s", diag.entry[0].text);
	memset(&diag, 0, sizeof(diag));
	if (config_check_hooks(model, &diag) == 0) {
		cr_expect_eq(diag.count, 0);
		return "";
	}
	cr_assert_eq(diag.count, 1);
	cr_expect_str_eq(diag.entry[0].file, config);
	cr_expect_eq(diag.entry[0].line, 3);
	cr_expect_eq(strncmp(diag.entry[0].text, "exec: ", 6), 0);
	return diag.entry[0].text;
}

static char *below(const char *name)
{
	static char buf[4][512];
	static unsigned int turn;
	char *p = buf[turn++ % 4];

	snprintf(p, sizeof(buf[0]), "%s/%s", dir, name);
	return p;
}

static void expect(const char *said, const char *component, const char *reason)
{
	cr_expect(strstr(said, component), "\"%s\" does not name %s", said, component);
	cr_expect(strstr(said, reason), "\"%s\" does not say %s", said, reason);
}

Test(programs, c36_a_good_one_is_not_complained_about)
{
	put(below("good"), "#!/bin/sh\nexit 0\n", 0755);
	cr_expect_str_eq(check("good"), "");
	cr_expect_str_eq(check("/bin/true"), "");
}

Test(programs, c36_missing_not_executable_and_without_interpreter)
{
	expect(check("missing"), below("missing"), "does not exist");
	put(below("plain"), "#!/bin/sh\n", 0644);
	expect(check("plain"), below("plain"), "not executable");
	put(below("noexec"), "echo hello\n", 0755);
	expect(check("noexec"), below("noexec"), "neither with #!");
	cr_assert_eq(mkdir(below("directory"), 0755), 0);
	expect(check("directory"), below("directory"), "directory");
}

Test(programs, c36_a_parent_that_its_group_can_write)
{
	cr_assert_eq(mkdir(below("open"), 0755), 0);
	put(below("open/hook"), "#!/bin/sh\n", 0755);
	cr_expect_str_eq(check("open/hook"), "");
	chmod(below("open"), 0775);
	expect(check("open/hook"), below("open"), "writable by its group");
}

Test(programs, c36_a_symlink_into_somebody_elses_home)
{
	if (geteuid() != 0)
		cr_skip_test("needs root to make a directory of another user");
	cr_assert_eq(mkdir(below("home"), 0755), 0);
	put(below("home/hook"), "#!/bin/sh\n", 0755);
	cr_assert_eq(symlink(below("home/hook"), below("link")), 0);
	cr_expect_str_eq(check("link"), "");
	cr_assert_eq(chown(below("home"), 4242, 4242), 0);
	expect(check("link"), below("home"), "belongs to uid 4242");
}

Test(programs, every_hook_is_looked_at)
{
	put(config,
	    "hooks = ( { name = \"a\"; kind = \"page\"; exec = [ \"/nonexistent/a\" ]; },\n"
	    "\t{ name = \"b\"; kind = \"page\"; exec = [ \"/nonexistent/b\" ]; } );\n",
	    0644);
	cr_assert_eq(config_read(config, NULL, &diag, model), 0);
	memset(&diag, 0, sizeof(diag));
	cr_expect_eq(config_check_hooks(model, &diag), -EINVAL);
	cr_expect_eq(diag.errors, 2);
	cr_expect_eq(diag.entry[1].line, 2);
}
