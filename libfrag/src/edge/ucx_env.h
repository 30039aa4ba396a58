/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_UCX_ENV_H
#define FRAGI_EDGE_UCX_ENV_H

/*
 * The settings of UCX that the ucx module is made and measured for, as X(name, value). UCX reads
 * some of them before main, so they must be in the environment when the process (or the module)
 * starts; a user's own win. Beside these: UCX_NET_DEVICES, the interface of the data plane, and
 * UCX_TCP_PORT_RANGE.
 */
#define FRAGI_UCX_FOLDER "FRAG_UCX" /* of the UCX to use; not set: that of the system */
/* "203.0.113.5/1000": where others reach this host's ports, and how much higher those are */
#define FRAGI_UCX_ANNOUNCED "FRAG_DATA_ANNOUNCED"
#define UCX_LOG_LEVEL_OF_FRAG "error" /* with any other, UCX prints its lines itself */
#define FRAGI_UCX_ENV(X)                                                                           \
	X("UCX_TLS",                                                                               \
	  "tcp") /* shared memory does not survive a peer that is killed while it sends */         \
	X("UCX_TCP_CONN_NB",                                                                       \
	  "y") /* else connecting to a host that does not answer blocks for minutes */             \
	X("UCX_TCP_TX_SEG_SIZE", "64K")                                                            \
	X("UCX_TCP_RX_SEG_SIZE",                                                                   \
	  "256K") /* bodies cross in pieces of it: with UCX's own 64K a tenth slower, or more */   \
	X("UCX_RNDV_THRESH", "1M")                                                                 \
	X("UCX_MM_ERROR_HANDLING", "y")                                                            \
	X("UCX_KEEPALIVE_INTERVAL", "1s")                                                          \
	X("UCX_HANDLE_ERRORS", "none") /* leave signals to us */                                   \
	X("UCX_LOG_FILE",                                                                          \
	  "stderr") /* a path would be opened anew, and truncate what stderr leads to */           \
	X("UCX_LOG_LEVEL", UCX_LOG_LEVEL_OF_FRAG)                                                  \
	X("UCX_WARN_UNUSED_ENV_VARS", "n")

#endif
