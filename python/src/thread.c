/* SPDX-License-Identifier: Apache-2.0 */
#include "extension.h"

#include <pthread.h>

/*
 * A thread of frag calls into Python at each tick. The thread state that CPython makes for it at
 * the first call is kept until the thread ends: to make one costs 9 us, to take the lock 0.1.
 */
static __thread bool is_known;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* CPython's own note of the thread state may be gone by now, so PyGILState_Release is no help. */
static void end_thread(void *kept)
{
	if (!Py_IsInitialized())
		return;
	PyEval_RestoreThread(kept);
	PyThreadState_Clear(kept);
	(void)PyEval_SaveThread();
	PyThreadState_Delete(kept);
}

static void create_key(void)
{
	pthread_key_create(&key, end_thread);
}

/* The first call on this thread. */
static void keep_state(void)
{
	is_known = true;
	if (PyGILState_GetThisThreadState() != NULL) /* a thread of Python's */
		return;
	pthread_once(&once, create_key);
	(void)PyGILState_Ensure();
	pthread_setspecific(key, PyEval_SaveThread());
}

PyGILState_STATE fpy_enter(void)
{
	if (!is_known)
		keep_state();
	return PyGILState_Ensure();
}

void fpy_leave(PyGILState_STATE state)
{
	PyGILState_Release(state);
}
