// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <fragctl/predict.h>
#include <graph/predict.h>

/* All flows: those inside each fragment, which know no other, then those between them. */
static struct fragi_flow_info *all_flows(const struct ctl_composed *composed, size_t *out_count)
{
	size_t count = composed->inner_flow_count + composed->flow_count, at = 0;
	struct fragi_flow_info *flows = fragi_calloc(count + 1, sizeof(*flows));

	for (size_t f = 0; flows != NULL && f < composed->fragment_count; f++)
		for (size_t i = 0; i < composed->fragments[f]->flow_count; i++, at++) {
			flows[at] = composed->fragments[f]->flows[i];
			flows[at].from_fragment = flows[at].to_fragment = (uint32_t)f;
		}
	if (flows != NULL && composed->flow_count > 0)
		memcpy(&flows[at], composed->flows, composed->flow_count * sizeof(*flows));
	*out_count = count;
	return flows;
}

int ctl_predict(struct ctl_graph *graph, const struct ctl_composed *composed, char **out_lines)
{
	struct fragi_prediction prediction = {0};
	struct fragi_flow_info *flows = NULL;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	FILE *out = NULL;
	size_t count, size;

	*out_lines = NULL;
	if (!fragi_predict_wanted(graph->spec))
		return CTL_OK;
	flows = all_flows(composed, &count);
	out = open_memstream(out_lines, &size);
	if (flows == NULL || out == NULL ||
	    fragi_predict(graph->spec, composed->infos, flows, count, &prediction) < 0)
		goto err_memory;
	fragi_predict_print(&prediction, graph->spec, composed->infos, flows, count,
			    cores > 0 ? (uint32_t)cores : 1, out, &graph->warnings);
	fragi_prediction_fini(&prediction);
	fragi_free(flows);
	if (fclose(out) == 0)
		return CTL_OK;
	out = NULL;
	flows = NULL;
err_memory:
	if (out != NULL)
		fclose(out);
	fragi_free(flows);
	free(*out_lines);
	*out_lines = NULL;
	return ctl_fail(CTL_FAILED, "out of memory for a prediction");
}
