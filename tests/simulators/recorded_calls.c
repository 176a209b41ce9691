/* Records the calls that change files below a folder, in the order in which they took effect, for `recorded_disk.py`.
 *
 * Loaded with LD_PRELOAD. RECORDED_ROOT: the folder. RECORDED_LOG: where the records go, one after another:
 *   u8 kind, u32 process, i32 descriptor, i64 number, i64 second number, u32 length, then that many bytes.
 * A record is written before its call returns: what a program did because a call had returned comes behind it. Calls of
 * one process take turns, but for fsync, during which others may write: its record names the last record before it.
 * A call on the folder's files that is not understood ends the process, so that nothing is left out unseen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPENED = 1, WRITTEN, CUT, RENAMED, UNLINKED, MADE, REMOVED, SYNCING, SYNCED, CLOSED, DOUBLED };
enum { MOST = 65536 };

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static int log_file = -1;
static unsigned char known[MOST];
static int64_t syncs;

#define REAL(name) ((typeof(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static void fail(const char *what) {
    dprintf(2, "recorded_calls: %s is not understood\n", what);
    _exit(99);
}

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("RECORDED_ROOT"), *path = getenv("RECORDED_LOG");
    if (!folder || !path) return;
    snprintf(root, sizeof root, "%s", folder);
    root_length = strlen(root);
    log_file = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_file < 0) fail("the log");
}

static void record(int kind, int descriptor, int64_t number, int64_t second, const void *data, size_t length) {
    struct __attribute__((packed)) { uint8_t kind; uint32_t process; int32_t descriptor; int64_t number, second;
                                     uint32_t length; } head;
    head.kind = kind; head.process = getpid(); head.descriptor = descriptor;
    head.number = number; head.second = second; head.length = length;
    struct iovec both[2] = {{&head, sizeof head}, {(void *)data, length}};
    if (REAL(writev)(log_file, both, 2) != (ssize_t)(sizeof head + length)) fail("a short record");
}

/* The absolute path, without links looked into; 0 when it is not below the folder. */
static int inside(int folder, const char *path, char *found) {
    if (log_file < 0 || !path) return 0;
    if (path[0] == '/') snprintf(found, PATH_MAX, "%s", path);
    else {
        char base[PATH_MAX], link[64];
        ssize_t length;
        if (folder == AT_FDCWD) { if (!getcwd(base, sizeof base)) return 0; }
        else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            if ((length = readlink(link, base, sizeof base - 1)) < 0) return 0;
            base[length] = 0;
        }
        if ((size_t)snprintf(found, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    }
    return strncmp(found, root, root_length) == 0 && (found[root_length] == '/' || !found[root_length]);
}

static int is_known(int descriptor) { return descriptor >= 0 && descriptor < MOST && known[descriptor]; }

static int opened(int folder, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    int recorded = inside(folder, path, full);
    if (!recorded) return REAL(openat)(folder, path, flags, mode);
    if ((flags & O_TMPFILE) == O_TMPFILE) fail("O_TMPFILE");
    pthread_mutex_lock(&turn);
    int descriptor = REAL(openat)(folder, path, flags, mode), saved = errno;
    if (descriptor >= 0) {
        if (descriptor >= MOST) fail("so many descriptors");
        known[descriptor] = 1;
        record(OPENED, descriptor, flags & (O_CREAT | O_TRUNC | O_EXCL), 0, full, strlen(full));
    }
    pthread_mutex_unlock(&turn);
    errno = saved;
    return descriptor;
}

#define MODE(flags, last) mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, last); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) { MODE(flags, flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags, flags) return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags, flags) return opened(folder, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

int close(int descriptor) {
    if (!is_known(descriptor)) return REAL(close)(descriptor);
    pthread_mutex_lock(&turn);
    known[descriptor] = 0;
    record(CLOSED, descriptor, 0, 0, NULL, 0);
    int result = REAL(close)(descriptor), saved = errno;
    pthread_mutex_unlock(&turn);
    errno = saved;
    return result;
}

static int doubled(int descriptor, int other) {
    if (other >= 0 && other < MOST) known[other] = is_known(descriptor);
    if (is_known(other)) record(DOUBLED, descriptor, other, 0, NULL, 0);
    return other;
}

int dup(int descriptor) { return doubled(descriptor, REAL(dup)(descriptor)); }
int dup2(int descriptor, int other) { return doubled(descriptor, REAL(dup2)(descriptor, other)); }
int dup3(int descriptor, int other, int flags) { return doubled(descriptor, REAL(dup3)(descriptor, other, flags)); }

static ssize_t wrote(int descriptor, const void *data, ssize_t count, off_t at) {
    int saved = errno;
    if (count > 0) {
        if (at < 0) at = lseek(descriptor, 0, SEEK_CUR) - count;
        record(WRITTEN, descriptor, at, 0, data, count);
    }
    errno = saved;
    return count;
}

#define IN_TURN(type, name, call, after) \
    if (!is_known(descriptor)) return REAL(name) call; \
    pthread_mutex_lock(&turn); \
    type result = REAL(name) call; \
    after; \
    pthread_mutex_unlock(&turn); \
    return result;

ssize_t write(int descriptor, const void *data, size_t count) {
    IN_TURN(ssize_t, write, (descriptor, data, count), wrote(descriptor, data, result, -1))
}
ssize_t pwrite(int descriptor, const void *data, size_t count, off_t at) {
    IN_TURN(ssize_t, pwrite, (descriptor, data, count, at), wrote(descriptor, data, result, at))
}
ssize_t pwrite64(int descriptor, const void *data, size_t count, off64_t at) {
    IN_TURN(ssize_t, pwrite64, (descriptor, data, count, at), wrote(descriptor, data, result, at))
}

/* One record for each piece: a power cut may tear a write between any two sectors of it, also between pieces. */
static ssize_t wrote_pieces(int descriptor, const struct iovec *pieces, int count, ssize_t written) {
    int saved = errno;
    ssize_t left = written;
    off_t at = written > 0 ? lseek(descriptor, 0, SEEK_CUR) - written : 0;
    for (int piece = 0; piece < count && left > 0; piece++) {
        ssize_t length = left < (ssize_t)pieces[piece].iov_len ? left : (ssize_t)pieces[piece].iov_len;
        wrote(descriptor, pieces[piece].iov_base, length, at);
        at += length;
        left -= length;
    }
    errno = saved;
    return written;
}

ssize_t writev(int descriptor, const struct iovec *pieces, int count) {
    IN_TURN(ssize_t, writev, (descriptor, pieces, count), wrote_pieces(descriptor, pieces, count, result))
}

static int cut(int descriptor, int result, off_t size) {
    int saved = errno;
    if (result == 0) record(CUT, descriptor, size, 0, NULL, 0);
    errno = saved;
    return result;
}

int ftruncate(int descriptor, off_t size) {
    IN_TURN(int, ftruncate, (descriptor, size), cut(descriptor, result, size))
}
int ftruncate64(int descriptor, off64_t size) {
    IN_TURN(int, ftruncate64, (descriptor, size), cut(descriptor, result, size))
}

static int cut_by_name(const char *path, off_t size) {
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return -1;
    int result = ftruncate(descriptor, size), saved = errno;
    close(descriptor);
    errno = saved;
    return result;
}
int truncate(const char *path, off_t size) { return cut_by_name(path, size); }
int truncate64(const char *path, off64_t size) { return cut_by_name(path, size); }

static int synced(int descriptor, int (*sync)(int)) {
    if (!is_known(descriptor)) return sync(descriptor);
    pthread_mutex_lock(&turn);
    int64_t number = ++syncs;
    record(SYNCING, descriptor, number, 0, NULL, 0);
    pthread_mutex_unlock(&turn);
    int result = sync(descriptor), saved = errno;
    pthread_mutex_lock(&turn);
    if (result == 0) record(SYNCED, descriptor, number, 0, NULL, 0);
    pthread_mutex_unlock(&turn);
    errno = saved;
    return result;
}
int fsync(int descriptor) { return synced(descriptor, REAL(fsync)); }
int fdatasync(int descriptor) { return synced(descriptor, REAL(fdatasync)); }

static int named(int kind, int folder, const char *path, int flag, int (*call)(int, const char *, int)) {
    char full[PATH_MAX];
    if (!inside(folder, path, full)) return call(folder, path, flag);
    pthread_mutex_lock(&turn);
    int result = call(folder, path, flag), saved = errno;
    if (result == 0) record(kind, -1, 0, 0, full, strlen(full));
    pthread_mutex_unlock(&turn);
    errno = saved;
    return result;
}
static int real_unlink(int folder, const char *path, int flag) { return REAL(unlinkat)(folder, path, flag); }
static int real_mkdir(int folder, const char *path, int mode) { return REAL(mkdirat)(folder, path, mode); }

int unlink(const char *path) { return named(UNLINKED, AT_FDCWD, path, 0, real_unlink); }
int unlinkat(int folder, const char *path, int flag) {
    return named(flag & AT_REMOVEDIR ? REMOVED : UNLINKED, folder, path, flag, real_unlink);
}
int remove(const char *path) { fail("remove()"); return unlink(path); }
int rmdir(const char *path) { return named(REMOVED, AT_FDCWD, path, AT_REMOVEDIR, real_unlink); }
int mkdir(const char *path, mode_t mode) { return named(MADE, AT_FDCWD, path, mode, real_mkdir); }
int mkdirat(int folder, const char *path, mode_t mode) { return named(MADE, folder, path, mode, real_mkdir); }

int renameat(int folder, const char *path, int other, const char *to) {
    char both[2 * PATH_MAX], target[PATH_MAX];
    int from_inside = inside(folder, path, both), to_inside = inside(other, to, target);
    if (!from_inside && !to_inside) return REAL(renameat)(folder, path, other, to);
    if (!from_inside || !to_inside) fail("a rename into or out of the folder");
    size_t length = strlen(both) + 1;
    strcpy(both + length, target);
    pthread_mutex_lock(&turn);
    int result = REAL(renameat)(folder, path, other, to), saved = errno;
    if (result == 0) record(RENAMED, -1, 0, 0, both, length + strlen(target));
    pthread_mutex_unlock(&turn);
    errno = saved;
    return result;
}
int rename(const char *path, const char *to) { return renameat(AT_FDCWD, path, AT_FDCWD, to); }

/* What nothing recorded does today. */
#define REFUSE_FILE(type, name, arguments, call) \
    type name arguments { if (is_known(descriptor)) fail(#name); return REAL(name) call; }
REFUSE_FILE(ssize_t, pwritev, (int descriptor, const struct iovec *parts, int count, off_t at), (descriptor, parts, count, at))
REFUSE_FILE(int, fallocate, (int descriptor, int mode, off_t at, off_t length), (descriptor, mode, at, length))
REFUSE_FILE(int, posix_fallocate, (int descriptor, off_t at, off_t length), (descriptor, at, length))
REFUSE_FILE(int, posix_fallocate64, (int descriptor, off64_t at, off64_t length), (descriptor, at, length))
REFUSE_FILE(ssize_t, sendfile, (int descriptor, int from, off_t *at, size_t count), (descriptor, from, at, count))
REFUSE_FILE(ssize_t, sendfile64, (int descriptor, int from, off64_t *at, size_t count), (descriptor, from, at, count))
int link(const char *path, const char *to) {
    char full[PATH_MAX];
    if (inside(AT_FDCWD, to, full)) fail("link()");
    return REAL(link)(path, to);
}
int symlink(const char *path, const char *to) {
    char full[PATH_MAX];
    if (inside(AT_FDCWD, to, full)) fail("symlink()");
    return REAL(symlink)(path, to);
}
