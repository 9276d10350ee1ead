/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "usage.h"

#include <stddef.h>
#include <string.h>

static const char general[] =
	"usage: dwellctl VERB [OPTIONS]\n"
	"Asks the running dwelld, or tells it something.\n"
	"\n"
	"  status [TARGET]          is this host queuing the packets, or is the network hurting them?\n"
	"  status --watch[=1s]      the same as a panel that is redrawn in place\n"
	"  reload                   read the configuration again (group dwelld-admin)\n"
	"  undo HOOK [TARGET]       take back what a hook did (group dwelld-admin)\n"
	"  undo --all               take back everything that is owed\n"
	"  check [FILE]             check the configuration without touching the daemon\n"
	"\n"
	"  --socket PATH            of the daemon; default /run/dwelld/control.sock\n"
	"  --help, --version        also after a verb: dwellctl VERB --help\n"
	"\n"
	"Exit: 0 done, 1 failed (no daemon, not allowed, refused), 2 wrong usage. See dwellctl(1).\n";

static const char status[] =
	"usage: dwellctl status [--json | --prometheus | --watch[=INTERVAL]] [--socket PATH] [TARGET]\n"
	"Verdict, targets, rules that are not ok with their evidence, hooks and probes, over the last 10 s.\n"
	"A dash is \"not known\", never zero.\n"
	"\n"
	"  TARGET              only this target\n"
	"  --json              everything, for programs (conf/status.schema.json)\n"
	"  --prometheus        the metrics in text format, for a textfile collector\n"
	"  --watch[=INTERVAL]  redraw every INTERVAL (100ms..1h, default 1s) until Ctrl-C or q; when the output is no\n"
	"                      terminal, one plain block per interval\n"
	"  --socket PATH       default /run/dwelld/control.sock\n"
	"\n"
	"NO_COLOR is honoured. Reading needs root or group dwelld.\n";

static const char reload[] =
	"usage: dwellctl reload [--socket PATH]\n"
	"Makes dwelld read its configuration again and waits for the outcome. A file with an error changes nothing: the\n"
	"running configuration stays, and the errors are printed. Needs root or group dwelld-admin.\n";

static const char undo[] =
	"usage: dwellctl undo HOOK [TARGET] | --all  [--socket PATH]\n"
	"Starts the undo of what HOOK did, for TARGET or for all of its targets, or with --all of everything that is owed,\n"
	"whatever the rules say. Needs root or group dwelld-admin.\n";

static const char check[] =
	"usage: dwellctl check [FILE]\n"
	"Runs `dwelld --check`: all errors of the configuration as file:line: key: what was expected. With FILE, only the\n"
	"built-ins and FILE are read. Exit as dwelld: 0 good, 78 bad configuration.\n";

static const struct { const char *verb, *text; } texts[] = {
	{ "status", status }, { "reload", reload }, { "undo", undo }, { "check", check } };

static const char *const planned[] = { "top", "explain", "events", "rules", "hooks", "hook", "hold", "clear",
				       "record", "was", "report", "doctor" };

const char *usage_text(const char *verb)
{
	size_t i;

	for (i = 0; verb && i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(verb, texts[i].verb) == 0)
			return texts[i].text;
	return general;
}

bool usage_is_planned(const char *verb)
{
	size_t i;

	for (i = 0; i < sizeof(planned) / sizeof(planned[0]); i++)
		if (strcmp(verb, planned[i]) == 0)
			return true;
	return false;
}
