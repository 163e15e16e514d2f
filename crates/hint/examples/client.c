/* A program that takes part without crate paceline-hint: one thread says that it waits for another.
 *
 *   cc -std=c11 -pthread -o client client.c && PACELINE_HINTS=/tmp/hints.sock ./client
 *
 * It prints its slot while it waits, and again afterwards. End of input (Ctrl-D) ends the wait. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <threads.h>
#include <unistd.h>

#define MAGIC 0x504c4e48494e5453u
typedef _Atomic uint64_t word;

/* Connects, and maps the page. A socket that is kept open keeps the page. Null: nothing listens. */
static word *get_page(void) {
    const char *path = getenv("PACELINE_HINTS");
    if (!path || !*path) path = "/run/paceline/hints.sock";
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path) return NULL;
    strcpy(at.sun_path, path);
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_usec = 250000};
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(sock, (struct sockaddr *)&at, sizeof at) != 0) goto none;

    uint64_t answer[4];
    union { struct cmsghdr header; char bytes[CMSG_SPACE(sizeof(int))]; } room;
    struct iovec part = {answer, sizeof answer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room};
    ssize_t got = recvmsg(sock, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC);
    if (got <= 0) goto none;
    ssize_t left = (ssize_t)sizeof answer - got; /* It may come in pieces, the file beside the first. */
    if (left > 0 && recv(sock, (char *)answer + got, (size_t)left, MSG_WAITALL) != left) goto none;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int file = -1;
    if (header && header->cmsg_type == SCM_RIGHTS) memcpy(&file, CMSG_DATA(header), sizeof file);
    /* Version 1 in the lower half of the second word; 0 in the upper half: a page came. */
    if (file < 0 || answer[0] != MAGIC || answer[1] != 1 || answer[3] != (uint64_t)getpid()) goto none;
    int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK)) goto none;
    if (answer[2] < 4096 || lseek(file, 0, SEEK_END) != (off_t)answer[2]) goto none;
    word *page = mmap(NULL, answer[2], PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (page == MAP_FAILED) goto none;
    uint64_t slots = answer[2] / 64 - 1;
    if (page[0] == MAGIC && page[1] == (slots << 32 | 1) && page[2] == answer[3]) return page;
none:
    close(sock);
    return NULL;
}

/* Writes a slot: its second word, and one thread that is waited for. */
static void write_slot(word *slot, uint64_t *sequence, uint64_t head, uint64_t waits) {
    atomic_store_explicit(&slot[0], *sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&slot[1], head, memory_order_relaxed);
    atomic_store_explicit(&slot[3], waits, memory_order_relaxed);
    atomic_store_explicit(&slot[0], *sequence += 2, memory_order_release);
    for (int at = 0; at < 8; at++) printf("%" PRIx64 "%c", (uint64_t)slot[at], at < 7 ? ' ' : '\n');
    fflush(stdout);
}

static atomic_int worker_tid;

static int work(void *unused) {
    worker_tid = (int)syscall(SYS_gettid);
    while (getchar() != EOF) {} /* The job. */
    return unused != NULL;
}

int main(void) {
    word *page = get_page();
    if (!page) return fprintf(stderr, "client: no broker of hints answers\n"), 1;
    thrd_t worker;
    if (thrd_create(&worker, work, NULL) != thrd_success) return 1;
    while (!worker_tid) thrd_yield();

    /* The first slot is this thread's, and no other was ever used. */
    word *slot = page + 8;
    uint64_t sequence = slot[0], tid = (uint64_t)syscall(SYS_gettid);
    page[3] = 1;
    write_slot(slot, &sequence, tid | 1ull << 40, (uint64_t)worker_tid); /* It waits for one thread. */
    thrd_join(worker, NULL);
    write_slot(slot, &sequence, tid, (uint64_t)worker_tid); /* It waits for none. */
    return 0;
}
