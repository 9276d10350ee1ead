/* SPDX-License-Identifier: GPL-2.0-or-later */
/* host.h - what the reader of a figure has to know of the machine it comes from. */
#ifndef DWELLD_BENCH_HOST_H
#define DWELLD_BENCH_HOST_H

#include <stddef.h>

struct host_load { unsigned long long total, idle, steal; };	/* ticks of all CPUs, since boot */

void host_cpu_model(char *buf, size_t size);
void host_load_begin(struct host_load *ret);
/* How busy the machine was since, by others too, and what the hypervisor took. */
void host_load_print(const struct host_load *begin, unsigned int seconds);
#endif
