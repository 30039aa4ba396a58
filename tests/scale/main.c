// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scale.h"

/*
 * scale SMALL LARGE [MOST]: what an event costs the driver's core with so many workers, in each
 * phase, and by how much more it does with LARGE than with SMALL. Fails when that is above MOST.
 */
#define ROUNDS 3

static uint32_t number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end != '\0' || value < 20 || value > 20000 || value % 10 != 0) {
		fprintf(stderr, "scale: %s: give a multiple of 10, from 20 to 20000\n", text);
		exit(2);
	}
	return (uint32_t)value;
}

/*
 * scale one WORKERS FRAGMENTS TIMES [MOST]: what one application costs the driver's core, and by
 * how much more with so many times as many workers and fragments. Fails when that is above MOST.
 */
static int measure_one(uint32_t workers, uint32_t fragments, uint32_t times, double most)
{
	double ns[2] = {0};

	for (int i = 0; i < 2; i++) {
		uint32_t by = i == 0 ? 1 : times;
		const char *failure = scale_measure_one(workers * by, fragments * by, &ns[i]);

		if (failure != NULL) {
			fprintf(stderr, "scale: %s\n", failure);
			return 1;
		}
		printf("one application of %u fragments on %u workers: %.3f s\n", fragments * by,
		       workers * by, ns[i] / 1e9);
	}
	if (most > 0 && ns[1] / ns[0] > most)
		fprintf(stderr, "scale: the next line says more than %.2f x\n", most);
	printf("it grows %.2f x with %u times as many of both\n", ns[1] / ns[0], times);
	return most > 0 && ns[1] / ns[0] > most ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct scale_costs costs[2] = {0};
	double most = argc == 4 ? atof(argv[3]) : 0, growth;
	uint32_t sizes[2];

	if (argc >= 5 && strcmp(argv[1], "one") == 0)
		return measure_one(number(argv[2]), number(argv[3]), (uint32_t)atoi(argv[4]),
				   argc > 5 ? atof(argv[5]) : 0);
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: scale SMALL LARGE [MOST]\n"
				"       scale one WORKERS FRAGMENTS TIMES [MOST]\n");
		return 2;
	}
	sizes[0] = number(argv[1]);
	sizes[1] = number(argv[2]);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		const char *failure = scale_measure(sizes[i % 2], &costs[i % 2]);

		if (failure != NULL) {
			fprintf(stderr, "scale: %u workers: %s\n", sizes[i % 2], failure);
			return 1;
		}
	}
	printf("%-14s %10u workers %15u workers\n", "", sizes[0], sizes[1]);
	for (int p = 0; p < SCALE_PHASES; p++)
		printf("%-14s %8.2f us/event %12.2f us/event %8.2f x  (%llu events, the largest %.2f ms)\n",
		       scale_names[p], costs[0].ns[p] / 1000, costs[1].ns[p] / 1000,
		       costs[1].ns[p] / costs[0].ns[p], (unsigned long long)costs[1].events[p],
		       (double)costs[1].largest_ns[p] * 1e-6);
	growth = scale_growth(&costs[0], &costs[1]);
	if (most > 0 && growth > most)
		fprintf(stderr, "scale: the next line says more than %.2f x\n", most);
	printf("the driver's time per event grows %.2f x from %u to %u workers; the goal is 2 x\n",
	       growth, sizes[0], sizes[1]);
	return most > 0 && growth > most ? 1 : 0;
}
