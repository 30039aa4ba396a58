/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHM_STEP_H
#define SHM_STEP_H

/*
 * The steps of a connection and of a message over it, in their order. A host may die at each, and
 * what its peer then does is tested at each: tests/conformance/test_shm_steps.c is linked with this
 * module compiled with SHM_STEPPED. Elsewhere a step is nothing.
 */
#define SHM_STEPS(X)                                                                               \
	X(HEAP_MADE)      /* the heap is there, nothing listens yet */                             \
	X(LISTENING)      /* it listens */                                                         \
	X(CHANNEL_MADE)   /* for a peer that it wants to connect to */                             \
	X(CONNECTED)      /* to the peer's socket */                                               \
	X(INTRODUCED)     /* the descriptors are on their way */                                   \
	X(GUEST_ACCEPTED) /* a peer has connected */                                               \
	X(GUEST_HEARD)    /* and introduced itself */                                              \
	X(RING_MAPPED)    /* the peer's channel is mapped */                                       \
	X(HEAP_MAPPED)    /* and its heap */                                                       \
	X(AREA_SHOWN)     /* one of its areas of device memory is on its way to the peer */        \
	X(AREA_HEARD)     /* one of the peer's has come */                                         \
	X(AREA_MAPPED)                                                                             \
	X(BLOCK_TAKEN)      /* out of the heap */                                                  \
	X(SLOT_TAKEN)       /* for the bodies of a message */                                      \
	X(BODIES_PLACED)    /* they are in the heap */                                             \
	X(RECORD_WRITTEN)   /* the message's, not shown yet */                                     \
	X(RECORD_SHOWN)     /* its peer can read it */                                             \
	X(PEER_WOKEN)       /* the peer's bell was rung */                                         \
	X(ASLEEP)           /* armed: the next record rings the bell */                            \
	X(RECORD_READ)      /* checked, nothing done yet */                                        \
	X(MESSAGE_TAKEN)    /* bodies are held for the protocol, which has not seen them */        \
	X(RECORD_USED)      /* what it says was done */                                            \
	X(RECORD_CONSUMED)  /* its place in the ring is free */                                    \
	X(MESSAGE_RELEASED) /* nothing here reads its bodies any more */                           \
	X(RETURN_WRITTEN)   /* the record that says so, not shown yet */                           \
	X(RETURN_SHOWN)                                                                            \
	X(RETURN_READ) /* the slot is not free yet */                                              \
	X(SLOT_GIVEN)  /* the slot is free, the sender does not know yet */                        \
	X(BLOCK_GIVEN) /* back to the heap */                                                      \
	X(CUT)         /* nothing goes in or out any more */                                       \
	X(UNMAPPED)    /* what the peer had shown, but for what messages hold */                   \
	X(SENDS_ENDED)                                                                             \
	X(GONE) /* the transport is destroyed */

#define SHM_STEP_NUMBER(name) SHM_STEP_##name,
enum shm_step { SHM_STEPS(SHM_STEP_NUMBER) SHM_STEP_COUNT };

#ifdef SHM_STEPPED
/* Thread: any. */
void shm_step(enum shm_step step);
#define SHM_STEP(name) shm_step(SHM_STEP_##name)
#else
#define SHM_STEP(name) ((void)0)
#endif

#endif
