/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_SESSION_MESSAGE_H
#define FW_SESSION_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/amounts.h>
#include <wire/failure.h>

/* How the sessions of workers and clients with the driver begin, live and end. */

#define FW_SECRET_BYTES 16  /* of a session */
#define FW_BINDING_BYTES 32 /* of a connection (wire/identity.h) */

enum fw_role {
	FW_ROLE_WORKER = 1,
	FW_ROLE_CLIENT = 2,
	FW_ROLE_REPORTER = 3, /* of a worker that is gone (workerd/reporter.h) */
	/* of keys and users only; they say HELLO as clients */
	FW_ROLE_OBSERVER = 4, /* asks how things stand, and commands nothing */
	FW_ROLE_PAYLOAD = 5,  /* sees messages of flows, also of encrypted ones */
};
#define FW_ROLE_BIT(role) (1u << (role))
/* of a user that is trusted, and of whom nothing else is said */
#define FW_USER_ROLES (FW_ROLE_BIT(FW_ROLE_WORKER) | FW_ROLE_BIT(FW_ROLE_CLIENT))

struct fw_hello {
	uint32_t major, minor;
	enum fw_role role;
	const char *name;                /* wished; the driver may add "#2" */
	uint64_t session;                /* of the last session with this driver; 0: none */
	uint8_t secret[FW_SECRET_BYTES]; /* of that session */
	/* --fragments: "fragment" or "application/fragment"; none: whatever fits */
	const char **fragments;
	uint32_t fragment_count;
	const char *worker_address; /* data-plane IP of the node; empty: not given */
	const char *node;           /* workers with the same one share a loopback interface */
	const char *clock;          /* hosts of workers with the same one share a clock */
	const char *memory;         /* ... can share memory; empty: with nobody */
	const char *no_memory;      /* why memory is empty; empty: it is not, or it is not known */
	const char *waits_for;      /* why it can run nothing yet; empty: it can */
	const char *version, *local_address; /* of frag; its end of this connection */
	int64_t has[FRAGI_AMOUNTS];          /* a driver has to bound them: fragi_amount_clamp */
	const char *mig;                     /* instances: "1g.10gb=4,3g.40gb=1"; empty: none */
	const char **labels;                 /* "key=value" */
	uint32_t label_count;
	const char *no_limits; /* why it cannot enforce limits of hosts; empty: it can */
	const char *limited;   /* "2 of 16 cores (its affinity), ..."; empty: it offers all */
	uint32_t reports;    /* hosts that it reports after WELCOME; 0: not even REPORTED follows */
	uint64_t last_epoch; /* the highest one that a driver has sent it */
	const char *last_name; /* that a driver gave it last: it keeps that one; empty: none */
	/*
	 * of a reporter whose worker exchanges its key: what the connection of that session is
	 * bound by; zeros: it only reports
	 */
	uint8_t binding[FW_BINDING_BYTES];
};

/*
 * The fields of BEAT: type, name, and how layout.h takes it.
 * - waits_for: of a worker, as in HELLO
 * - leases, in times of the worker's clock, which its hosts share; 0: none
 *   - sent_ns: of a worker to its driver
 *   - heard_ns: of a driver: the sent_ns that it has heard last
 *   - leaves: of a driver: leases last FW_LEASE_AWAY_NS longer, for the next one
 *   - lease_until_ns: of a worker to its host
 * - looks: of a worker to its host: at so many of its hosts somebody looks; 0: not at this one
 * - has_gpus: of a worker: it has made its survey of GPUs since HELLO; has, mig as in HELLO
 */
#define FW_BEAT_LIST(X)                                                                            \
	X(const char *, waits_for, FIELD)                                                          \
	X(int64_t, sent_ns, TIME)                                                                  \
	X(int64_t, heard_ns, TIME)                                                                 \
	X(bool, leaves, FIELD)                                                                     \
	X(int64_t, lease_until_ns, TIME)                                                           \
	X(uint32_t, looks, FIELD)                                                                  \
	X(bool, has_gpus, FIELD)                                                                   \
	X(const char *, mig, FIELD)
#define FW_BEAT_MEMBER(type, name, row) type name;
struct fw_beat {
	FW_BEAT_LIST(FW_BEAT_MEMBER)
	int64_t has[FRAGI_AMOUNTS]; /* those that are surveyed */
};
#undef FW_BEAT_MEMBER
#define FW_MEMORY_NONE "none"
#define FW_LEASE_AWAY_NS INT64_C(30000000000)

struct fw_welcome {
	uint64_t session; /* random */
	const char *name; /* as the driver calls this worker */
	int64_t beat_ns, dead_ns;
	const char *version;
	/* random; a HELLO that names this session brings it, and it is never logged */
	uint8_t secret[FW_SECRET_BYTES];
	bool takes_lines; /* it wants HOST_LINES */
	bool keeps_hosts; /* hosts run on while it is away, and are reported when it is back */
};

struct fw_refused {
	struct fw_failure failure;
};

/* the application `run` is over; this driver may end with it */
struct fw_app_ended {
	int exit_code;
};

/* the worker ends in order */
struct fw_leave {
	const char *reason; /* part of a sentence: "it was told to end" */
};

#endif
