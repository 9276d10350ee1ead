/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <systemd/sd-daemon.h>

#include "act/journal_ids.h"
#include "config_file.h"
#include "daemon_private.h"
#include "service.h"

#define ACCURACY_US 1000

uint64_t daemon_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void say_diag(struct daemon *d)
{
	char line[DIAG_FILE + DIAG_TEXT + 32];

	for (size_t i = 0; i < d->diag->count; i++) {
		diag_format(&d->diag->entry[i], line, sizeof(line));
		journal_say(d->journal, d->diag->entry[i].level == DIAG_ERROR ? 3 : 4, NULL, "%s", line);
	}
	if (d->diag->dropped)
		journal_say(d->journal, 4, NULL, "and %zu more", d->diag->dropped);
	memset(d->diag, 0, sizeof(*d->diag));
}

static void status_words(const struct daemon *d, char *buf, size_t size)
{
	unsigned int alerts = 0, targets = 0;
	struct engine_target_view t;
	struct engine_rule_view r;

	for (uint32_t i = 0; engine_rule(d->engine, i, &r); i++)
		alerts += r.state == STATE_FIRING && !r.inhibited_count;
	for (int i = SAMPLE_FIRST_FREE; i < SAMPLE_TARGETS; i++)
		targets += engine_target(d->engine, i, &t);
	snprintf(buf, size, "%s: %u target%s, %u alert%s firing; dwell by %s; mode %s%s", verdict_name(engine_verdict(d->engine)),
		 targets, targets == 1 ? "" : "s", alerts, alerts == 1 ? "" : "s",
		 d->sample->probe_count ? d->sample->probe[0].rung : "nothing",
		 model_mode_name(engine_model(d->engine)->mode),
		 d->reload_failed ? "; the last reload failed, its configuration is not in force" : "");
}

/* Once, at start: which rung is used, and why each better one is not. */
static void say_probes(const struct daemon *d)
{
	for (uint32_t i = 0; i < d->sample->probe_count; i++) {
		const struct sample_probe *p = &d->sample->probe[i];

		if (!p->attached || !p->exact || p->reason[0])
			journal_say(d->journal, p->attached ? 6 : 4, JOURNAL_ID_PROBE, "probe %s: rung %s%s; %s", p->signal,
				    p->rung, p->attached ? p->exact ? "" : ", not exact" : ", unknown", p->reason);
	}
}

static void daemon_tick(struct daemon *d, uint64_t now_ns)
{
	char words[256];

	d->sample->late_ns = now_ns > d->due_ns ? now_ns - d->due_ns : 0;
	d->late_ns[d->late_at++ % LATE_TICKS] = d->sample->late_ns;
	sense_read(d->sense, now_ns, d->sample);
	engine_tick(d->engine, d->sample, d->out);
	daemon_carry_out(d, now_ns);
	journal_flush(d->journal);
	status_words(d, words, sizeof(words));
	if (!d->ready) {
		d->ready = true;
		say_probes(d);
		journal_say(d->journal, 6, JOURNAL_ID_STARTED, "dwelld %s started: %s", DWELLD_VERSION, words);
		service_ready(words);
	}
	service_status(words);
	service_alive();
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;
	uint64_t now_ns = daemon_now_ns();

	(void)usec;
	daemon_tick(d, now_ns);
	d->due_ns += d->tick_ns;
	now_ns = daemon_now_ns();
	if (d->due_ns <= now_ns)	/* late: one tick stands for all that were missed */
		d->due_ns = now_ns + d->tick_ns - (now_ns - d->due_ns) % d->tick_ns;
	sd_event_source_set_time(source, d->due_ns / 1000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_sense(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct daemon *d = userdata;

	(void)source, (void)fd, (void)events;
	sense_dispatch(d->sense, daemon_now_ns());
	return 0;
}

static int on_hup(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	(void)source, (void)si;
	daemon_reload(userdata);
	say_diag(userdata);
	return 0;
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct daemon *d = userdata;

	(void)si;
	journal_say(d->journal, 6, JOURNAL_ID_STOPPED, "stopping; nothing stays attached%s",
		    hook_client_running(d->hooks) ? ", running hooks are ended and stay owed" : "");
	service_stopping();
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

int daemon_reload(struct daemon *d)
{
	struct model *m = calloc(1, sizeof(*m));
	uint64_t now_ns = daemon_now_ns();
	int r;

	if (!m)
		return -ENOMEM;
	service_reloading(now_ns / 1000);
	memset(d->diag, 0, sizeof(*d->diag));
	r = config_read(d->options.config, NULL, d->diag, m);
	if (r >= 0) {
		config_warn_user(m, d->diag);
		config_check_hooks(m, d->diag);		/* told, not refused, as at start */
		if (d->options.dry_run && m->mode == MODE_ACT)
			m->mode = MODE_DRY_RUN;
		r = engine_reload(d->engine, m, d->out);
	}
	if (r < 0) {
		journal_say(d->journal, 3, JOURNAL_ID_RELOAD_REFUSED, "reload failed, the running configuration stays (%zu errors):",
			    d->diag->errors);
	} else {
		sense_reload(d->sense, m);
		journal_set_config_hash(d->journal, m->hash);
		daemon_carry_out(d, now_ns);
		journal_say(d->journal, 6, JOURNAL_ID_RELOADED, "reloaded, configuration %s, mode %s", m->hash,
			    model_mode_name(m->mode));
	}
	free(m);
	d->reload_failed = r < 0;
	service_ready(r < 0 ? "reload failed, the running configuration stays" : "reloaded");
	return r;
}

/* ---- life ---- */

static void read_boot_id(struct daemon *d)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f && fgets(d->boot_id, sizeof(d->boot_id), f))
		d->boot_id[strcspn(d->boot_id, "\n")] = '\0';
	if (f)
		fclose(f);
}

static int open_engine(struct daemon *d)
{
	struct engine_setup setup = { 0 };
	struct timespec wall;
	unsigned int damaged = 0;
	int r;

	gethostname(setup.host, sizeof(setup.host) - 1);
	snprintf(setup.boot_id, sizeof(setup.boot_id), "%s", d->boot_id);
	/* above every number of an earlier life, so that the runner does not take a new run for an old one */
	clock_gettime(CLOCK_REALTIME, &wall);
	setup.first_seq = (uint64_t)wall.tv_sec * 1000;
	r = engine_new(d->model, &setup, &d->engine);
	if (r < 0)
		return r;
	r = debts_open(d->event, d->options.state_dir, daemon_on_debt_found, daemon_on_debt_written, d, &damaged, &d->debts);
	if (r < 0)
		journal_say(d->journal, 4, NULL, "state directory %s: %s; no remedy will be run, for its undo could not be remembered",
			    d->options.state_dir, strerror(-r));
	if (damaged)
		journal_say(d->journal, 3, NULL, "%s/owed: %u damaged lines, kept aside as owed.damaged", d->options.state_dir,
			    damaged);
	return 0;
}

/* First of all: what comes while the probes are loaded waits for the loop. A closed stderr must not end us. */
static void hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int open_loop(struct daemon *d)
{
	int r, fd = sense_fd(d->sense);

	r = sd_event_add_signal(d->event, &d->term_source, SIGTERM, on_stop, d);
	if (r >= 0)
		r = sd_event_add_signal(d->event, &d->int_source, SIGINT, on_stop, d);
	if (r >= 0)
		r = sd_event_add_signal(d->event, &d->hup_source, SIGHUP, on_hup, d);
	if (r >= 0 && fd >= 0)
		r = sd_event_add_io(d->event, &d->sense_source, fd, EPOLLIN, on_sense, d);
	if (r >= 0)
		r = sd_event_add_time(d->event, &d->tick_source, CLOCK_MONOTONIC, d->due_ns / 1000, ACCURACY_US, on_tick, d);
	if (r >= 0)
		r = sd_event_source_set_priority(d->tick_source, SD_EVENT_PRIORITY_IMPORTANT);
	return r;
}

static int open_control(struct daemon *d)
{
	char path[MODEL_PATH];
	pid_t pid = 0;
	int r;

	snprintf(path, sizeof(path), "%s/control.sock", d->options.run_dir);
	mkdir(d->options.run_dir, 0755);
	r = control_new(d->event, path, daemon_verb, d, &pid, &d->control);
	if (r == -EADDRINUSE)
		journal_say(d->journal, 3, NULL, "another dwelld (pid %d) answers on %s; only one can run", pid, path);
	else if (r < 0)
		journal_say(d->journal, 3, NULL, "control socket %s: %s", path, strerror(-r));
	return r;
}

static int open_all(struct daemon *d)
{
	const struct sense_setup sense_setup = { .rungs = d->options.rungs, .root = d->options.root };
	const struct hook_client_setup hook_setup = { .runner = d->options.runner, .config = d->options.config,
						      .runs_dir = d->options.hook_dir };
	char why[200];
	int r;

	r = config_read(d->options.config, NULL, d->diag, d->model);
	say_diag(d);
	if (r < 0)
		return r;
	config_warn_user(d->model, d->diag);
	config_check_hooks(d->model, d->diag);
	say_diag(d);
	if (d->options.dry_run && d->model->mode == MODE_ACT)
		d->model->mode = MODE_DRY_RUN;
	journal_set_config_hash(d->journal, d->model->hash);
	r = open_control(d);
	if (r < 0)
		return r;
	r = sense_open(d->model, &sense_setup, d->diag, &d->sense);
	say_diag(d);
	if (r < 0)
		return r;
	r = hook_client_new(d->event, &hook_setup, daemon_on_hook_done, d, &d->hooks);
	if (r >= 0)
		r = open_engine(d);
	if (r < 0)
		return r;
	malloc_trim(0);		/* what libbpf needed to load is not needed to run, and would be locked */
	service_stay_alive(why, sizeof(why));
	if (why[0])
		journal_say(d->journal, 4, NULL, "on a starved host this daemon may be late: %s", why);
	d->tick_ns = d->options.tick_us ? d->options.tick_us * 1000 : d->model->tick_ns;
	d->started_ns = daemon_now_ns();
	d->due_ns = d->started_ns + d->tick_ns;
	return open_loop(d);
}

int daemon_new(const struct daemon_options *options, struct daemon **ret)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	hold_signals();
	d->options = *options;
	d->model = calloc(1, sizeof(*d->model));
	d->diag = calloc(1, sizeof(*d->diag));
	d->sample = calloc(1, sizeof(*d->sample));
	d->out = calloc(1, sizeof(*d->out));
	read_boot_id(d);
	r = d->model && d->diag && d->sample && d->out ? sd_event_new(&d->event) : -ENOMEM;
	if (r >= 0)
		r = journal_new(NULL, !getenv("JOURNAL_STREAM"), "", &d->journal);
	if (r >= 0)
		r = open_all(d);
	if (r < 0) {
		daemon_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

int daemon_run(struct daemon *d)
{
	return sd_event_loop(d->event);
}

void daemon_free(struct daemon *d)
{
	if (!d)
		return;
	control_free(d->control);
	if (d->hooks)
		hook_client_free(d->hooks);
	if (d->debts)
		debts_close(d->debts);
	sd_event_source_unref(d->tick_source);
	sd_event_source_unref(d->sense_source);
	sd_event_source_unref(d->term_source);
	sd_event_source_unref(d->int_source);
	sd_event_source_unref(d->hup_source);
	engine_free(d->engine);
	sense_close(d->sense);
	journal_free(d->journal);
	sd_event_unref(d->event);
	free(d->model);
	free(d->diag);
	free(d->sample);
	free(d->out);
	free(d);
}
