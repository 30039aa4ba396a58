/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_SERVICE_H
#define FRAG_SERVICE_H

#include <frag/compose.h>

FRAG_BEGIN_DECLS

/*
 * Services: resources that operators, conditions and other resources find by type, or by type and
 * id, without a parameter that names them. A graph registers one where it declares it
 * (`services: {hits: {type: call_counter, id: left}}`), a composer with frag_register_service.
 *
 * 	static int count_start(void *state, struct frag_op *op)
 * 	{
 * 		struct frag_resource *service = frag_op_service(op, "call_counter", NULL);
 *
 * 		((struct count *)state)->calls = frag_resource_state(service, "call_counter");
 * 		...
 *
 * Who may be found:
 * - Services of a fragment belong to that fragment. Type and id are unique in it, and no id is an
 *   id of its own.
 * - A service that an instance of a subgraph registers is first of all that of the instance: its
 *   operators, conditions and resources find it before others of the same type and id. So each
 *   instance may register its own. Elsewhere in the fragment it is found if there is only one.
 * - Services of the application, `services:` at the top of a graph, are found in all fragments,
 *   after the fragment's own. Each process that runs fragments has its own instance of them.
 *
 * A service of the application may coordinate these instances. Four callbacks of its type
 * (resource.h) do so:
 * - driver_start: once, in the process that runs the first fragment of the graph, after initialize
 *   of all its resources, conditions and operators. There the service begins to serve the others,
 *   for example it listens on a port. A negative errno refuses the application.
 * - worker_connect: once in every process, also in that one, when driver_start has succeeded and
 *   before any operator starts. `driver` is the text that driver_start has left with
 *   frag_service_announce, NULL when it left none. A negative errno refuses the application.
 * - worker_disconnect: once if worker_connect succeeded, when the last operator of the process has
 *   stopped. A negative errno is logged.
 * - driver_stop: once if driver_start succeeded. When the application ends in order, this is after
 *   worker_disconnect of all processes; when a process was lost, those of others may still come. A
 *   negative errno is logged.
 * A process that is killed, as after a failure elsewhere, calls none of them any more.
 *
 * driverd itself never loads code of users, so driver_start runs beside the operators of the first
 * fragment, where its libraries are, where a crash is reported as that of an operator, and where
 * the limits on what operators may do hold. If that process is started again (on_failure: restart),
 * driver_start and its own worker_connect are called again there; other processes keep what they
 * have connected to. A service whose type has one of the callbacks can only be one of the
 * application. Applications of one fragment call them too.
 *
 * Source: Holoscan SDK user guide, Fragment::register_service, DistributedAppService.
 */

/*
 * Registers a resource as a service, in a composer or in compose of a subgraph.
 * - resource: of this fragment, also a built-in one
 * - id: a name; NULL or "": found by its type alone
 * Returns 0; -EINVAL: resource is NULL or of another fragment, id is no name, or its type has
 * callbacks of an application; -EEXIST: there is such a service already; -EBUSY: not inside a
 * composer; -ENOMEM. A failure is worded in the fragment.
 * Thread: the callback's. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_register_service(struct frag_fragment *fragment, struct frag_resource *resource,
				   const char *id);

/*
 * Finds a service.
 * - type: name of its type; a name of Holoscan's for a built-in one is accepted
 * - id: NULL or "": that without an id
 * Returns the resource, which lives as long as the fragment (frag_resource_state gives its state);
 * NULL: there is none, or several instances of subgraphs have one and none of them is the caller's.
 * What setup finds may not be initialized yet. Services of the application are there in all
 * callbacks; those of a fragment from the moment that they were registered.
 * Thread: any. Blocks: no. RT-safe: it compares texts; call it in setup, initialize or start.
 */
FRAG_API struct frag_resource *frag_op_service(const struct frag_op *op, const char *type,
					       const char *id);
FRAG_API struct frag_resource *frag_condition_service(const struct frag_condition *condition,
						      const char *type, const char *id);
FRAG_API struct frag_resource *frag_resource_service(const struct frag_resource *resource,
						     const char *type, const char *id);
FRAG_API struct frag_resource *frag_fragment_service(const struct frag_fragment *fragment,
						     const char *type, const char *id);

/* The most bytes of what a service announces, without the NUL. */
#define FRAG_ANNOUNCEMENT_MAX 255
/*
 * Leaves the text that worker_connect gets in all processes: an address, or whatever else says how
 * to reach this service.
 * - resource: the service whose driver_start is being called
 * - text: copied; FRAG_ANNOUNCEMENT_MAX bytes at most
 * Returns 0; -EINVAL: text is NULL; -EMSGSIZE: it is longer; -EBUSY: not inside driver_start;
 * -ENOMEM. Thread: that of driver_start. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_service_announce(struct frag_resource *resource, const char *text);

FRAG_END_DECLS

#endif
