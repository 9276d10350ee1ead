/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "signal.h"

#include <string.h>

#define BIT(stat) (1U << (stat))
#define BARE BIT(STAT_BARE)
#define DISTRIBUTION (BIT(STAT_P50) | BIT(STAT_P90) | BIT(STAT_P99) | BIT(STAT_P999) | BIT(STAT_MAX) | \
		      BIT(STAT_MEAN) | BIT(STAT_RATE) | BIT(STAT_COUNT) | BIT(STAT_OVER))
#define COUNTER (BIT(STAT_RATE) | BIT(STAT_COUNT))
#define COUNTER_OF (COUNTER | BIT(STAT_SHARE))

const struct signal_info signal_table[SIGNAL_ID_COUNT] = {
	[SIGNAL_DWELL] = {
		"dwell", SIGNAL_DISTRIBUTION, SIGNAL_OF_TARGET, UNIT_TIME, DISTRIBUTION, "dwell",
		"time from a datagram's entry into the socket queue to its read by the application" },
	[SIGNAL_DWELL_OLDEST] = {
		"dwell.oldest", SIGNAL_DISTRIBUTION, SIGNAL_OF_TARGET, UNIT_TIME, BARE, "dwell",
		"age of the oldest unread datagram now" },
	[SIGNAL_DWELL_WORST] = {
		"dwell.worst", SIGNAL_DISTRIBUTION, SIGNAL_OF_TARGET, UNIT_TIME, BIT(STAT_P99), "dwell",
		"dwell of the reader thread that has the longest p99" },
	[SIGNAL_RUNQ] = {
		"runq", SIGNAL_DISTRIBUTION, SIGNAL_OF_TARGET, UNIT_TIME, DISTRIBUTION, "runq",
		"time that threads of the reader processes were runnable and waited for a CPU" },
	[SIGNAL_SOFTIRQ_WAIT] = {
		"softirq.wait", SIGNAL_DISTRIBUTION, SIGNAL_OF_HOST, UNIT_TIME, DISTRIBUTION, "softirq",
		"time from the raise of a receive softirq to its start" },
	[SIGNAL_SOFTIRQ_RUN] = {
		"softirq.run", SIGNAL_DISTRIBUTION, SIGNAL_OF_HOST, UNIT_TIME, DISTRIBUTION, "softirq",
		"time that a receive softirq ran" },
	[SIGNAL_RTP_LOSS] = {
		"rtp.loss", SIGNAL_RATIO, SIGNAL_OF_TARGET, UNIT_RATIO, BARE, "rtp",
		"share of expected RTP packets that did not arrive, over all streams" },
	[SIGNAL_RTP_LOSS_WORST] = {
		"rtp.loss.worst", SIGNAL_RATIO, SIGNAL_OF_TARGET, UNIT_RATIO, BARE, "rtp",
		"loss of the RTP stream that loses most" },
	[SIGNAL_RTP_BAD_STREAMS] = {
		"rtp.bad_streams", SIGNAL_RATIO, SIGNAL_OF_TARGET, UNIT_RATIO, BARE, "rtp",
		"share of active RTP streams that lose more than 5 %" },
	[SIGNAL_RTP_LATE_STREAMS] = {
		"rtp.late_streams", SIGNAL_RATIO, SIGNAL_OF_TARGET, UNIT_RATIO, BARE, "rtp",
		"share of RTP streams with more than 50 ms of jitter, of those whose clock rate is known" },
	[SIGNAL_QUEUE_FILL] = {
		"queue.fill", SIGNAL_RATIO, SIGNAL_OF_TARGET, UNIT_RATIO, BARE, "dwell",
		"highest fill of a receive buffer" },
	[SIGNAL_HOST_CPU_BUSY] = {
		"host.cpu.busy", SIGNAL_RATIO, SIGNAL_OF_HOST, UNIT_RATIO, BARE, NULL,
		"share of time that the online CPUs were busy" },
	[SIGNAL_HOST_STEAL] = {
		"host.steal", SIGNAL_RATIO, SIGNAL_OF_HOST, UNIT_RATIO, BARE, NULL,
		"share of time that the hypervisor gave to others" },
	[SIGNAL_DROPS_SERVER] = {
		"drops.server", SIGNAL_COUNTER, SIGNAL_OF_TARGET, UNIT_NONE, COUNTER_OF, "drops",
		"datagrams dropped by this host: receive buffer, memory" },
	[SIGNAL_DROPS_NETWORK] = {
		"drops.network", SIGNAL_COUNTER, SIGNAL_OF_TARGET, UNIT_NONE, COUNTER_OF, "drops",
		"datagrams dropped for what they are: checksum, filter" },
	[SIGNAL_DROPS_RCVBUF] = {
		"drops.rcvbuf", SIGNAL_COUNTER, SIGNAL_OF_TARGET, UNIT_NONE, COUNTER_OF, "drops",
		"datagrams dropped because the receive buffer was full" },
	[SIGNAL_RTP_REORDER] = {
		"rtp.reorder", SIGNAL_COUNTER, SIGNAL_OF_TARGET, UNIT_NONE, COUNTER_OF, "rtp",
		"RTP packets that arrived after a later one" },
	[SIGNAL_RTP_DUPLICATES] = {
		"rtp.duplicates", SIGNAL_COUNTER, SIGNAL_OF_TARGET, UNIT_NONE, COUNTER_OF, "rtp",
		"RTP packets that arrived more than once" },
	[SIGNAL_HOST_NIC_DROPS] = {
		"host.nic_drops", SIGNAL_COUNTER, SIGNAL_OF_HOST, UNIT_NONE, COUNTER_OF, NULL,
		"packets dropped by network interfaces and the receive backlog" },
	[SIGNAL_HOST_SQUEEZED] = {
		"host.squeezed", SIGNAL_COUNTER, SIGNAL_OF_HOST, UNIT_NONE, COUNTER, NULL,
		"receive passes that used up their budget" },
	[SIGNAL_RTP_STREAMS] = {
		"rtp.streams", SIGNAL_GAUGE, SIGNAL_OF_TARGET, UNIT_NONE, BARE, "rtp",
		"RTP streams with a packet in the last 5 s" },
	[SIGNAL_RTP_JITTER] = {
		"rtp.jitter", SIGNAL_GAUGE, SIGNAL_OF_TARGET, UNIT_TIME, BARE, "rtp",
		"median over streams of the RFC 3550 jitter at arrival" },
	[SIGNAL_QUEUE_RCVBUF] = {
		"queue.rcvbuf", SIGNAL_GAUGE, SIGNAL_OF_TARGET, UNIT_BYTES, BARE, "dwell",
		"smallest receive buffer of the target's sockets" },
	[SIGNAL_COVERAGE] = {
		"probes.missing", SIGNAL_GAUGE, SIGNAL_OF_HOST, UNIT_NONE, BARE, NULL,
		"probes that an enabled rule needs and that are not attached" },
};

const struct stat_info signal_stats[STAT_ID_COUNT] = {
	[STAT_BARE] = { "", 0, UNIT_TIME, "the value itself" },
	[STAT_P50] = { "p50", 20, UNIT_TIME, "half of the samples are not larger" },
	[STAT_P90] = { "p90", 50, UNIT_TIME, "90 % of the samples are not larger" },
	[STAT_P99] = { "p99", 100, UNIT_TIME, "99 % of the samples are not larger" },
	[STAT_P999] = { "p999", 1000, UNIT_TIME, "99.9 % of the samples are not larger" },
	[STAT_MAX] = { "max", 0, UNIT_TIME, "the largest sample" },
	[STAT_MEAN] = { "mean", 20, UNIT_TIME, "the arithmetic mean" },
	[STAT_RATE] = { "rate", 0, UNIT_RATE, "how many per second" },
	[STAT_COUNT] = { "count", 0, UNIT_NONE, "how many in the window" },
	[STAT_OVER] = { "over", 50, UNIT_RATIO, "share of the samples that are larger than the argument" },
	[STAT_SHARE] = { "share", 0, UNIT_RATIO, "part of what arrived" },
};

/* Designed, not built. A name below one of these (drops.reason["NAME"], irq2app.p99) is planned too. */
static const char *const planned[] = {
	"dwell.share", "irq2app", "runq.by", "drops.reason", "rtcp", "cpu.throttled", "cpu.psi",
};

bool signal_is_planned(const char *name)
{
	size_t i, n;

	for (i = 0; i < sizeof(planned) / sizeof(planned[0]); i++) {
		n = strlen(planned[i]);
		if (!strncmp(name, planned[i], n) && (name[n] == '\0' || name[n] == '.' || name[n] == '['))
			return true;
	}
	return false;
}

#define SUGGEST_LENGTH 48	/* longer names are no typing error of ours */

/* Edits (insert, delete, replace, each 1) from a to b; both at most SUGGEST_LENGTH long. */
static unsigned int edit_distance(const char *a, const char *b)
{
	unsigned int row[SUGGEST_LENGTH + 1], diagonal, above, i, j;
	const unsigned int n = (unsigned int)strlen(b);

	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 0; a[i]; i++) {
		diagonal = row[0];
		row[0] = i + 1;
		for (j = 0; j < n; j++) {
			above = row[j + 1];
			row[j + 1] = diagonal + (a[i] != b[j]);
			if (above + 1 < row[j + 1])
				row[j + 1] = above + 1;
			if (row[j] + 1 < row[j + 1])
				row[j + 1] = row[j] + 1;
			diagonal = above;
		}
	}
	return row[n];
}

const char *signal_suggest(const char *name)
{
	const size_t length = strlen(name);
	unsigned int best, distance, i;
	const char *found = NULL;

	if (length == 0 || length > SUGGEST_LENGTH)
		return NULL;
	best = (unsigned int)length / 3 + 1;	/* more than that is another word */
	for (i = 0; i < SIGNAL_ID_COUNT; i++) {
		distance = edit_distance(name, signal_table[i].name);
		if (distance <= best && (!found || distance < best)) {
			best = distance;
			found = signal_table[i].name;
		}
	}
	return found;
}
