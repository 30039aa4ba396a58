// SPDX-License-Identifier: Apache-2.0
/*
 * What GStreamer's elements cost, for comparison: gst ELEMENT COUNT BUFFERS runs fakesrc, COUNT
 * times ELEMENT (identity, queue) and fakesink, and prints ns a buffer by the clock and of
 * processor time.
 */
#include <gst/gst.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	GString *text = g_string_new(NULL);
	double buffers, wall, cpu;
	GstElement *pipeline;
	GstMessage *message;
	int count;

	if (argc != 4) {
		fprintf(stderr, "usage: gst ELEMENT COUNT BUFFERS\n");
		return 2;
	}
	count = atoi(argv[2]);
	buffers = atof(argv[3]);
	gst_init(NULL, NULL);
	g_string_printf(text, "fakesrc num-buffers=%d", atoi(argv[3]));
	for (int i = 0; i < count; i++)
		g_string_append_printf(text, " ! %s", argv[1]);
	g_string_append(text, " ! fakesink sync=false");
	pipeline = gst_parse_launch(text->str, NULL);
	if (pipeline == NULL)
		return 1;
	gst_element_set_state(pipeline, GST_STATE_PAUSED);
	gst_element_get_state(pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
	wall = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	gst_element_set_state(pipeline, GST_STATE_PLAYING);
	message = gst_bus_timed_pop_filtered(gst_element_get_bus(pipeline), GST_CLOCK_TIME_NONE,
					     GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
	wall = now_ns(CLOCK_MONOTONIC) - wall;
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR)
		return 1;
	gst_element_set_state(pipeline, GST_STATE_NULL);
	printf("%.2f %.2f\n", wall / buffers, cpu / buffers);
	return 0;
}
