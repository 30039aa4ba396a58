// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include <data/memory.h>
#include <edge/remote/state.h>

/*
 * Tensors in the memory of a GPU, on their way out. What the other host maps is handed over; else
 * the protocol sends a copy in memory of the host. A message is sent when the GPU has written what
 * is handed over, or copied what is not: until then it is the next of its edge, and nobody waits.
 * No stream of another process ever waits for work of this one: such a wait would never end if this
 * process died.
 */

bool fragi_remote_tx_is_mapped(const struct fragi_remote_tx *tx, const struct frag_tensor *tensor)
{
	const struct fragi_remote_transport *transport = tx->edge.endpoint->transport;
	const struct fragi_body body = {
		.data = (void *)(uintptr_t)frag_tensor_data(tensor),
		.bytes = tensor->compact_bytes,
	};
	uint64_t areas = atomic_load_explicit(&tx->edge.endpoint->areas, memory_order_relaxed);
	int number;

	if (fragi_device_is_host(tensor->dl.device) || areas == 0 || !tensor->compact ||
	    tx->edge.config.encrypt)
		return false;
	number = transport->ops->area(transport->transport, &body);
	return number >= 0 && (areas >> number & 1) != 0;
}

static void on_written(void *arg)
{
	struct fragi_remote_tx *tx = arg;

	if (!atomic_exchange(&tx->kicked, true))
		fragi_pump_submit(fragi_remote_of(tx->edge.endpoint)->config.pump, &tx->kick);
	atomic_fetch_sub(&tx->awaiting, 1); /* the last access */
}

static void fail_for_gpu(struct fragi_remote_tx *tx, const struct frag_err *why)
{
	const struct fragi_remote_config *config = &fragi_remote_of(tx->edge.endpoint)->config;
	const char *op = tx->edge.config.op;
	char sentence[FRAGI_SENTENCE_MAX];

	snprintf(
		sentence, sizeof(sentence),
		"%.150s: a message that it has emitted cannot be sent: the GPU that writes or copies it has failed: %.240s",
		op, why->text);
	if (config->fault != NULL)
		config->fault(config->arg, FRAGI_FAILURE_HOST_FAILED, op, sentence);
}

/* Whose bytes are sent, or handed over. NULL: there can be no copy. */
static const struct frag_tensor *sent_for(const struct fragi_remote_tx *tx,
					  struct frag_tensor *tensor, bool *out_mapped)
{
	*out_mapped = !tensor->sends_data && fragi_remote_tx_is_mapped(tx, tensor);
	return *out_mapped ? tensor : fragi_tensor_sent(tensor, NULL);
}

bool fragi_remote_tx_awaits(struct fragi_remote_tx *tx, const struct frag_message *message)
{
	struct frag_err why = FRAG_ERR_INIT;
	const struct frag_tensor *sent;
	struct fragi_work *work = NULL;
	bool mapped;
	int r = 1;

	for (uint32_t i = 0; i < message->tensor_count && r == 1; i++) {
		sent = sent_for(tx, message->tensors[i].tensor, &mapped);
		work = sent != NULL ? sent->written : NULL;
		r = work == NULL || atomic_load_explicit(&work->done, memory_order_acquire)
			    ? 1
			    : work->ops->is_done(work, &why);
	}
	if (r == 1)
		return false;
	if (r < 0) {
		if (!tx->gpu_failed)
			fail_for_gpu(tx, &why);
		tx->gpu_failed = true;
		return true;
	}
	if (work == tx->awaited)
		return true;
	tx->awaited = work;
	atomic_fetch_add(&tx->awaiting, 1);
	fragi_work_defer(work, on_written, tx);
	return true;
}

int fragi_remote_tx_gather(struct fragi_remote_tx *tx, const struct frag_message *message,
			   struct fragi_body *bodies, uint32_t *out_count, uint64_t *out_bytes)
{
	bool any_mapped = false, any_staged = false, mapped;
	uint32_t count = 0;

	*out_bytes = 0;
	for (uint32_t i = 0; i < message->tensor_count; i++) {
		struct frag_tensor *tensor = message->tensors[i].tensor;
		const struct frag_tensor *sent = sent_for(tx, tensor, &mapped);

		if (sent == NULL)
			return -EIO;
		if (sent->compact_bytes == 0)
			continue;
		any_mapped |= mapped;
		any_staged |= !mapped && !fragi_device_is_host(tensor->dl.device);
		bodies[count++] = (struct fragi_body){
			.data = (uint8_t *)sent->dl.data + sent->dl.byte_offset,
			.bytes = sent->compact_bytes,
			.device = sent->dl.device,
			.owner = sent->allocator,
		};
		*out_bytes += sent->compact_bytes;
	}
	if (__builtin_expect(any_staged, 0))
		fragi_count(&tx->tx.row->gpu_staged, 1);
	else if (__builtin_expect(any_mapped, 0))
		fragi_count(&tx->tx.row->gpu_mapped, 1);
	*out_count = count;
	return any_staged && !any_mapped;
}
