/* Preloaded into the program: the n-th call that writes to a file fails, as on a full disk.
 *
 * `fault_set(n, lasts)` begins: the n-th call from then on fails, and with `lasts` all that follow.
 * `fault_count()` returns how many calls there were. n = 0 only counts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int enabled, lasting;
static long at, count;

void fault_set(long n, int lasts) { at = n, lasting = lasts, count = 0, enabled = 1; }
long fault_count(void) { return count; }

static int fails(void) {
  if (!enabled) return 0;
  long now = __sync_add_and_fetch(&count, 1);
  if (!at || now < at || (now > at && !lasting)) return 0;
  errno = ENOSPC;
  return 1;
}

static int is_file(int fd) {
  struct stat about;
  return enabled && fd > 2 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) {
  return is_file(fd) && fails() ? -1 : REAL(write)(fd, data, size);
}
ssize_t writev(int fd, const struct iovec *parts, int parts_count) {
  return is_file(fd) && fails() ? -1 : REAL(writev)(fd, parts, parts_count);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  return is_file(fd) && fails() ? -1 : REAL(pwrite)(fd, data, size, offset);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  return is_file(fd) && fails() ? -1 : REAL(pwrite64)(fd, data, size, offset);
}
int ftruncate(int fd, off_t size) { return fails() ? -1 : REAL(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return fails() ? -1 : REAL(ftruncate64)(fd, size); }
int fsync(int fd) { return fails() ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails() ? -1 : REAL(fdatasync)(fd); }
int rename(const char *from, const char *to) { return fails() ? -1 : REAL(rename)(from, to); }
int mkdir(const char *path, mode_t mode) { return fails() ? -1 : REAL(mkdir)(path, mode); }

#define OPEN(name, ...)                             \
  {                                                         \
    mode_t mode = 0;                                        \
    if (flags & (O_CREAT | O_TMPFILE)) {                    \
      va_list rest;                                         \
      va_start(rest, flags);                                \
      mode = va_arg(rest, mode_t);                          \
      va_end(rest);                                         \
    }                                                       \
    if (flags & O_CREAT && fails()) return -1;              \
    return REAL(name)(__VA_ARGS__, flags, mode);            \
  }

int open(const char *path, int flags, ...) OPEN(open, path)
int open64(const char *path, int flags, ...) OPEN(open64, path)
int openat(int at_fd, const char *path, int flags, ...) OPEN(openat, at_fd, path)
int openat64(int at_fd, const char *path, int flags, ...) OPEN(openat64, at_fd, path)
