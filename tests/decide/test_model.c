/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "decide/model.h"

static struct model *m;

static void profile_add(const char *name, const char *param, double value)
{
	struct model_profile *p = &m->profile[m->profile_count++];

	strcpy(p->name, name);
	strcpy(p->param[0].name, param);
	p->param[0].value = value;
	p->param_count = 1;
}

static void begin(void)
{
	m = calloc(1, sizeof(*m));
	cr_assert(m);
	profile_add("media", "slow", 10e6);
	profile_add("generic", "slow", 100e6);
	profile_add("dns", "odd", 1);
	strcpy(m->profile[1].param[1].name, "bad");
	m->profile[1].param[1].value = 300e6;
	m->profile[1].param_count = 2;
	strcpy(m->rule[0].name, "reader-slow");
	strcpy(m->rule[1].name, "reader");
	m->rule_count = 2;
	strcpy(m->hook[0].name, "page");
	m->hook_count = 1;
}

static void end(void)
{
	free(m);
}

TestSuite(model, .init = begin, .fini = end);

Test(model, finds_by_the_whole_name_only)
{
	cr_expect_eq(model_rule_find(m, "reader"), 1);
	cr_expect_eq(model_rule_find(m, "reader-slow"), 0);
	cr_expect_eq(model_rule_find(m, "reader-"), -1);
	cr_expect_eq(model_rule_find(m, ""), -1, "unused slots have empty names and are not found");
	cr_expect_eq(model_hook_find(m, "page"), 0);
	cr_expect_eq(model_hook_find(m, "pager"), -1);
	cr_expect_eq(model_profile_find(m, "dns"), 2);
	cr_expect_eq(model_profile_find(m, "quic"), -1);
}

Test(model, a_value_comes_from_the_profile_else_from_generic_else_there_is_none)
{
	double value = -1;

	cr_expect(model_param(m, 0, "slow", &value) && value == 10e6);
	cr_expect(model_param(m, 0, "bad", &value) && value == 300e6, "media has none: generic's");
	cr_expect(model_param(m, 2, "slow", &value) && value == 100e6);
	cr_expect(model_param(m, -1, "slow", &value) && value == 100e6, "no profile: generic's");
	cr_expect(model_param(m, 99, "slow", &value) && value == 100e6);
	value = -1;
	cr_expect_not(model_param(m, 0, "odd", &value), "another profile's is not taken");
	cr_expect_eq(value, -1, "written only on success");
}

Test(model, without_generic_only_the_own_profile_counts)
{
	double value;

	strcpy(m->profile[1].name, "other");
	cr_expect(model_param(m, 0, "slow", &value));
	cr_expect_not(model_param(m, -1, "slow", &value));
	cr_expect_not(model_param(m, 0, "bad", &value));
}

Test(model, names_are_those_of_the_configuration_file)
{
	cr_expect_str_eq(model_mode_name(MODE_OBSERVE), "observe");
	cr_expect_str_eq(model_mode_name(MODE_DRY_RUN), "dry-run");
	cr_expect_str_eq(model_mode_name(MODE_ACT), "act");
	cr_expect_str_eq(rule_class_name(CLASS_SERVER), "server");
	cr_expect_str_eq(rule_class_name(CLASS_HOST), "host");
	cr_expect_str_eq(rule_class_name(CLASS_NETWORK), "network");
	cr_expect_str_eq(rule_class_name(CLASS_COVERAGE), "coverage");
	cr_expect_str_eq(severity_name(SEVERITY_INFO), "info");
	cr_expect_str_eq(severity_name(SEVERITY_WARNING), "warning");
	cr_expect_str_eq(severity_name(SEVERITY_CRITICAL), "critical");
	cr_expect_str_eq(hook_kind_name(HOOK_PAGE), "page");
	cr_expect_str_eq(hook_kind_name(HOOK_REMEDY), "remedy");
	cr_expect_str_eq(hook_kind_name(HOOK_DESTRUCTIVE), "destructive");
}
