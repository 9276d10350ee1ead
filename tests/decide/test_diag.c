/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "decide/diag.h"

static struct diag d;

Test(diag, errors_carry_their_place)
{
	char buf[512];

	cr_expect_eq(diag_add(&d, "rules.conf", 41, "%s: expected %s", "for", "a duration"), -EINVAL);
	cr_expect_eq(diag_warn(&d, "rules.conf", 0, "odd"), 0);
	cr_expect_eq(diag_add(&d, NULL, 0, "no file"), -EINVAL);
	cr_expect_eq(d.count, 3);
	cr_expect_eq(d.errors, 2);
	cr_expect_eq(d.warnings, 1);
	cr_expect_eq(diag_format(&d.entry[0], buf, sizeof(buf)),
		     strlen("rules.conf:41: for: expected a duration"));
	cr_expect_str_eq(buf, "rules.conf:41: for: expected a duration");
	diag_format(&d.entry[1], buf, sizeof(buf));
	cr_expect_str_eq(buf, "rules.conf: warning: odd");
	diag_format(&d.entry[2], buf, sizeof(buf));
	cr_expect_str_eq(buf, "no file");
}

Test(diag, the_list_is_bounded_and_counts_on)
{
	for (int i = 0; i < DIAG_MAX + 7; i++)
		diag_add(&d, "f", 1, "error %d", i);
	cr_expect_eq(d.count, DIAG_MAX);
	cr_expect_eq(d.dropped, 7);
	cr_expect_eq(d.errors, DIAG_MAX + 7);
	cr_expect_str_eq(d.entry[DIAG_MAX - 1].text, "error 99");
}

Test(diag, long_texts_are_cut)
{
	char text[DIAG_TEXT * 2], buf[8];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	diag_add(&d, text, 1, "%s", text);
	cr_expect_eq(strlen(d.entry[0].text), DIAG_TEXT - 1);
	cr_expect_eq(strlen(d.entry[0].file), DIAG_FILE - 1);
	cr_expect_eq(diag_format(&d.entry[0], buf, sizeof(buf)), sizeof(buf) - 1);
	cr_expect_str_eq(buf, "xxxxxxx");
}
