/* SPDX-License-Identifier: GPL-2.0-or-later */
/* verdict.c - see verdict.h. */
#include "verdict.h"

const char *verdict_name(enum verdict v)
{
	switch (v) {
	case VERDICT_IDLE: return "idle";
	case VERDICT_OK: return "ok";
	case VERDICT_UNKNOWN: return "unknown";
	case VERDICT_NETWORK: return "network";
	case VERDICT_SERVER: return "server";
	case VERDICT_MIXED: return "mixed";
	}
	return "?";
}

/* A flapping rule is a fault that comes and goes: it counts as firing. */
static bool is_cause(const struct verdict_rule *r)
{
	return (r->state == STATE_FIRING || r->state == STATE_FLAPPING) && !r->inhibited &&
	       r->severity != SEVERITY_INFO;
}

static void add_cause(struct verdict_result *v, const struct verdict_rule *rule, const struct verdict_rule *all,
		      size_t count)
{
	size_t at = v->cause_count;

	/* insertion behind all of the same or a higher severity keeps the rules' order among equals */
	while (at > 0) {
		size_t before = 0;

		while (before < count && all[before].rule != v->cause[at - 1])
			before++;
		if (all[before].severity >= rule->severity)
			break;
		if (at < VERDICT_CAUSES)
			v->cause[at] = v->cause[at - 1];
		at--;
	}
	if (at < VERDICT_CAUSES)
		v->cause[at] = rule->rule;
	if (v->cause_count < VERDICT_CAUSES)
		v->cause_count++;
}

static enum verdict quiet_verdict(const struct verdict_rule *rule, size_t count, bool coverage)
{
	bool unknown = coverage, idle = false, pending = false;

	for (size_t i = 0; i < count; i++) {
		if (rule[i].class != CLASS_SERVER && rule[i].class != CLASS_HOST)
			continue;
		unknown |= rule[i].state == STATE_UNKNOWN;
		idle |= rule[i].state == STATE_IDLE;
		pending |= rule[i].state == STATE_PENDING;
	}
	if (unknown)
		return VERDICT_UNKNOWN;
	return idle && !pending ? VERDICT_IDLE : VERDICT_OK;
}

struct verdict_result verdict_of_target(const struct verdict_rule *rule, size_t count)
{
	struct verdict_result v = { .verdict = VERDICT_OK };
	bool server = false, network = false, coverage = false;

	for (size_t i = 0; i < count; i++) {
		if (!is_cause(&rule[i]))
			continue;
		add_cause(&v, &rule[i], rule, count);
		switch (rule[i].class) {
		case CLASS_SERVER: case CLASS_HOST:
			server = true;
			break;
		case CLASS_NETWORK:
			network = true;
			break;
		case CLASS_COVERAGE:
			coverage = true;
			break;
		}
	}
	if (server)
		v.verdict = network ? VERDICT_MIXED : VERDICT_SERVER;
	else
		v.verdict = network ? VERDICT_NETWORK : quiet_verdict(rule, count, coverage);
	return v;
}

enum verdict verdict_of_host(const enum verdict *target, size_t count)
{
	static const enum verdict order[] = { VERDICT_SERVER, VERDICT_NETWORK, VERDICT_UNKNOWN, VERDICT_OK, VERDICT_IDLE };
	bool seen[VERDICT_MIXED + 1] = { false };

	for (size_t i = 0; i < count; i++)
		seen[target[i]] = true;
	if (seen[VERDICT_MIXED] || (seen[VERDICT_SERVER] && seen[VERDICT_NETWORK]))
		return VERDICT_MIXED;
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		if (seen[order[i]])
			return order[i];
	return VERDICT_IDLE;
}
