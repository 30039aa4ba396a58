/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_FAILURE_H
#define FRAGI_BASE_FAILURE_H

#include <base/diag.h>

/*
 * Every way in which a run can fail, in one table. A failure is classified where it happens, and
 * its code travels with its sentence to the summary and to the exit codes of all programs; nobody
 * reads the sentence to find out. docs/ERRORS.md is made of this table.
 */

/* What the programs exit with; 128 + n: ended by signal n. X(NAME, code, meaning) */
#define FRAGI_EXIT_LIST(X)                                                                         \
	X(OK, 0, "done, or stopped on request")                                                    \
	X(FAILED, 1, "the application failed")                                                     \
	X(USAGE, 2, "wrong usage, graph or parameter")                                             \
	X(MISSING, 3,                                                                              \
	  "something it needs is missing: port in use, library or file not found, driver lost")    \
	X(TIMEOUT, 4, "start timeout, or --timeout of fragctl")                                    \
	X(REFUSED, 5, "refused by the peer (key, version, user)")

/* What has failed, from the smallest to the whole. X(NAME, name, meaning) */
#define FRAGI_SCOPE_LIST(X)                                                                        \
	X(MESSAGE, message, "one message")                                                         \
	X(EDGE, edge, "a flow at run time, between two operators or two hosts")                    \
	X(OPERATOR, operator, "one operator")                                                      \
	X(HOST, host, "the process that runs fragments on a worker")                               \
	X(NODE, node, "a worker and what is installed there")                                      \
	X(GRAPH, graph, "the application as it is written")                                        \
	X(DRIVER, driver, "the driver, or the program that was called")

/*
 * X(NAME, name, SCOPE, EXIT, meaning, remedy). A failure's place is its number on the wire: new
 * ones are appended.
 */
#define FRAGI_FAILURE_LIST(X)                                                                          \
	X(OTHER, other, DRIVER, FAILED, "Something failed that has no code of its own.",               \
	  "The sentence says what; a newer version of frag may know more of it.")                      \
	X(OUT_OF_MEMORY, out_of_memory, DRIVER, FAILED, "A program ran out of memory.",                \
	  "Give it more, or run fewer and smaller fragments in one place.")                            \
	X(SYSTEM_REFUSED, system_refused, DRIVER, MISSING,                                             \
	  "The system refused a program what it cannot do without.",                                   \
	  "Look at its limits: descriptors (ulimit -n), processes, memory.")                           \
	X(USAGE, usage, DRIVER, USAGE, "A flag or an operand is wrong.",                               \
	  "--help lists what the program takes.")                                                      \
	X(FILE_MISSING, file_missing, GRAPH, MISSING,                                                  \
	  "The application's file, or one that it or a flag names, cannot be read.",                   \
	  "Check the path and its permissions.")                                                       \
	X(GRAPH_INVALID, graph_invalid, GRAPH, USAGE,                                                  \
	  "The graph, a parameter or an argument is wrong.",                                           \
	  "The sentence gives file, line and column; fragctl validate finds all errors at once.")      \
	X(GRAPH_TOO_LARGE, graph_too_large, GRAPH, FAILED,                                             \
	  "What a host needs to know of the graph does not fit into one message.",                     \
	  "Give the fragments to more workers or hosts.")                                              \
	X(LIBRARY_MISSING, library_missing, NODE, MISSING,                                             \
	  "A library that the graph names cannot be found or opened on the worker.",                   \
	  "Install it and what it needs there, or name its folder with --library-path.")               \
	X(LIBRARY_REFUSED, library_refused, NODE, USAGE,                                               \
	  "A library is not a plugin that this frag can use.",                                         \
	  "Build it again with this frag's headers.")                                                  \
	X(OPERATOR_REFUSED, operator_refused, OPERATOR, USAGE,                                         \
	  "An operator refused its parameters in setup or initialize.",                                \
	  "Give it what the sentence asks for.")                                                       \
	X(OPERATOR_LACKS_FILE, operator_lacks_file, OPERATOR, MISSING,                                 \
	  "An operator did not find what it needs in setup or initialize.",                            \
	  "Put the file where the worker finds it; relative paths start at its --app-root.")           \
	X(OPERATOR_FAILED, operator_failed, OPERATOR, FAILED,                                          \
	  "A callback of an operator returned an error.", "The operator's sentence says why.")         \
	X(OPERATOR_HUNG, operator_hung, OPERATOR, FAILED,                                              \
	  "A callback of an operator has run longer than its watchdog, or than a stop may take.",      \
	  "Find out what it waits for, or give it a longer watchdog.")                                 \
	X(MESSAGE_REFUSED, message_refused, MESSAGE, FAILED,                                           \
	  "An operator emitted a message that a flow does not take, and failed with it.",              \
	  "Send it in parts, keep to the port's type, or give the flow room or another policy.")       \
	X(QUEUE_OVERFLOW, queue_overflow, EDGE, FAILED,                                                \
	  "A message found the queue of a flow with policy fault full.",                               \
	  "Make the receiver faster, or give the flow a larger capacity or another policy.")           \
	X(EDGE_REFUSED, edge_refused, EDGE, FAILED,                                                    \
	  "A host could not make its edges to another host.",                                          \
	  "Install the same versions of frag and UCX on both nodes.")                                  \
	X(EDGE_UNREACHABLE, edge_unreachable, EDGE, FAILED,                                            \
	  "Two hosts did not reach each other over the data plane.",                                   \
	  "Check --worker-address on both, and that no firewall stands between.")                      \
	X(EDGE_LOST, edge_lost, EDGE, FAILED,                                                          \
	  "The data link between two hosts broke while both were alive.",                              \
	  "Check the network between the nodes.")                                                      \
	X(TRANSPORT_MISSING, transport_missing, NODE, MISSING,                                         \
	  "A worker has no transport that reaches another host.",                                      \
	  "Install UCX there, or give the fragments to one worker.")                                   \
	X(LOOPBACK_ADDRESS, loopback_address, NODE, USAGE,                                             \
	  "A worker offers a loopback address for data to a worker of another node.",                  \
	  "Start it with --worker-address and an address that the other node can reach.")              \
	X(HOST_FAILED, host_failed, HOST, FAILED, "A host could not do what it was asked to do.",      \
	  "The sentence says why.")                                                                    \
	X(HOST_CRASHED, host_crashed, HOST, FAILED, "A host ended by a signal.",                       \
	  "The sentence names the operator; look at its last lines and at the core file.")             \
	X(HOST_KILLED, host_killed, HOST, FAILED, "A host was killed, and not by its worker.",         \
	  "Look for the out-of-memory killer in the kernel's log.")                                    \
	X(HOST_EXITED, host_exited, HOST, FAILED, "A host ended before the application did.",          \
	  "Look for an operator or a library that calls exit.")                                        \
	X(HOST_SILENT, host_silent, HOST, FAILED,                                                      \
	  "The control thread of a host was not heard for the time of death.",                         \
	  "Look whether its machine is overloaded or was suspended.")                                  \
	X(HOST_LATE, host_late, HOST, FAILED,                                                          \
	  "A host did not answer a request of the driver in time.",                                    \
	  "Look for an operator that waits in setup, initialize or start.")                            \
	X(HOST_NOT_STARTED, host_not_started, HOST, MISSING, "A worker could not start a host.",       \
	  "Check the installation on that node.")                                                      \
	X(PROTOCOL, protocol, HOST, FAILED, "A host or a worker sent what it may not send.",           \
	  "Install the same version of frag everywhere; else report it.")                              \
	X(WORKER_BUSY, worker_busy, NODE, MISSING,                                                     \
	  "A worker takes no more hosts: it ends, or serves another application, or has its most.",    \
	  "Start another worker, or give it fewer fragments.")                                         \
	X(WORKER_LOST, worker_lost, NODE, FAILED,                                                      \
	  "A worker that ran a part of the application is gone or silent.",                            \
	  "Look at that node and at the network to it.")                                               \
	X(START_TIMEOUT, start_timeout, GRAPH, TIMEOUT,                                                \
	  "The application was not started within --start-timeout.",                                   \
	  "Start the workers that the sentence names, or allow more time.")                            \
	X(PORT_IN_USE, port_in_use, DRIVER, MISSING,                                                   \
	  "Another program listens on the driver's port.",                                             \
	  "Give --address another port, or end the other program.")                                    \
	X(ADDRESS_UNUSABLE, address_unusable, DRIVER, MISSING,                                         \
	  "The driver cannot listen on its address.",                                                  \
	  "Give --address an address of this machine.")                                                \
	X(STATE_UNWRITABLE, state_unwritable, DRIVER, MISSING,                                         \
	  "The driver cannot write its state folder, its disk fails, or the file there is damaged.",   \
	  "Make room there, look at the disk, or give --state-dir a folder that can be written.")      \
	X(SUMMARY_UNWRITABLE, summary_unwritable, DRIVER, MISSING,                                     \
	  "The summary cannot be written where --summary or stdout leads.",                            \
	  "Give --summary a file in a folder that can be written.")                                    \
	X(DRIVER_LOST, driver_lost, DRIVER, MISSING,                                                   \
	  "A worker or a client lost its driver, or there is none.",                                   \
	  "Look at the driver's log and at the network to it.")                                        \
	X(DRIVER_FULL, driver_full, DRIVER, MISSING,                                                   \
	  "The driver has as many workers, or as many clients, as it takes.",                          \
	  "Use fewer workers, or end programs that watch the driver.")                                 \
	X(VERSION_REFUSED, version_refused, DRIVER, REFUSED,                                           \
	  "The peer speaks another version of the protocol.",                                          \
	  "Install the same version of frag on both sides.")                                           \
	X(DATA_PORT_IN_USE, data_port_in_use, NODE, MISSING,                                           \
	  "Other programs listen on every port of a worker's data port range.",                        \
	  "Give --worker-address another port or a range, or end the other program.")                  \
	X(TYPE_UNKNOWN, type_unknown, MESSAGE, FAILED,                                                 \
	  "A message that came from another host holds a value of a type that is not known there.",    \
	  "Load the library that registers the type, in the same version as at the sender.")           \
	X(POOL_EXHAUSTED, pool_exhausted, OPERATOR, FAILED,                                            \
	  "An operator needed a block of a pool, and none was free.",                                  \
	  "Give the pool more blocks; the sentence names the flows whose messages hold them.")         \
	X(LIBRARY_DIFFERS, library_differs, NODE, MISSING,                                             \
	  "A library on the worker does not have the sha256 that the graph states.",                   \
	  "Install the one that the graph means, or state the sha256 of the one that is there.")       \
	X(KEY_REFUSED, key_refused, DRIVER, REFUSED,                                                   \
	  "A driver and its peer have no key or certificate that both accept.",                        \
	  "Give both the same key (fragctl key new), or certificates of one authority.")               \
	X(SESSION_REFUSED, session_refused, DRIVER, REFUSED,                                           \
	  "A session has ended, its secret is wrong, or only clients may join there.",                 \
	  "Nothing was changed by it. Look who connects from the address in the driver's log.")        \
	X(USER_REFUSED, user_refused, DRIVER, REFUSED,                                                 \
	  "A driver and a worker or client on one machine run as users that do not trust each other.", \
	  "Run both as the same user, or name the other one with --allow-user.")                       \
	X(DATA_TAMPERED, data_tampered, EDGE, FAILED,                                                  \
	  "A message of an encrypted flow was changed, repeated or removed on its way.",               \
	  "Find out what stands between the two hosts; no part of that message was delivered.")        \
	X(MEMORY_NOT_SHARED, memory_not_shared, EDGE, USAGE,                                           \
	  "A flow with `edge: shm`, or a variable, is of hosts that cannot share memory.",             \
	  "Leave `edge` out, use a flow, or run both on one machine and container, as one user.")      \
	X(NAME_TAKEN, name_taken, GRAPH, USAGE,                                                        \
	  "An application of that name runs already at the driver.",                                   \
	  "Stop it, restart it, or give the new one another name with --name.")                        \
	X(APPLICATION_UNKNOWN, application_unknown, GRAPH, MISSING,                                    \
	  "The driver has no such application, or has forgotten how it ended.",                        \
	  "fragctl list shows those that it has.")                                                     \
	X(NO_SERVICE, no_service, DRIVER, REFUSED,                                                     \
	  "The driver starts no applications for clients.",                                            \
	  "Start driverd without --app, or wait until the one that ends is back.")                     \
	X(DEADLINE_MISSED, deadline_missed, OPERATOR, FAILED,                                          \
	  "A tick or a path took longer than its deadline, whose on_miss is stop.",                    \
	  "Make the operator that the sentence names faster, or give it a larger budget.")             \
	X(GPU_MISSING, gpu_missing, NODE, MISSING,                                                     \
	  "An operator or a resource needs a GPU, and there is none, or none that can be used.",       \
	  "Run the fragment on a worker with a GPU and its driver, or use system memory.")             \
	X(HOST_OVER_LIMIT, host_over_limit, HOST, FAILED,                                              \
	  "A host needed more memory than its memoryLimit, and the kernel killed it.",                 \
	  "Raise memoryLimit in requirements, or find the operator that takes the memory.")            \
	X(LEASE_ENDED, lease_ended, HOST, FAILED,                                                      \
	  "A host with policy migrate was not heard by its driver for the time of its lease.",         \
	  "It starts again when the driver is back, or on another worker; a longer lease lasts.")      \
	X(WAIT_TIMEOUT, wait_timeout, DRIVER, TIMEOUT,                                                 \
	  "What fragctl waited for did not come within --timeout.",                                    \
	  "It goes on at the driver; fragctl status and explain show how it stands.")                  \
	X(ROLE_REFUSED, role_refused, DRIVER, REFUSED,                                                 \
	  "A client may observe only, and asked for more than that.",                                  \
	  "Use a key, or a user, with the role that the sentence names (docs/SECURITY.md).")

#define FRAGI_EXIT_ENUM(NAME, code, meaning) FRAGI_EXIT_##NAME = (code),
enum fragi_exit { FRAGI_EXIT_LIST(FRAGI_EXIT_ENUM) FRAGI_EXIT_SIGNAL = 128 };
#undef FRAGI_EXIT_ENUM

#define FRAGI_SCOPE_ENUM(NAME, name, meaning) FRAGI_SCOPE_##NAME,
enum fragi_scope { FRAGI_SCOPE_LIST(FRAGI_SCOPE_ENUM) FRAGI_SCOPES };
#undef FRAGI_SCOPE_ENUM

#define FRAGI_FAILURE_ENUM(NAME, name, SCOPE, EXIT, meaning, remedy) FRAGI_FAILURE_##NAME,
enum fragi_failure { FRAGI_FAILURE_NONE, FRAGI_FAILURE_LIST(FRAGI_FAILURE_ENUM) FRAGI_FAILURES };
#undef FRAGI_FAILURE_ENUM

/* "host_crashed"; "none" for NONE and for what is no failure. */
FRAGI_API const char *fragi_failure_name(enum fragi_failure failure);
FRAGI_API const char *fragi_failure_scope(enum fragi_failure failure); /* "host"; "" for NONE */
FRAGI_API int fragi_failure_exit(enum fragi_failure failure);          /* enum fragi_exit */

/*
 * As frag_err_set, and classifies the failure.
 * - op: "fragment.operator" that failed; NULL: none
 */
FRAGI_API int fragi_err_fail(struct frag_err *err, enum fragi_failure failure, const char *op,
			     int code, const char *format, ...) FRAG_PRINTF(5, 6);
/* Classifies an error that has no class yet. op: as above. Returns its code. */
FRAGI_API int fragi_err_classify(struct frag_err *err, enum fragi_failure failure, const char *op);
/*
 * The class of an error. One that nobody classified is a mistake in the graph (-EINVAL), a file
 * that is not there (-ENOENT), short memory (-ENOMEM) or files (-EMFILE, -ENFILE), or OTHER.
 */
FRAGI_API enum fragi_failure fragi_err_failure(const struct frag_err *err);
/* Classifies the errors of a list from the place `first` on that have no class yet. */
FRAGI_API void fragi_diag_classify(struct fragi_diag *diag, size_t first,
				   enum fragi_failure failure, const char *op);

#endif
