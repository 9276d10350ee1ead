/* SPDX-License-Identifier: GPL-2.0-or-later */
/* daemon_verbs.c - what the control socket is answered. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "act/journal_ids.h"
#include "daemon_private.h"

#define ANSWER_BYTES (4U << 20)

static void self_figures(const struct daemon *d, struct status_self *self)
{
	uint64_t now_ns = daemon_now_ns();
	struct proc_self p;

	sense_self(d->sense, now_ns, &p);
	*self = (struct status_self){
		.version = DWELLD_VERSION, .boot_id = d->boot_id, .pid = (uint32_t)getpid(),
		.cpu_share_known = p.cpu_known, .cpu_share = p.cpu_share,
		.rss_known = p.rss_known, .rss_bytes = p.rss_anon_bytes,
		.journal_dropped = journal_dropped(d->journal), .uptime_ns = now_ns - d->started_ns,
	};
	for (unsigned int i = 0; i < LATE_TICKS; i++)
		if (d->late_ns[i] > self->tick_late_max_ns)
			self->tick_late_max_ns = d->late_ns[i];
}

typedef int (*render_fn)(const struct engine *e, const struct status_self *self, char *buf, size_t size, size_t *ret);

static int render(const struct daemon *d, render_fn fn, char **ret_text, size_t *ret_length)
{
	struct status_self self;
	char *buf = malloc(ANSWER_BYTES);
	int r;

	if (!buf)
		return -ENOMEM;
	self_figures(d, &self);
	r = fn(d->engine, &self, buf, ANSWER_BYTES, ret_length);
	if (r < 0) {
		free(buf);
		return r;
	}
	*ret_text = buf;
	return 0;
}

static int answer(char **ret_text, size_t *ret_length, const char *text)
{
	*ret_text = strdup(text);
	if (!*ret_text)
		return -ENOMEM;
	*ret_length = strlen(text);
	return 0;
}

static int verb_reload(struct daemon *d, uid_t uid, char **ret_text, size_t *ret_length)
{
	char line[DIAG_FILE + DIAG_TEXT + 32], all[16384];
	size_t n = 0;
	int r;

	journal_say(d->journal, 6, JOURNAL_ID_OPERATOR, "reload asked for by uid %u", uid);
	r = daemon_reload(d);
	for (size_t i = 0; i < d->diag->count; i++) {
		diag_format(&d->diag->entry[i], line, sizeof(line));
		if (n + strlen(line) + 2 < sizeof(all))
			n += (size_t)snprintf(all + n, sizeof(all) - n, "%s\n", line);
		journal_say(d->journal, r < 0 ? 3 : 4, NULL, "%s", line);
	}
	if (r >= 0 && !n)
		return answer(ret_text, ret_length, "reloaded\n");
	answer(ret_text, ret_length, n ? all : strerror(-r));
	return r;
}

static int verb_undo(struct daemon *d, const char *args, uid_t uid, char **ret_text, size_t *ret_length)
{
	char hook[MODEL_NAME] = "", target[SAMPLE_NAME_MAX] = "", line[200];
	int n, r = sscanf(args, "%63s %127s", hook, target);
	uint64_t now_ns = daemon_now_ns();

	journal_say(d->journal, 5, JOURNAL_ID_OPERATOR, "undo asked for by uid %u: %s", uid, args[0] ? args : "(nothing named)");
	if (r < 1)
		return answer(ret_text, ret_length, "which? give HOOK [TARGET], or --all"), -EINVAL;
	if (!strcmp(hook, "--all"))
		hook[0] = '\0';
	else if (model_hook_find(engine_model(d->engine), hook) < 0)
		return answer(ret_text, ret_length, "no hook of that name"), -ENOENT;
	n = engine_undo(d->engine, hook[0] ? hook : NULL, target[0] ? target : NULL, now_ns, d->out);
	daemon_carry_out(d, now_ns);
	snprintf(line, sizeof(line), n > 0 ? "%d undo%s started\n" : "nothing is owed\n", n, n == 1 ? "" : "s");
	return answer(ret_text, ret_length, line);
}

int daemon_verb(void *userdata, const char *verb, const char *args, uid_t uid, char **ret_text, size_t *ret_length)
{
	struct daemon *d = userdata;

	if (!d->engine || !d->ready)
		return answer(ret_text, ret_length, "starting, not ready yet"), -EAGAIN;
	if (!strcmp(verb, "status"))
		return render(d, status_json, ret_text, ret_length);
	if (!strcmp(verb, "prometheus"))
		return render(d, status_prometheus, ret_text, ret_length);
	if (!strcmp(verb, "histograms"))
		return render(d, status_watch_json, ret_text, ret_length);
	if (!strcmp(verb, "reload"))
		return verb_reload(d, uid, ret_text, ret_length);
	if (!strcmp(verb, "undo"))
		return verb_undo(d, args, uid, ret_text, ret_length);
	answer(ret_text, ret_length, "no such verb");
	return -EINVAL;
}
