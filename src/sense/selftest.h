/* SPDX-License-Identifier: GPL-2.0-or-later */
/* selftest.h - datagrams to ourselves over loopback, so that a rung can be proven. Layer: sense.
 * The daemon reads no other UDP socket, so every datagram counted in slot `self` is one of these. */
#ifndef DWELLD_SELFTEST_H
#define DWELLD_SELFTEST_H

#include <stdint.h>

struct selftest { int rx, tx; };
#define SELFTEST_PACKETS 8

/* Sockets bound to 127.0.0.1. Negative errno when loopback cannot be used (down in this namespace). */
int selftest_open(struct selftest *t);
void selftest_close(struct selftest *t);
/* Send n, wait wait_ns, read them all. What our own clock says of their time between send and read. */
struct selftest_clock { uint64_t shortest_ns, longest_ns; unsigned int read; };
int selftest_round(struct selftest *t, unsigned int n, uint64_t wait_ns, struct selftest_clock *ret);
/* Overflow a tiny receive buffer, so that the kernel drops; then empty it. Number of datagrams sent and read. */
int selftest_overflow(struct selftest *t, unsigned int *ret_sent, unsigned int *ret_read);
#endif
