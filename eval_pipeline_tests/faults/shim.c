/* Loaded before libc (LD_PRELOAD): has operations on files below a folder fail, and sets the clock.

   SHIM_HOME    the folder
   SHIM_STATE   file shared by all processes: operations so far, bytes written so far, seconds that the clock is off
   SHIM_N       this operation fails, counted from 1; 0 or nothing: none
   SHIM_ERRNO   with this error (5: input/output error)
   SHIM_QUOTA   so many bytes may be written; then there is no room
   SHIM_LOG     the operation that failed is noted there
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct state { long operations, written, clock; };
static struct state *state;
static const char *home;
static long failing, quota;
static int error = EIO;

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, #name)

static long number(const char *name) { const char *text = getenv(name); return text ? atol(text) : 0; }

__attribute__((constructor)) static void begin(void) {
    int (*opening)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    const char *place = getenv("SHIM_STATE");
    if (!place) return;
    int file = opening(place, O_RDWR);
    if (file < 0) return;
    void *mapped = mmap(0, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return;
    failing = number("SHIM_N"), quota = number("SHIM_QUOTA");
    if (number("SHIM_ERRNO")) error = number("SHIM_ERRNO");
    home = getenv("SHIM_HOME");
    state = mapped;
}

static void note(const char *what, const char *path) {
    int (*opening)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    ssize_t (*writing)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    const char *log = getenv("SHIM_LOG");
    char line[PATH_MAX + 64];
    int file = log ? opening(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (file < 0) return;
    writing(file, line, snprintf(line, sizeof line, "%s %s\n", what, path));
    close(file);
}

/* SQLite's shared memory is no file that could be lost: a fault there is one of the machine's memory. */
static int is_ours(const char *path) {
    return state && home && path && !strncmp(path, home, strlen(home)) && !strstr(path, "-shm");
}

static int fails(const char *what, const char *path, size_t bytes) {
    if (!is_ours(path)) return 0;
    if (__sync_add_and_fetch(&state->operations, 1) == failing) {
        note(what, path);
        errno = error;
        return 1;
    }
    if (bytes && __sync_add_and_fetch(&state->written, bytes) > quota && quota) {
        errno = ENOSPC;
        return 1;
    }
    return 0;
}

static int fails_at(const char *what, int file, size_t bytes) {
    char link[64], path[PATH_MAX];
    if (!state) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return fails(what, path, bytes);
}

#define ON_FILE(type, name, what, bytes, parameters, ...) \
    type name parameters { REAL(type, name, __typeof__(file), ...); return fails_at(what, file, bytes) ? -1 : real(__VA_ARGS__); }
ON_FILE(ssize_t, read, "read", 0, (int file, void *data, size_t size), file, data, size)
ON_FILE(ssize_t, pread, "read", 0, (int file, void *data, size_t size, off_t at), file, data, size, at)
ON_FILE(ssize_t, pread64, "read", 0, (int file, void *data, size_t size, off_t at), file, data, size, at)
ON_FILE(ssize_t, write, "write", size, (int file, const void *data, size_t size), file, data, size)
ON_FILE(ssize_t, pwrite, "write", size, (int file, const void *data, size_t size, off_t at), file, data, size, at)
ON_FILE(ssize_t, pwrite64, "write", size, (int file, const void *data, size_t size, off_t at), file, data, size, at)
ON_FILE(int, fsync, "fsync", 0, (int file), file)
ON_FILE(int, fdatasync, "fsync", 0, (int file), file)
ON_FILE(int, ftruncate, "truncate", 0, (int file, off_t size), file, size)
ON_FILE(int, ftruncate64, "truncate", 0, (int file, off_t size), file, size)

#define ON_PATH(name, what, path, parameters, ...) \
    int name parameters { REAL(int, name, __typeof__(path), ...); return fails(what, path, 0) ? -1 : real(__VA_ARGS__); }
ON_PATH(rename, "rename", to, (const char *from, const char *to), from, to)
ON_PATH(unlink, "unlink", path, (const char *path), path)
ON_PATH(mkdir, "mkdir", path, (const char *path, mode_t mode), path, mode)

#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, name, const char *, int, ...); \
        va_list more; va_start(more, flags); mode_t mode = va_arg(more, int); va_end(more); \
        return fails("open", path, 0) ? -1 : real(path, flags, mode); }
OPENING(open)
OPENING(open64)
#define OPENING_AT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(int, name, int, const char *, int, ...); \
        va_list more; va_start(more, flags); mode_t mode = va_arg(more, int); va_end(more); \
        return fails("open", path, 0) ? -1 : real(folder, path, flags, mode); }
OPENING_AT(openat)
OPENING_AT(openat64)

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(int, clock_gettime, clockid_t, struct timespec *);
    int told = real(clock, now);
    if (!told && state && clock == CLOCK_REALTIME) now->tv_sec += state->clock;
    return told;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    REAL(int, gettimeofday, struct timeval *, void *);
    int told = real(now, zone);
    if (!told && state) now->tv_sec += state->clock;
    return told;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}
