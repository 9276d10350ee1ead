/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box.h"
#include "run/path_check.h"

static struct box box;

static void setup(void)
{
	box_open(&box);
}

static void teardown(void)
{
	box_close(&box);
}

TestSuite(path_check, .init = setup, .fini = teardown);

static const char *in_box(const char *name)
{
	static char paths[4][256];
	static unsigned int n;
	char *path = paths[n++ % 4];

	snprintf(path, 256, "%s/%s", box.dir, name);
	return path;
}

/* The path must be refused, and the reason must hold both texts. */
static void expect_refused(const char *path, const char *component, const char *reason)
{
	struct path_checked checked;
	char why[900] = "";

	cr_expect_eq(path_check_program(path, why, sizeof(why), &checked), -EPERM, "%s was not refused", path);
	cr_expect(strstr(why, component), "\"%s\" does not name %s", why, component);
	cr_expect(strstr(why, reason), "\"%s\" does not say %s", why, reason);
}

Test(path_check, a_root_owned_script_in_a_root_owned_directory_is_fine)
{
	const char *path = box_file(&box, "good", 0755, "#!/bin/sh -e\n");
	struct path_checked checked;
	char why[900] = "";

	cr_assert_eq(path_check_program(path, why, sizeof(why), &checked), 0, "%s", why);
	cr_expect_str_eq(checked.real, path);
	cr_expect(checked.script);
	close(checked.fd);
}

Test(path_check, a_program_is_fine_and_is_no_script)
{
	struct path_checked checked;
	char why[900] = "";

	cr_assert_eq(path_check_program("/bin/true", why, sizeof(why), &checked), 0, "%s", why);
	cr_expect_not(checked.script);
	close(checked.fd);
}

Test(path_check, symlinks_between_safe_places_are_followed)
{
	struct path_checked checked;
	char why[900] = "";

	box_file(&box, "real", 0755, "#!/bin/sh\n");
	mkdir(in_box("sub"), 0755);
	cr_assert_eq(symlink("../sub/../real", in_box("sub/link")), 0);
	cr_assert_eq(symlink(in_box("sub/link"), in_box("link2")), 0);
	cr_assert_eq(path_check_program(in_box("link2"), why, sizeof(why), &checked), 0, "%s", why);
	cr_expect_str_eq(checked.real, in_box("real"));
	close(checked.fd);
}

Test(path_check, c36_a_missing_file_is_named)
{
	expect_refused(in_box("nothing/here"), in_box("nothing"), "does not exist");
}

Test(path_check, c36_not_executable)
{
	const char *path = box_file(&box, "plain", 0644, "#!/bin/sh\n");

	expect_refused(path, path, "not executable (mode 0644)");
}

Test(path_check, c36_a_group_writable_parent_is_named_with_its_mode)
{
	mkdir(in_box("shared"), 0755);
	box_file(&box, "shared/hook", 0755, "#!/bin/sh\n");
	chmod(in_box("shared"), 0775);
	expect_refused(in_box("shared/hook"), in_box("shared"), "writable by its group (mode 0775)");
}

Test(path_check, a_file_that_everybody_may_write)
{
	const char *path = box_file(&box, "open", 0777, "#!/bin/sh\n");

	expect_refused(path, path, "writable by everybody");
}

Test(path_check, a_sticky_directory_is_not_enough)
{
	mkdir(in_box("sticky"), 0755);
	box_file(&box, "sticky/hook", 0755, "#!/bin/sh\n");
	chmod(in_box("sticky"), 01777);
	expect_refused(in_box("sticky/hook"), in_box("sticky"), "sticky is not enough");
}

Test(path_check, c36_a_symlink_into_a_users_home)
{
	mkdir(in_box("home"), 0755);
	box_file(&box, "home/hook", 0755, "#!/bin/sh\n");
	cr_assert_eq(chown(in_box("home"), 1000, 1000), 0);
	cr_assert_eq(symlink("home/hook", in_box("link")), 0);
	expect_refused(in_box("link"), in_box("home"), "belongs to uid 1000");
}

Test(path_check, a_symlink_that_a_user_owns)
{
	box_file(&box, "good", 0755, "#!/bin/sh\n");
	cr_assert_eq(symlink("good", in_box("link")), 0);
	cr_assert_eq(lchown(in_box("link"), 1000, 1000), 0);
	expect_refused(in_box("link"), in_box("link"), "belongs to uid 1000");
}

Test(path_check, a_loop_of_symlinks_ends)
{
	cr_assert_eq(symlink("b", in_box("a")), 0);
	cr_assert_eq(symlink("a", in_box("b")), 0);
	expect_refused(in_box("a"), box.dir, "symlinks");
}

Test(path_check, c36_no_interpreter_line_and_no_program)
{
	const char *path = box_file(&box, "text", 0755, "echo hello\n");

	expect_refused(path, path, "starts neither with #! nor as an ELF program");
}

Test(path_check, an_interpreter_is_checked_too)
{
	char text[300];

	box_file(&box, "python", 0755, "#!/bin/sh\n");
	cr_assert_eq(chown(in_box("python"), 1000, 0), 0);
	snprintf(text, sizeof(text), "#!%s -u\n", in_box("python"));
	expect_refused(box_file(&box, "hook", 0755, text), in_box("python"), "belongs to uid 1000");
	expect_refused(box_file(&box, "hook2", 0755, "#!/no/such/shell\n"), "/no", "does not exist");
	expect_refused(box_file(&box, "hook3", 0755, "#!sh\n"), "\"sh\"", "absolute path");
	expect_refused(box_file(&box, "hook4", 0755, "#!/bin/sh\r\n"), "hook4", "carriage return");
}

Test(path_check, relative_paths_directories_and_devices_are_refused)
{
	expect_refused("bin/true", "\"bin/true\"", "absolute path");
	expect_refused("", "\"\"", "absolute path");
	expect_refused(box.dir, box.dir, "a directory, expected a regular file");
	expect_refused("/dev/null", "/dev/null", "");
	expect_refused("/", "/", "expected a regular file");
	box_file(&box, "file", 0755, "#!/bin/sh\n");
	expect_refused(in_box("file/more"), in_box("file"), "not a directory");
}
