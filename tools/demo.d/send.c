/* SPDX-License-Identifier: GPL-2.0-or-later */
/* send.c - RTP senders: audio streams (48 kHz, 50 packets/s) and video streams (90 kHz, 25 frames/s of N packets), each
 * packet at an absolute time of its own, and the receivers of what the server forwards.
 *
 * Prints one line of key=value words a second, and one "total" line at the end. late_*: how far the sender itself was
 * behind its schedule; a measurement made while that was large is void. recv_*: what a receiver's statistics (getStats)
 * would show: loss, RFC 3550 jitter, age since sending. */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig.h"

#define AUDIO_NS 20000000ULL
#define VIDEO_NS 40000000ULL
#define IN_FRAME_NS 250000ULL	/* between the packets of one frame: a pacer, not a burst */
#define FIRST_SSRC 0x10000000U

struct stream {
	bool video;
	uint64_t phase_ns, sent;
};

struct receiver {
	pthread_mutex_t lock;
	int fd;
	struct rig_hist age;
	uint64_t received, expected;	/* since the last line */
	struct {
		bool seen;
		uint16_t top;
		uint64_t arrived_ns;
		uint32_t timestamp;
		double jitter_ns;
	} of[RIG_STREAMS];
};

struct sender {
	int fd;
	struct sockaddr_in to;
	struct stream stream[RIG_STREAMS];
	unsigned int count, per_frame;
	uint64_t start_ns, second;
	struct rig_hist late, late_total;
	struct receiver *receiver;
	uint64_t received_total, expected_total;
	struct rig_hist age_total;
};

static volatile bool stop;

static uint64_t due_ns(const struct sender *s, const struct stream *m)
{
	if (!m->video)
		return s->start_ns + m->phase_ns + m->sent * AUDIO_NS;
	return s->start_ns + m->phase_ns + m->sent / s->per_frame * VIDEO_NS + m->sent % s->per_frame * IN_FRAME_NS;
}

static struct stream *next_stream(struct sender *s)
{
	struct stream *best = &s->stream[0];

	for (unsigned int i = 1; i < s->count; i++)
		if (due_ns(s, &s->stream[i]) < due_ns(s, best))
			best = &s->stream[i];
	return best;
}

static void send_one(struct sender *s, struct stream *m, uint64_t now_ns)
{
	const uint64_t frame = m->video ? m->sent / s->per_frame : m->sent;
	const struct rig_rtp p = {
		.payload_type = m->video ? 96 : 111,
		.marker = m->video && m->sent % s->per_frame == s->per_frame - 1,
		.seq = (uint16_t)m->sent,
		.timestamp = (uint32_t)(frame * (m->video ? 3600 : 960)),	/* 90000/25, 48000/50 */
		.ssrc = FIRST_SSRC + (uint32_t)(m - s->stream),
		.stamp_ns = now_ns,
	};
	uint8_t buf[RIG_MAX_PACKET] = { 0 };

	rig_rtp_write(buf, &p);
	m->sent++;
	/* blocking: a sender that drops on its own side would count as network loss */
	if (sendto(s->fd, buf, m->video ? 1000 : 160, 0, (const struct sockaddr *)&s->to, sizeof(s->to)) < 0 &&
	    errno != EINTR && errno != ECONNREFUSED)
		rig_die("sendto");
}

/* RFC 3550 6.4.1 and A.8, in ns: the change of transit time between packets, smoothed by 1/16. */
static void receive_one(struct receiver *r, const struct rig_rtp *p, uint64_t now_ns)
{
	const uint32_t i = p->ssrc - FIRST_SSRC;
	const double tick_ns = 1e9 / (p->payload_type == 96 ? 90000.0 : 48000.0);

	if (i >= RIG_STREAMS)
		return;
	rig_hist_add(&r->age, now_ns - p->stamp_ns);
	r->received++;
	if (!r->of[i].seen) {
		r->of[i].seen = true;
		r->of[i].top = p->seq;
		r->expected++;
	} else {
		const int16_t ahead = (int16_t)(p->seq - r->of[i].top);
		double d = (double)(int64_t)(now_ns - r->of[i].arrived_ns) -
			   tick_ns * (int32_t)(p->timestamp - r->of[i].timestamp);

		d = d < 0 ? -d : d;
		r->of[i].jitter_ns += (d - r->of[i].jitter_ns) / 16;
		if (ahead > 0) {
			r->expected += (uint64_t)ahead;
			r->of[i].top = p->seq;
		}
	}
	r->of[i].arrived_ns = now_ns;
	r->of[i].timestamp = p->timestamp;
}

static void *receive(void *userdata)
{
	struct receiver *r = userdata;
	uint8_t buf[RIG_MAX_PACKET];

	rig_hurry(10);
	for (;;) {
		const ssize_t n = recv(r->fd, buf, sizeof(buf), 0);
		const uint64_t now_ns = rig_now();
		struct rig_rtp p;

		if (n < 0 && errno != EINTR)
			rig_die("recv");
		if (n < 0 || rig_rtp_read(buf, (size_t)n, &p) < 0)
			continue;
		pthread_mutex_lock(&r->lock);
		receive_one(r, &p, now_ns);
		pthread_mutex_unlock(&r->lock);
	}
	return NULL;
}

static double loss_pct(uint64_t received, uint64_t expected)
{
	return received < expected ? 100.0 * (double)(expected - received) / (double)expected : 0.0;
}

static void print_hists(const char *head, const struct rig_hist *late, const struct rig_hist *age)
{
	printf("%s packets=%llu late_p50_us=%.1f late_p99_us=%.1f late_max_us=%.1f age_mean_ms=%.3f age_p50_ms=%.3f "
	       "age_p99_ms=%.3f age_max_ms=%.3f",
	       head, (unsigned long long)late->count, (double)rig_hist_percentile(late, 0.50) / 1e3,
	       (double)rig_hist_percentile(late, 0.99) / 1e3, (double)late->max_ns / 1e3,
	       age->count ? (double)age->sum_ns / (double)age->count / 1e6 : 0.0,
	       (double)rig_hist_percentile(age, 0.50) / 1e6, (double)rig_hist_percentile(age, 0.99) / 1e6,
	       (double)age->max_ns / 1e6);
}

static void print_second(struct sender *s)
{
	struct receiver *r = s->receiver;
	double jitter_ns = 0;
	unsigned int streams = 0;
	char head[32];

	snprintf(head, sizeof(head), "second=%llu", (unsigned long long)++s->second);
	pthread_mutex_lock(&r->lock);
	for (unsigned int i = 0; i < RIG_STREAMS; i++) {
		jitter_ns += r->of[i].jitter_ns;
		streams += r->of[i].seen;
	}
	print_hists(head, &s->late, &r->age);
	printf(" recv=%llu recv_loss_pct=%.2f recv_jitter_ms=%.2f\n", (unsigned long long)r->received,
	       loss_pct(r->received, r->expected), streams ? jitter_ns / streams / 1e6 : 0.0);
	rig_hist_merge(&s->age_total, &r->age);
	s->received_total += r->received;
	s->expected_total += r->expected;
	r->received = 0;
	r->expected = 0;
	memset(&r->age, 0, sizeof(r->age));
	pthread_mutex_unlock(&r->lock);
	fflush(stdout);
	rig_hist_merge(&s->late_total, &s->late);
	memset(&s->late, 0, sizeof(s->late));
}

static void run(struct sender *s)
{
	s->start_ns = rig_now() + 10000000;
	while (!stop) {
		struct stream *m = next_stream(s);
		const uint64_t due = due_ns(s, m);
		const struct timespec t = { .tv_sec = (time_t)(due / RIG_NS), .tv_nsec = (long)(due % RIG_NS) };
		uint64_t now_ns;

		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
			continue;
		now_ns = rig_now();
		rig_hist_add(&s->late, now_ns - due);
		send_one(s, m, now_ns);
		if (now_ns - s->start_ns >= (s->second + 1) * RIG_NS)
			print_second(s);
	}
	print_second(s);
	print_hists("total", &s->late_total, &s->age_total);
	printf(" recv=%llu recv_loss_pct=%.2f\n", (unsigned long long)s->received_total,
	       loss_pct(s->received_total, s->expected_total));
}

static void add_streams(struct sender *s, long audio, long video)
{
	s->count = (unsigned int)(audio + video);
	if (s->count == 0 || s->count > RIG_STREAMS) {
		fprintf(stderr, "1 to %d streams, please\n", RIG_STREAMS);
		exit(2);
	}
	for (unsigned int i = 0; i < s->count; i++) {	/* the phases spread each kind over its interval */
		s->stream[i].video = i >= audio;
		s->stream[i].phase_ns = i < audio ? AUDIO_NS * i / (uint64_t)audio
						  : VIDEO_NS * (i - (uint64_t)audio) / (uint64_t)video + 500000;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "to", required_argument, NULL, 't' },
						 { "receive", required_argument, NULL, 'r' },
						 { "audio", required_argument, NULL, 'a' },
						 { "video", required_argument, NULL, 'v' },
						 { "per-frame", required_argument, NULL, 'f' },
						 { "cpu", required_argument, NULL, 'c' },
						 { 0 } };
	static struct receiver receiver = { .lock = PTHREAD_MUTEX_INITIALIZER };
	static struct sender s = { .per_frame = 2, .receiver = &receiver };
	struct sockaddr_in receive_at = { .sin_family = AF_INET, .sin_port = htons(6000) };
	const struct sockaddr_in any = { .sin_family = AF_INET };
	long audio = 10, video = 10;
	pthread_t thread;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 't') {
			s.to = rig_address(optarg);
		} else if (o == 'r') {
			receive_at = rig_address(optarg);
		} else if (o == 'a') {
			audio = rig_number("--audio", optarg, 0, RIG_STREAMS);
		} else if (o == 'v') {
			video = rig_number("--video", optarg, 0, RIG_STREAMS);
		} else if (o == 'f') {
			s.per_frame = (unsigned int)rig_number("--per-frame", optarg, 1, 200);
		} else if (o == 'c') {
			rig_pin((int)rig_number("--cpu", optarg, 0, 1023));
		} else {
			fprintf(stderr, "usage: %s --to A:P [--receive A:P] [--audio N] [--video N] [--per-frame N] [--cpu N]\n",
				argv[0]);
			return 2;
		}
	}
	add_streams(&s, audio, video);
	rig_die_with_parent();
	rig_stop_on_signals(&stop);
	s.fd = rig_udp_socket(&any, 1 << 16);
	receiver.fd = rig_udp_socket(&receive_at, 8 << 20);
	if (pthread_create(&thread, NULL, receive, &receiver))
		rig_die("pthread_create");
	printf("sched=%s\n", rig_hurry(20));
	run(&s);
	return 0;
}
