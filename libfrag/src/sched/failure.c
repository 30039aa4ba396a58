// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/may_write.h>
#include <graph/pools.h>
#include <sched/exec.h>

/* What a failure of start, compute or stop is, and the sentence about it. */

/* Explains a failure that compute passed on from an emit; NULL: the code is not from an emit. */
static const char *refusal(const struct frag_tick *tick, int code)
{
	if (tick->refused != code || tick->refused_in != tick->number)
		return NULL;
	switch (code) {
	case -ENOBUFS:
		return "no room in the queue of a flow; leave the output its downstream_affordable and emit no more a tick than the capacity, or give the flow a larger capacity or another policy";
	case -EMSGSIZE:
		return "the message is larger than a flow between hosts takes; send it in parts";
	case -EFAULT:
		return "a tensor's memory cannot be read: its pointer is wrong, or the memory was freed; wrapped memory must stay valid until release is called";
	case -EIO:
		return "a tensor cannot be copied from its GPU to be sent; the log has what CUDA says";
	case -ENOTSUP:
		return "a tensor lies on a GPU that nothing here has opened; call frag_op_use_device in initialize";
	case -EPROTOTYPE:
		return "the message is not of the port's type; emit that type, or declare the port with another";
	default:
		return NULL;
	}
}

enum fragi_failure fragi_exec_failure(const struct fragi_exec *exec, enum fragi_call_kind callback,
				      int code)
{
	if (code == -ENOMEM && fragi_op_starved_pool(exec->op) != NULL)
		return FRAGI_FAILURE_POOL_EXHAUSTED;
	if (callback != FRAGI_CALL_COMPUTE)
		return FRAGI_FAILURE_OPERATOR_FAILED;
	if (exec->missed_deadline)
		return FRAGI_FAILURE_DEADLINE_MISSED;
	if (exec->tick.fault != 0)
		return FRAGI_FAILURE_QUEUE_OVERFLOW;
	return refusal(&exec->tick, code) != NULL ? FRAGI_FAILURE_MESSAGE_REFUSED
						  : FRAGI_FAILURE_OPERATOR_FAILED;
}

const char *fragi_exec_failure_text(const struct fragi_exec *exec, enum fragi_call_kind callback,
				    int code, char *out, size_t size)
{
	const char *subject = exec->op->subject, *text = fragi_op_own_error(exec->op);
	const char *why = callback == FRAGI_CALL_COMPUTE ? refusal(&exec->tick, code) : NULL;
	char hint[FRAGI_MAY_WRITE_HINT_SIZE];

	fragi_may_write_hint(code, hint, sizeof(hint));
	if (text[0] != '\0' && strncmp(text, subject, strlen(subject)) == 0)
		snprintf(out, size, "%s%s", text, hint);
	else if (text[0] != '\0')
		snprintf(out, size, "%s: %s%s", subject, text, hint);
	else if (why != NULL)
		snprintf(out, size, "%s: cannot emit on port \"%s\" in tick %llu: %s", subject,
			 exec->op->ports[exec->tick.refused_port].name,
			 (unsigned long long)exec->tick.number, why);
	else if (callback == FRAGI_CALL_COMPUTE)
		snprintf(out, size, "%s: compute returned %d (%s) in tick %llu%s", subject, code,
			 frag_strerror(code), (unsigned long long)exec->tick.number, hint);
	else
		snprintf(out, size, "%s: %s returned %d (%s)%s", subject, fragi_call_name(callback),
			 code, frag_strerror(code), hint);
	return out;
}
