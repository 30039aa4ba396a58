// SPDX-License-Identifier: Apache-2.0
/*
 * Two hosts that share memory, one of which is killed at a step of their protocol. This program is
 * linked with the shm module compiled with its steps (modules/shm/step.h). For each trial the test
 * starts a survivor, whose child is the victim.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../left.h"
#include "../slow.h"
#include "gpu.h"
#include "pair.h"
#include <base/stamp.h>
#include <data/allocator.h>
#define SHM_STEPPED
#include <modules/shm/step.h>

extern const struct fragi_transport_ops fragi_transport_v1;

#define MESSAGES 24
#define FLOWS_MAX 3
#define AREAS 3    /* of memory of a GPU */
#define HELD_MAX 3 /* messages that the receiver looks at once more before it lets go */

/* What flows. */
struct scenario {
	const char *name;
	size_t bytes;
	uint32_t flows; /* each message goes over all of them */
	uint32_t capacity;
	enum frag_policy policy;
	bool encrypt, copied; /* copied: the bodies do not lie in shared memory */
	bool on_gpu;          /* they lie in the memory of a GPU */
};

static const struct scenario scenarios[] = {
	{"small", 300, 1, 2, FRAG_POLICY_BLOCK, false, false},
	{"large", 200000, 1, 2, FRAG_POLICY_BLOCK, false, false},
	{"copied", 60000, 1, 4, FRAG_POLICY_BLOCK, false, true},
	{"fan-out", 60000, 3, 4, FRAG_POLICY_BLOCK, false, false},
	{"encrypted", 60000, 1, 2, FRAG_POLICY_BLOCK, true, false},
	{"one", 60000, 1, 1, FRAG_POLICY_BLOCK, false, false},
	{"pop", 60000, 2, 2, FRAG_POLICY_POP, false, false},
	{"reject", 5000, 1, 2, FRAG_POLICY_REJECT, false, false},
	{"latest", 60000, 2, 1, FRAG_POLICY_LATEST, false, false},
	{"gpu", 60000, 2, 2, FRAG_POLICY_BLOCK, false, false, true},
};

static const char *const step_names[] = {
#define NAME(name) #name,
	SHM_STEPS(NAME)
#undef NAME
};

/* Of both processes, in memory that they share. */
static struct record {
	struct fragi_ledger ledger[2]; /* of the sender, of the receiver */
	_Atomic uint32_t reached[SHM_STEP_COUNT];
	_Atomic uint32_t torn; /* messages that were not what was sent */
} * record;

/* Of this process. */
static struct {
	enum shm_step step;     /* at which it dies */
	_Atomic int32_t left;   /* times that it is met before; negative: it does not die */
	_Atomic int32_t blocks; /* of the heap, in use */
} here = {.left = -1};

void shm_step(enum shm_step step)
{
	atomic_fetch_add(&record->reached[step], 1);
	if (step == SHM_STEP_BLOCK_TAKEN)
		atomic_fetch_add(&here.blocks, 1);
	if (step == SHM_STEP_BLOCK_GIVEN)
		atomic_fetch_sub(&here.blocks, 1);
	if (step == here.step && atomic_load(&here.left) >= 0 &&
	    atomic_fetch_sub(&here.left, 1) == 0)
		kill(getpid(), SIGKILL);
}

struct host {
	const struct scenario *scenario;
	bool sends;
	struct fragi_pump *pump;
	struct fragi_pump_waiter waiter;
	struct fragi_remote *remote;
	struct fragi_tx *txs[FLOWS_MAX];
	struct fragi_rx *rxs[FLOWS_MAX];
	_Atomic bool ready, lost;
	char sentence[512];
	bool is_connected; /* it has begun to */
	uint32_t next;     /* message to send */
	struct frag_message *held[HELD_MAX];
	uint8_t *area[AREAS]; /* of the sender: has room for each message */
	struct frag_resource *areas;
};

static void on_event(void *arg)
{
	struct host *at = arg;

	fragi_pump_poke(at->pump, &at->waiter);
}

static void on_ready(void *arg, uint32_t number)
{
	atomic_store(&((struct host *)arg)->ready, true);
}

static void on_lost(void *arg, uint32_t number, enum fragi_failure failure, const char *sentence)
{
	struct host *host = arg;

	strncpy(host->sentence, sentence, sizeof(host->sentence) - 1);
	atomic_store(&host->lost, true);
}

static void wire(struct host *host, struct fragi_remote_endpoint *endpoint)
{
	const struct scenario *scenario = host->scenario;
	struct fragi_edge_config edge = {
		.token = "0123456789abcde",
		.window_messages = scenario->capacity,
		.window_bytes = FRAGI_WINDOW_BYTES,
		.message_bytes_max = FRAGI_MESSAGE_BYTES_MAX,
		.policy = scenario->policy,
		.encrypt = scenario->encrypt,
	};

	for (uint32_t i = 0; i < scenario->flows; i++) {
		edge.flow = 3 + i;
		edge.token[15] = (uint8_t)i;
		if (host->sends) {
			cr_assert_eq(fragi_remote_tx_create(endpoint, &edge,
							    &record->ledger[0].flows[i],
							    &host->txs[i]),
				     0);
			host->txs[i]->room = (struct fragi_notify){on_event, host};
		} else {
			cr_assert_eq(fragi_remote_rx_create(endpoint, &edge,
							    &record->ledger[1].flows[i],
							    &host->rxs[i]),
				     0);
			host->rxs[i]->arrival = (struct fragi_notify){on_event, host};
		}
	}
}

static void set_crypto(struct fragi_remote *remote)
{
	const struct fragi_crypto_ops *crypto;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_crypto_open("", &crypto, &err), 0, "%s", err.text);
	fragi_remote_set_crypto(remote, crypto);
}

static struct frag_resource *memory_of(const struct host *host, struct frag_device device)
{
	const struct fragi_transport *transport = fragi_remote_transport(host->remote, "shm");

	return fragi_transport_v1.memory((struct fragi_transport *)(uintptr_t)transport, device);
}

static void take_areas(struct host *host)
{
	if (!host->scenario->on_gpu || !host->sends)
		return;
	host->areas = fragi_resource_ref(memory_of(host, GPU));
	for (int i = 0; i < AREAS; i++)
		cr_assert_eq(fragi_alloc_on(host->areas, GPU, MESSAGES * host->scenario->bytes,
					    (void **)&host->area[i]),
			     0);
}

/* other: socket to the other process. Returns whether that has told where it is. */
static bool host_open(struct host *host, const struct scenario *scenario, bool sends, int other)
{
	struct fragi_remote_config config = {
		.data_key = pair_key,
		.host = sends ? 1 : 2,
		.epoch = 1,
		.arg = host,
		.peer_ready = on_ready,
		.peer_lost = on_lost,
	};
	struct fragi_remote_endpoint *endpoint;
	struct fragi_remote_peer *peer;
	struct frag_err err = FRAG_ERR_INIT;
	char theirs[FRAGI_HOST_ADDRESS_MAX];
	const void *address;
	ssize_t n;
	size_t size;

	*host = (struct host){.scenario = scenario, .sends = sends};
	cr_assert_eq(fragi_pump_create(&host->pump), 0);
	config.pump = host->pump;
	cr_assert_eq(fragi_remote_create(&config, &host->remote), 0);
	if (scenario->encrypt)
		set_crypto(host->remote);
	cr_assert_eq(fragi_remote_open(host->remote, &fragi_transport_v1, &err), 0, "%s", err.text);
	cr_assert_eq(fragi_pump_attach(host->pump, &fragi_remote_pump_ops, host->remote), 0);
	take_areas(host);
	address = fragi_transport_v1.address(fragi_remote_transport(host->remote, "shm"), &size);
	n = send(other, address, size, MSG_NOSIGNAL);
	if (n == (ssize_t)size)
		n = recv(other, theirs, sizeof(theirs), 0);
	if (n <= 0)
		return false;
	fragi_pump_lock(host->pump);
	cr_assert_eq(fragi_remote_peer_create(host->remote, sends ? 2 : 1, 1, &peer), 0);
	cr_assert_eq(fragi_remote_connect(peer, "shm", theirs, (size_t)n, &endpoint, &err), 0, "%s",
		     err.text);
	wire(host, endpoint);
	fragi_pump_unlock(host->pump);
	return true;
}

static bool wait_for(struct host *host, bool (*what)(void *host))
{
	int64_t until = fragi_now_ns() + patience_ns();

	while (!what(host)) {
		if (fragi_now_ns() > until)
			return false;
		fragi_pump_wait(host->pump, &host->waiter, fragi_now_ns() + 100000000, what, host);
	}
	return true;
}

static bool is_lost(void *arg)
{
	return atomic_load(&((struct host *)arg)->lost);
}

static bool is_ready_or_lost(void *arg)
{
	return is_lost(arg) || atomic_load(&((struct host *)arg)->ready);
}

static bool may_send_or_lost(void *arg)
{
	struct host *host = arg;

	if (is_lost(host))
		return true;
	for (uint32_t i = 0; i < host->scenario->flows; i++)
		if (host->txs[i]->ops->room(host->txs[i]) == 0)
			return false;
	return true;
}

static bool is_received_or_lost(void *arg)
{
	struct host *host = arg;

	if (is_lost(host))
		return true;
	for (uint32_t i = 0; i < host->scenario->flows; i++)
		if (!atomic_load(&host->txs[i]->receiver_done))
			return false;
	return true;
}

/* Words that a torn or foreign body has not: each message's differ from each other's. */
static void fill(uint64_t *words, size_t bytes, uint32_t number)
{
	for (size_t i = 0; i < bytes / 8; i++)
		words[i] = (uint64_t)(number + 1) * 0x9e3779b97f4a7c15u + i;
}

static struct frag_tensor *tensor_number(struct host *host, uint32_t number)
{
	const struct frag_device cpu = {FRAG_DEVICE_CPU, 0};
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	int64_t bytes = (int64_t)host->scenario->bytes;
	struct frag_dltensor dl = {.device = GPU, .ndim = 1, .dtype = u8, .shape = &bytes};
	struct frag_tensor *tensor;
	uint64_t *words;

	if (host->scenario->on_gpu) {
		words = malloc(host->scenario->bytes);
		dl.data = host->area[number % AREAS] + number * host->scenario->bytes;
		fill(words, host->scenario->bytes, number);
		cr_assert_eq(fake.poke((uintptr_t)dl.data, words, host->scenario->bytes), 0);
		free(words);
		cr_assert_eq(frag_tensor_wrap(&dl, NULL, NULL, &tensor), 0);
		return tensor;
	}
	cr_assert_eq(frag_tensor_create(host->scenario->copied ? NULL : memory_of(host, cpu), u8, 1,
					&bytes, &tensor),
		     0);
	fill((uint64_t *)frag_tensor_writable(tensor), (size_t)bytes, number);
	return tensor;
}

static struct frag_message *message_number(struct host *host, uint32_t number)
{
	struct frag_message *message = frag_message_create();
	struct frag_tensor *tensor = tensor_number(host, number);
	int64_t value = number;

	cr_assert_eq(frag_message_add_tensor(message, "", tensor), 0);
	cr_assert_eq(frag_message_set_value(message, &frag_type_i64, &value, sizeof(value), NULL),
		     0);
	fragi_message_share(message);
	return message;
}

static void check_message(const struct host *host, const struct frag_message *message)
{
	const struct frag_tensor *tensor = frag_message_tensor(message, NULL);
	int64_t number = value_of(message);
	const uint64_t *words;
	uint64_t from_gpu[60000 / 8];

	if (tensor == NULL || frag_tensor_size_bytes(tensor) != host->scenario->bytes) {
		atomic_fetch_add(&record->torn, 1);
		return;
	}
	words = frag_tensor_data(tensor);
	if (host->scenario->on_gpu) {
		memset(from_gpu, 0, sizeof(from_gpu));
		(void)fake.peek((uintptr_t)words, from_gpu, host->scenario->bytes);
		words = from_gpu;
	}
	for (size_t i = 0; i < host->scenario->bytes / 8; i++)
		if (words[i] != (uint64_t)(number + 1) * 0x9e3779b97f4a7c15u + i) {
			atomic_fetch_add(&record->torn, 1);
			return;
		}
}

static void let_go(struct host *host, uint32_t i)
{
	if (host->held[i] == NULL)
		return;
	check_message(host, host->held[i]);
	frag_message_unref(host->held[i]);
	host->held[i] = NULL;
}

/* Holds some messages for a while, and looks at them when they come and when they go. */
static void receive_all(struct host *host)
{
	struct frag_message *message;

	for (uint32_t i = 0; i < host->scenario->flows; i++)
		while ((message = fragi_rx_take(host->rxs[i], fragi_stamp())) != NULL) {
			check_message(host, message);
			let_go(host, host->next % HELD_MAX);
			host->held[host->next++ % HELD_MAX] = message;
		}
}

static bool may_receive_or_lost(void *arg)
{
	struct host *host = arg;
	bool finished = true;

	for (uint32_t i = 0; i < host->scenario->flows; i++) {
		if (fragi_rx_available(host->rxs[i]) > 0)
			return true;
		finished = finished && fragi_rx_is_finished(host->rxs[i]);
	}
	return finished || is_lost(host);
}

static bool is_finished(const struct host *host)
{
	for (uint32_t i = 0; i < host->scenario->flows; i++)
		if (!fragi_rx_is_finished(host->rxs[i]))
			return false;
	return true;
}

/* Returns false when nothing happened for too long. */
static bool stream_out(struct host *host)
{
	struct frag_message *message;

	/* Before, memory of a GPU would be staged, and a process that was forked has no streams. */
	if (host->scenario->on_gpu && !wait_for(host, is_ready_or_lost))
		return false;
	while (host->next < MESSAGES) {
		if (!wait_for(host, may_send_or_lost))
			return false;
		if (is_lost(host))
			return true;
		message = message_number(host, host->next++);
		for (uint32_t i = 0; i < host->scenario->flows; i++)
			(void)host->txs[i]->ops->send(host->txs[i], frag_message_ref(message),
						      fragi_stamp());
		frag_message_unref(message);
	}
	for (uint32_t i = 0; i < host->scenario->flows; i++)
		host->txs[i]->ops->close(host->txs[i]);
	return wait_for(host, is_received_or_lost);
}

static bool stream_in(struct host *host)
{
	while (!is_finished(host) && !is_lost(host)) {
		if (!wait_for(host, may_receive_or_lost))
			return false;
		receive_all(host);
	}
	for (uint32_t i = 0; i < host->scenario->flows && is_finished(host); i++)
		fragi_rx_close(host->rxs[i]);
	return true;
}

static bool has_no_block(void *arg)
{
	return atomic_load(&here.blocks) == 0;
}

/* What it held is still whole when its sender is gone; then it lets go. */
static void host_close(struct host *host)
{
	for (uint32_t i = 0; i < HELD_MAX; i++)
		let_go(host, i);
	if (host->sends && is_lost(host)) {
		fragi_pump_lock(host->pump);
		fragi_remote_drain(host->remote);
		fragi_pump_unlock(host->pump);
		cr_expect(wait_for(host, has_no_block), "%d blocks of the pool are not back",
			  atomic_load(&here.blocks));
	}
	fragi_pump_detach(host->pump);
	fragi_remote_destroy(host->remote);
	fragi_pump_destroy(host->pump);
	for (int i = 0; i < AREAS; i++)
		fragi_free_on(host->areas, GPU, host->area[i]);
	fragi_resource_unref(host->areas);
}

static bool live(struct host *host, const struct scenario *scenario, bool sends, int other)
{
	bool ended = true;

	host->is_connected = host_open(host, scenario, sends, other);
	if (host->is_connected)
		ended = sends ? stream_out(host) : stream_in(host);
	host_close(host);
	return ended;
}

static void record_make(void)
{
	record = mmap(NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq((void *)record, MAP_FAILED);
}

static void ledgers_make(void)
{
	for (int i = 0; i < 2; i++) {
		int fd = memfd_create("ledger", MFD_CLOEXEC);

		cr_assert_eq(fragi_ledger_create(&record->ledger[i], fd, 1, FLOWS_MAX), 0);
		close(fd);
	}
}

/* What was sent was delivered, or dropped for a reason, or was under way when a side died. */
static void check_sums(const struct scenario *scenario, const char *what)
{
	for (uint32_t i = 0; i < scenario->flows; i++) {
		const struct fragi_flow_row *out = &record->ledger[0].flows[i];
		const struct fragi_flow_row *in = &record->ledger[1].flows[i];
		uint64_t sent = atomic_load(&out->sent), known = atomic_load(&in->delivered);

		for (int k = 0; k < FRAGI_DROP_REASONS; k++)
			known += atomic_load(&out->tx_dropped[k]) + atomic_load(&in->rx_dropped[k]);
		cr_assert_leq(known, sent, "%s: flow %u", what, i);
		/* in the window, and in the queue behind it */
		cr_assert_leq(sent - known, 2 * scenario->capacity + 1, "%s: flow %u", what, i);
	}
}

static int count_heaps(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	while (fgets(line, sizeof(line), maps) != NULL)
		count += strstr(line, "memfd:frag-") != NULL ||
			 strstr(line, "memfd:fake_cuda-") != NULL;
	fclose(maps);
	return count;
}

/* What a test tries: times is how often the victim goes past the step before it dies there. */
struct trial {
	const struct scenario *scenario;
	bool sender_dies;
	enum shm_step step;
	int times;
};

/* Without what a sanitizer does at an exit: it sleeps for a second where threads are left. */
static _Noreturn void leave(int status)
{
	syscall(SYS_exit_group, status);
	abort();
}

static pid_t victim_start(const struct trial *trial, int sockets[2])
{
	struct host host;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	close(sockets[0]);
	alarm(60);
	gpu_open();
	here.step = trial->step;
	atomic_store(&here.left, trial->times);
	leave(live(&host, trial->scenario, trial->sender_dies, sockets[1]) ? 0 : 1);
}

/* Returns whether the victim died at its step. */
static bool survive(const struct trial *trial)
{
	int sockets[2], status;
	unsigned int files;
	struct host host;
	char what[100];
	pid_t pid;

	snprintf(what, sizeof(what), "%s, %s dies at %s (%d)", trial->scenario->name,
		 trial->sender_dies ? "sender" : "receiver", step_names[trial->step], trial->times);
	ledgers_make();
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	alarm((unsigned int)(patience_ns() /
			     500000000)); /* a check that fails here waits for ever */
	pid = victim_start(trial, sockets);
	close(sockets[1]);
	gpu_open();
	files = left_entries("/proc/self/fd");
	cr_assert(live(&host, trial->scenario, !trial->sender_dies, sockets[0]), "%s: hangs", what);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
			  (WIFEXITED(status) && WEXITSTATUS(status) == 0),
		  "%s: the victim ended with %x", what, (unsigned int)status);
	cr_assert_eq(atomic_load(&record->torn), 0, "%s: a message is torn", what);
	check_sums(trial->scenario, what);
	for (int i = 0; i < 2; i++)
		fragi_ledger_close(&record->ledger[i]);
	cr_assert_eq(atomic_load(&here.blocks), 0, "%s: blocks of the pool are not back", what);
	cr_assert_eq(left_entries("/proc/self/fd"), files, "%s: descriptors", what);
	cr_assert_eq(count_heaps(), 0, "%s: memory stays mapped", what);
	cr_assert_eq(fake.used(), 0, "%s: memory of the GPU is left", what);
	return WIFSIGNALED(status);
}

#define DIED 80 /* exit status of a survivor whose victim died at its step */

/*
 * Returns whether the victim died at its step. The survivor is a process of this trial too: what
 * uses a GPU has threads from then on, and only a process without threads can fork the next victim.
 */
static bool dies_at(const struct scenario *scenario, bool sender_dies, enum shm_step step,
		    int times)
{
	const struct trial trial = {scenario, sender_dies, step, times};
	pid_t pid = fork();
	int status;

	if (pid == 0)
		leave(survive(&trial) ? DIED : 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == DIED),
		  "%s, %s dies at %s (%d): the survivor ended with %x", scenario->name,
		  sender_dies ? "sender" : "receiver", step_names[step], times,
		  (unsigned int)status);
	return WEXITSTATUS(status) == DIED;
}

/* Nothing of it has a name in a folder, so nothing can stay there. */
static void check_folders(void)
{
	DIR *d = opendir("/dev/shm");
	const struct dirent *entry;

	while (d != NULL && (entry = readdir(d)) != NULL)
		cr_expect(strncmp(entry->d_name, "frag", 4) != 0, "%s", entry->d_name);
	if (d != NULL)
		closedir(d);
}

Test(shm_steps, each_side_dies_at_each_step, .init = set_environment, .timeout = 300)
{
	const char *slow = getenv("FRAG_TEST_SLOW"); /* run.py: under valgrind and emulators 20 */
	size_t stride = slow != NULL && atoi(slow) >= 20 ? 5 : 1;

	record_make();
	for (int step = 0; step < SHM_STEP_COUNT; step++) {
		int deaths = 0;

		for (size_t i = (size_t)step % stride; i < FRAG_COUNT_OF(scenarios); i += stride)
			for (int side = 0; side < 2; side++)
				deaths += dies_at(&scenarios[i], side == 0, (enum shm_step)step,
						  (int)(i + (size_t)step) % 3);
		cr_expect(deaths > 0 || stride > 1, "nobody has ever met %s", step_names[step]);
	}
	check_folders();
}

/* FRAG_STEP_RUNS: how many; FRAG_STEP_SEED: which. */
Test(shm_steps, sides_die_at_any_time, .init = set_environment, .timeout = 3000)
{
	const char *runs = getenv("FRAG_STEP_RUNS"), *from = getenv("FRAG_STEP_SEED");
	unsigned int seed = from != NULL ? (unsigned int)atoi(from) : 1;

	record_make();
	for (int left = runs != NULL ? atoi(runs) : 40; left > 0; left--) {
		const struct scenario *scenario =
			&scenarios[(size_t)rand_r(&seed) % FRAG_COUNT_OF(scenarios)];
		enum shm_step step = (enum shm_step)((unsigned int)rand_r(&seed) % SHM_STEP_COUNT);
		bool sender_dies = rand_r(&seed) % 2 == 0;

		(void)dies_at(scenario, sender_dies, step, rand_r(&seed) % 40);
	}
}

/* The memory of a GPU goes with the last process that maps it. */
Test(shm_steps, two_hundred_kills_leave_no_memory_of_the_gpu, .init = set_environment,
     .timeout = 300)
{
	const struct scenario *scenario = &scenarios[FRAG_COUNT_OF(scenarios) - 1];
	unsigned int seed = 7;
	int deaths = 0;

	record_make();
	cr_assert(scenario->on_gpu);
	for (int tries = 0; tries < 4000 && deaths < 200; tries++) {
		enum shm_step step = (enum shm_step)((unsigned int)rand_r(&seed) % SHM_STEP_COUNT);
		bool sender_dies = rand_r(&seed) % 2 == 0;

		deaths += dies_at(scenario, sender_dies, step, rand_r(&seed) % 6);
	}
	cr_expect_eq(deaths, 200);
}
