/*
 * protectfs: a directory, mounted a second time, in which protected names can neither be changed nor made.
 *
 *   protectfs DIRECTORY DEVICE:INODE MOUNTPOINT UID GID [PATTERN]... -- [PATH]...
 *
 * Serves DIRECTORY at MOUNTPOINT as the user UID, and returns when it is mounted. DEVICE:INODE says which directory it must
 * be. A PATTERN is a path in the directory, in whose last part there may be a `*`; a PATH is taken as it stands. Both are
 * protected with everything below. Each directory above a protected path is pinned: it can be made, and removed when it is
 * empty, but neither moved away nor put in place by a rename, since it could bring a protected name with it. Names are
 * compared without case, because some file systems do.
 *
 * Every file is reached by a descriptor of its directory, and no link is ever followed, so that nothing leads out of
 * DIRECTORY. The kernel asks again for each name, and so sees at once which files others put into DIRECTORY.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 312

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fuse_lowlevel.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* What is protected: the names in a directory, each either protected itself or with rules for what is in it. */

struct rule {
	const char *name;
	bool is_pattern;
	bool is_protected;
	struct rule *inside;
	struct rule *next;
};

/* The rules of a directory that is protected itself. */
static const struct rule everything = {.is_protected = true};

static void add_rule(struct rule **rules, char *path, bool is_pattern)
{
	char *slash = strchr(path, '/');
	struct rule *rule;

	if (slash)
		*slash = '\0';
	for (rule = *rules; rule; rule = rule->next)
		if (slash && !rule->is_protected && !strcasecmp(rule->name, path))
			break;
	if (!rule) {
		rule = calloc(1, sizeof(*rule));
		if (!rule)
			err(1, "no memory");
		rule->name = path;
		rule->is_pattern = is_pattern && !slash;
		rule->is_protected = !slash;
		rule->next = *rules;
		*rules = rule;
	}
	if (slash)
		add_rule(&rule->inside, slash + 1, is_pattern);
}

static bool matches(const struct rule *rule, const char *name)
{
	if (rule->is_pattern)
		return !fnmatch(rule->name, name, FNM_CASEFOLD | FNM_NOESCAPE);
	return !strcasecmp(rule->name, name);
}

/* The rule for a name in a directory with these rules, or NULL. A name that is protected is not looked at further. */
static const struct rule *rule_for(const struct rule *rules, const char *name)
{
	const struct rule *found = NULL;

	if (rules == &everything)
		return rules;
	for (; rules; rules = rules->next) {
		if (!matches(rules, name))
			continue;
		if (rules->is_protected)
			return rules;
		found = rules;
	}
	return found;
}

/* What is no directory, where one with protected names would be, is protected itself. */
static const struct rule *rules_inside(const struct rule *rules, const char *name, bool is_directory)
{
	const struct rule *rule = rule_for(rules, name);

	if (!rule)
		return NULL;
	return rule->is_protected || !is_directory ? &everything : rule->inside;
}

/*
 * Nodes: the files that the kernel knows. Each has a descriptor that only names it (O_PATH). Descriptors are limited, so
 * those of files that nobody holds are closed, the longest unused first; the kernel then asks for the name again. Those of
 * directories stay open, since one may be a process's current directory, for which there is no name to ask for.
 */

struct node {
	int fd; /* -1: closed */
	dev_t device;
	ino_t inode;
	bool is_directory;
	const struct rule *_Atomic rules;
	struct timespec opened_at; /* when the file was last changed, as it was last opened */
	uint64_t lookups;     /* how often the kernel has been told of it, and has not forgotten it */
	unsigned int holders; /* requests that use it now, and open files */
	struct node *next;    /* in its bucket */
	struct node *older;   /* in the list of those that nobody holds */
	struct node *newer;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node root;
static struct node *buckets[1 << 16];
static struct node unheld = {.older = &unheld, .newer = &unheld};
static size_t unheld_count;
static size_t unheld_max;

static struct node **bucket_of(dev_t device, ino_t inode)
{
	return &buckets[(inode ^ device) % (sizeof(buckets) / sizeof(*buckets))];
}

static void leave_unheld(struct node *node)
{
	if (!node->older)
		return;
	node->older->newer = node->newer;
	node->newer->older = node->older;
	node->older = node->newer = NULL;
	unheld_count--;
}

/* Closes what is too much of the descriptors that nobody holds. */
static void close_unheld(size_t max)
{
	while (unheld_count > max) {
		struct node *oldest = unheld.newer;

		leave_unheld(oldest);
		close(oldest->fd);
		oldest->fd = -1;
	}
}

static void enter_unheld(struct node *node)
{
	if (node->is_directory || node->fd == -1)
		return;
	leave_unheld(node);
	node->older = unheld.older;
	node->newer = &unheld;
	unheld.older->newer = node;
	unheld.older = node;
	unheld_count++;
	close_unheld(unheld_max);
}

static void free_unused(struct node *node)
{
	struct node **place = bucket_of(node->device, node->inode);

	if (node->lookups || node->holders)
		return;
	while (*place != node)
		place = &(*place)->next;
	*place = node->next;
	leave_unheld(node);
	if (node->fd != -1)
		close(node->fd);
	free(node);
}

/*
 * The node, which keeps its descriptor until `let_go`. Where that is closed, returns NULL after an error which makes the kernel
 * look the name up again; a program gets to see it only where it gave no name, but a descriptor that it had not opened to
 * read or write.
 */
static struct node *hold(fuse_req_t request, fuse_ino_t number)
{
	struct node *node = number == FUSE_ROOT_ID ? &root : (struct node *)number;

	pthread_mutex_lock(&lock);
	if (node->fd == -1) {
		node = NULL;
	} else {
		node->holders++;
		leave_unheld(node);
	}
	pthread_mutex_unlock(&lock);
	if (!node)
		fuse_reply_err(request, ESTALE);
	return node;
}

static void let_go(struct node *node)
{
	pthread_mutex_lock(&lock);
	if (!--node->holders) {
		enter_unheld(node);
		free_unused(node);
	}
	pthread_mutex_unlock(&lock);
}

static void forget(fuse_ino_t number, uint64_t lookups)
{
	struct node *node = (struct node *)number;

	if (number == FUSE_ROOT_ID)
		return;
	pthread_mutex_lock(&lock);
	node->lookups -= lookups;
	free_unused(node);
	pthread_mutex_unlock(&lock);
}

static struct node *find_node(const struct stat *attributes)
{
	struct node *node = *bucket_of(attributes->st_dev, attributes->st_ino);

	while (node && (node->inode != attributes->st_ino || node->device != attributes->st_dev))
		node = node->next;
	return node;
}

static struct node *add_node(const struct stat *attributes)
{
	struct node **place = bucket_of(attributes->st_dev, attributes->st_ino);
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->fd = -1;
	node->device = attributes->st_dev;
	node->inode = attributes->st_ino;
	node->next = *place;
	*place = node;
	return node;
}

/* openat(2), which makes room where too many descriptors are open. */
static int open_at(int directory, const char *path, int flags, mode_t mode)
{
	int fd = openat(directory, path, flags | O_CLOEXEC, mode);

	if (fd == -1 && errno == EMFILE) {
		pthread_mutex_lock(&lock);
		close_unheld(0);
		pthread_mutex_unlock(&lock);
		fd = openat(directory, path, flags | O_CLOEXEC, mode);
	}
	return fd;
}

/* Fills in what the kernel is told of a name. Returns 0 or an error. */
static int look_up(struct node *parent, const char *name, struct fuse_entry_param *entry)
{
	struct node *node;
	int fd = open_at(parent->fd, name, O_PATH | O_NOFOLLOW, 0);

	memset(entry, 0, sizeof(*entry));
	if (fd == -1)
		return errno;
	if (fstatat(fd, "", &entry->attr, AT_EMPTY_PATH)) {
		int problem = errno;

		close(fd);
		return problem;
	}

	pthread_mutex_lock(&lock);
	node = find_node(&entry->attr);
	if (!node)
		node = add_node(&entry->attr);
	if (node) {
		const bool is_directory = S_ISDIR(entry->attr.st_mode);

		if (node->fd == -1) {
			node->fd = fd;
			node->rules = NULL;
			node->opened_at = (struct timespec){0};
			fd = -1;
		}
		node->is_directory = is_directory;
		/* What was protected stays so, also by another name. */
		if (node->rules != &everything)
			node->rules = rules_inside(parent->rules, name, is_directory);
		node->lookups++;
		if (!node->holders)
			enter_unheld(node);
	}
	pthread_mutex_unlock(&lock);
	if (fd != -1)
		close(fd);
	if (!node)
		return ENOMEM;

	entry->ino = (fuse_ino_t)node;
	/* A name is asked for again each time, which brings the attributes, too. */
	entry->entry_timeout = 0;
	entry->attr_timeout = 1;
	return 0;
}

/* A path to what a descriptor names, for calls that take no such descriptor. */
struct path {
	char text[32];
};

static struct path path_of(const struct node *node)
{
	struct path path;

	snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", node->fd);
	return path;
}

/* What may be done. Each returns 0, or the error that a read-only mount would give, or a mount in the way of a rename. */

static int may_change(const struct node *node)
{
	return node->rules == &everything ? EROFS : 0;
}

static int may_make_or_remove(const struct node *parent, const char *name, bool is_directory)
{
	const struct rule *rule = rule_for(parent->rules, name);

	return rule && (rule->is_protected || !is_directory) ? EROFS : 0;
}

static int may_rename(const struct node *parent, const char *name)
{
	const struct rule *rule = rule_for(parent->rules, name);

	if (!rule)
		return 0;
	return rule->is_protected ? EROFS : EBUSY;
}

/* Requests */

static int result(int returned)
{
	return returned == -1 ? errno : 0;
}

/* A request that was interrupted tells the kernel nothing. */
static void reply_entry(fuse_req_t request, int problem, const struct fuse_entry_param *entry)
{
	if (problem)
		fuse_reply_err(request, problem);
	else if (fuse_reply_entry(request, entry))
		forget(entry->ino, 1);
}

static void on_lookup(fuse_req_t request, fuse_ino_t parent_number, const char *name)
{
	struct fuse_entry_param entry;
	struct node *parent = hold(request, parent_number);

	if (!parent)
		return;
	reply_entry(request, look_up(parent, name, &entry), &entry);
	let_go(parent);
}

static void on_forget(fuse_req_t request, fuse_ino_t number, uint64_t lookups)
{
	forget(number, lookups);
	fuse_reply_none(request);
}

static void on_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		forget(forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(request);
}

static void reply_attributes(fuse_req_t request, const struct node *node)
{
	struct stat attributes;

	if (fstatat(node->fd, "", &attributes, AT_EMPTY_PATH))
		fuse_reply_err(request, errno);
	else
		fuse_reply_attr(request, &attributes, 1);
}

static void on_getattr(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
	struct node *node = hold(request, number);

	(void)file;
	if (!node)
		return;
	reply_attributes(request, node);
	let_go(node);
}

static struct timespec time_to_set(int set, int set_now, struct timespec given)
{
	if (set & set_now)
		given.tv_nsec = UTIME_NOW;
	else if (!set)
		given.tv_nsec = UTIME_OMIT;
	return given;
}

static int set_attributes(const struct node *node, const struct stat *to, int set, struct fuse_file_info *file)
{
	const struct path path = path_of(node);

	if (set & FUSE_SET_ATTR_MODE && chmod(path.text, to->st_mode))
		return errno;
	if (set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
		uid_t user = set & FUSE_SET_ATTR_UID ? to->st_uid : (uid_t)-1;
		gid_t group = set & FUSE_SET_ATTR_GID ? to->st_gid : (gid_t)-1;

		if (fchownat(node->fd, "", user, group, AT_EMPTY_PATH))
			return errno;
	}
	if (set & FUSE_SET_ATTR_SIZE && (file ? ftruncate((int)file->fh, to->st_size) : truncate(path.text, to->st_size)))
		return errno;
	if (set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) {
		const int now = FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
		struct timespec times[2];

		times[0] = time_to_set(set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW), now, to->st_atim);
		times[1] = time_to_set(set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW), now, to->st_mtim);
		if (utimensat(AT_FDCWD, path.text, times, 0))
			return errno;
	}
	return 0;
}

static void on_setattr(fuse_req_t request, fuse_ino_t number, struct stat *to, int set, struct fuse_file_info *file)
{
	struct node *node = hold(request, number);
	int problem;

	if (!node)
		return;
	problem = may_change(node);
	if (!problem)
		problem = set_attributes(node, to, set, file);
	if (problem)
		fuse_reply_err(request, problem);
	else
		reply_attributes(request, node);
	let_go(node);
}

static void on_readlink(fuse_req_t request, fuse_ino_t number)
{
	char target[PATH_MAX + 1];
	struct node *node = hold(request, number);
	ssize_t length;

	if (!node)
		return;
	length = readlinkat(node->fd, "", target, sizeof(target) - 1);
	if (length == -1) {
		fuse_reply_err(request, errno);
	} else {
		target[length] = '\0';
		fuse_reply_readlink(request, target);
	}
	let_go(node);
}

/* What makes a name: which call, and with what. */
struct making {
	mode_t mode;
	dev_t device;
	const char *link_to;
	const struct node *other_name_of;
};

static int make(const struct node *parent, const char *name, const struct making *making)
{
	if (making->other_name_of) {
		const struct path path = path_of(making->other_name_of);

		return result(linkat(AT_FDCWD, path.text, parent->fd, name, AT_SYMLINK_FOLLOW));
	}
	if (making->link_to)
		return result(symlinkat(making->link_to, parent->fd, name));
	if (S_ISDIR(making->mode))
		return result(mkdirat(parent->fd, name, making->mode));
	return result(mknodat(parent->fd, name, making->mode, making->device));
}

static void make_entry(fuse_req_t request, fuse_ino_t parent_number, const char *name, const struct making *making)
{
	struct fuse_entry_param entry;
	struct node *parent = hold(request, parent_number);
	int problem;

	if (!parent)
		return;
	problem = may_make_or_remove(parent, name, S_ISDIR(making->mode));
	if (!problem)
		problem = make(parent, name, making);
	if (!problem)
		problem = look_up(parent, name, &entry);
	reply_entry(request, problem, &entry);
	let_go(parent);
}

static void on_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	make_entry(request, parent, name, &(struct making){.mode = mode, .device = device});
}

static void on_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
	make_entry(request, parent, name, &(struct making){.mode = mode | S_IFDIR});
}

static void on_symlink(fuse_req_t request, const char *target, fuse_ino_t parent, const char *name)
{
	make_entry(request, parent, name, &(struct making){.link_to = target});
}

static void on_link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char *name)
{
	struct node *node = hold(request, number);
	int problem;

	if (!node)
		return;
	problem = may_change(node);
	if (problem)
		fuse_reply_err(request, problem);
	else
		make_entry(request, parent, name, &(struct making){.other_name_of = node});
	let_go(node);
}

static void remove_entry(fuse_req_t request, fuse_ino_t parent_number, const char *name, int flags)
{
	struct node *parent = hold(request, parent_number);
	int problem;

	if (!parent)
		return;
	problem = may_make_or_remove(parent, name, flags & AT_REMOVEDIR);
	if (!problem)
		problem = result(unlinkat(parent->fd, name, flags));
	fuse_reply_err(request, problem);
	let_go(parent);
}

static void on_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	remove_entry(request, parent, name, 0);
}

static void on_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	remove_entry(request, parent, name, AT_REMOVEDIR);
}

static void on_rename(fuse_req_t request, fuse_ino_t from_number, const char *from_name, fuse_ino_t to_number,
		      const char *to_name, unsigned int flags)
{
	struct node *from = hold(request, from_number);
	struct node *to;
	int problem;

	if (!from)
		return;
	to = hold(request, to_number);
	if (to) {
		problem = may_rename(from, from_name);
		if (!problem)
			problem = may_rename(to, to_name);
		if (!problem)
			problem = result(renameat2(from->fd, from_name, to->fd, to_name, flags));
		fuse_reply_err(request, problem);
		let_go(to);
	}
	let_go(from);
}

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

/*
 * The kernel has done what most of these say, and each write says whether it appends; a direct read would need memory of
 * its own kind. A pipe that another program put there meanwhile must not be waited for.
 */
static int flags_for(const struct fuse_file_info *file)
{
	return (file->flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW | O_DIRECT | O_APPEND)) | O_NONBLOCK;
}

/* The kernel keeps the pages of a file that has not changed since it was last opened. */
static void keep_open(struct node *node, struct fuse_file_info *file, int fd)
{
	struct stat attributes;

	file->fh = (uint64_t)fd;
	if (fstat(fd, &attributes))
		return;
	pthread_mutex_lock(&lock);
	file->keep_cache = node->opened_at.tv_sec == attributes.st_ctim.tv_sec &&
			   node->opened_at.tv_nsec == attributes.st_ctim.tv_nsec;
	node->opened_at = attributes.st_ctim;
	pthread_mutex_unlock(&lock);
}

/* While the file is open, its node is held: fstat(2) must work also when the file has no name any more. */
static void on_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
	struct node *node = hold(request, number);
	int fd = -1;
	int problem;

	if (!node)
		return;
	problem = writes(file->flags) ? may_change(node) : 0;
	if (!problem) {
		const struct path path = path_of(node);

		fd = open_at(AT_FDCWD, path.text, flags_for(file), 0);
		problem = result(fd);
	}
	if (problem) {
		fuse_reply_err(request, problem);
		let_go(node);
		return;
	}
	keep_open(node, file, fd);
	if (fuse_reply_open(request, file)) {
		close(fd);
		let_go(node);
	}
}

static bool is_regular(int fd)
{
	struct stat attributes;

	return !fstat(fd, &attributes) && S_ISREG(attributes.st_mode);
}

static void on_create(fuse_req_t request, fuse_ino_t parent_number, const char *name, mode_t mode, struct fuse_file_info *file)
{
	struct fuse_entry_param entry;
	struct node *parent = hold(request, parent_number);
	int fd = -1;
	int problem;

	if (!parent)
		return;
	problem = may_make_or_remove(parent, name, false);
	if (!problem) {
		fd = open_at(parent->fd, name, flags_for(file) | (file->flags & O_EXCL) | O_CREAT | O_NOFOLLOW, mode);
		problem = result(fd);
	}
	if (!problem && !is_regular(fd))
		problem = EEXIST;
	if (!problem)
		problem = look_up(parent, name, &entry);
	let_go(parent);
	if (problem) {
		if (fd != -1)
			close(fd);
		fuse_reply_err(request, problem);
		return;
	}

	pthread_mutex_lock(&lock);
	((struct node *)entry.ino)->holders++;
	leave_unheld((struct node *)entry.ino);
	pthread_mutex_unlock(&lock);
	keep_open((struct node *)entry.ino, file, fd);
	if (fuse_reply_create(request, &entry, file)) {
		close(fd);
		let_go((struct node *)entry.ino);
		forget(entry.ino, 1);
	}
}

static void on_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file)
{
	struct fuse_bufvec buffer = FUSE_BUFVEC_INIT(size);

	(void)number;
	buffer.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	buffer.buf[0].fd = (int)file->fh;
	buffer.buf[0].pos = offset;
	fuse_reply_data(request, &buffer, FUSE_BUF_SPLICE_MOVE);
}

/* Appends where the file ends now, which the kernel may not know yet. */
static ssize_t append(int fd, struct fuse_bufvec *data)
{
	struct fuse_bufvec buffer = FUSE_BUFVEC_INIT(fuse_buf_size(data));
	struct iovec all = {.iov_len = fuse_buf_size(data)};
	ssize_t done = -ENOMEM;

	all.iov_base = buffer.buf[0].mem = malloc(all.iov_len);
	if (all.iov_base)
		done = fuse_buf_copy(&buffer, data, 0);
	if (done >= 0) {
		all.iov_len = (size_t)done;
		done = pwritev2(fd, &all, 1, 0, RWF_APPEND);
		if (done == -1)
			done = -errno;
	}
	free(all.iov_base);
	return done;
}

static ssize_t write_at(int fd, struct fuse_bufvec *data, off_t offset)
{
	struct fuse_bufvec buffer = FUSE_BUFVEC_INIT(fuse_buf_size(data));

	buffer.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	buffer.buf[0].fd = fd;
	buffer.buf[0].pos = offset;
	return fuse_buf_copy(&buffer, data, 0);
}

static void on_write(fuse_req_t request, fuse_ino_t number, struct fuse_bufvec *data, off_t offset, struct fuse_file_info *file)
{
	const bool appends = file->flags & O_APPEND && !file->writepage;
	ssize_t written;

	if (may_change((struct node *)number)) {
		fuse_reply_err(request, EROFS);
		return;
	}
	written = appends ? append((int)file->fh, data) : write_at((int)file->fh, data, offset);
	if (written < 0)
		fuse_reply_err(request, (int)-written);
	else
		fuse_reply_write(request, (size_t)written);
}

/* close(2) of a copy brings the errors that a file system tells at the end. */
static void on_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
	int copy = dup((int)file->fh);

	(void)number;
	fuse_reply_err(request, copy == -1 ? 0 : result(close(copy)));
}

static void on_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
	close((int)file->fh);
	let_go((struct node *)number);
	fuse_reply_err(request, 0);
}

static void on_fsync(fuse_req_t request, fuse_ino_t number, int only_data, struct fuse_file_info *file)
{
	(void)number;
	fuse_reply_err(request, result(only_data ? fdatasync((int)file->fh) : fsync((int)file->fh)));
}

static void on_fallocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset, off_t length, struct fuse_file_info *file)
{
	int problem = may_change((struct node *)number);

	if (!problem)
		problem = result(fallocate((int)file->fh, mode, offset, length));
	fuse_reply_err(request, problem);
}

static void on_lseek(fuse_req_t request, fuse_ino_t number, off_t offset, int whence, struct fuse_file_info *file)
{
	off_t found = lseek((int)file->fh, offset, whence);

	(void)number;
	if (found == -1)
		fuse_reply_err(request, errno);
	else
		fuse_reply_lseek(request, found);
}

static void on_statfs(fuse_req_t request, fuse_ino_t number)
{
	struct statvfs status;

	(void)number;
	if (fstatvfs(root.fd, &status))
		fuse_reply_err(request, errno);
	else
		fuse_reply_statfs(request, &status);
}

/* An open directory, and what was read of it and did not fit into the last answer. */
struct listing {
	DIR *stream;
	struct dirent *next;
	off_t offset;
};

static struct listing *listing_of(const struct fuse_file_info *file)
{
	return (struct listing *)(uintptr_t)file->fh;
}

static struct listing *open_listing(const struct node *node)
{
	struct listing *listing = calloc(1, sizeof(*listing));
	int fd = open_at(node->fd, ".", O_RDONLY | O_DIRECTORY, 0);
	int problem;

	if (listing && fd != -1)
		listing->stream = fdopendir(fd);
	if (listing && listing->stream)
		return listing;
	problem = errno;
	if (fd != -1)
		close(fd);
	free(listing);
	errno = problem;
	return NULL;
}

static void on_opendir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
	struct node *node = hold(request, number);
	struct listing *listing;

	if (!node)
		return;
	listing = open_listing(node);
	if (!listing) {
		fuse_reply_err(request, errno);
	} else {
		file->fh = (uintptr_t)listing;
		fuse_reply_open(request, file);
	}
	let_go(node);
}

/* Fills `buffer` with entries, and returns how many bytes they take, or -1 where there is none for an error. */
static ssize_t read_listing(fuse_req_t request, struct listing *listing, char *buffer, size_t size)
{
	size_t used = 0;

	for (;;) {
		struct stat attributes = {0};
		size_t needed;

		errno = 0;
		if (!listing->next)
			listing->next = readdir(listing->stream);
		if (!listing->next)
			return errno && !used ? -1 : (ssize_t)used;
		attributes.st_ino = listing->next->d_ino;
		attributes.st_mode = DTTOIF(listing->next->d_type);
		needed = fuse_add_direntry(request, buffer + used, size - used, listing->next->d_name, &attributes,
					   listing->next->d_off);
		if (needed > size - used)
			return (ssize_t)used;
		used += needed;
		listing->offset = listing->next->d_off;
		listing->next = NULL;
	}
}

static void on_readdir(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file)
{
	struct listing *listing = listing_of(file);
	char *buffer = malloc(size);
	ssize_t used;

	(void)number;
	if (!buffer) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	if (offset != listing->offset) {
		seekdir(listing->stream, offset);
		listing->next = NULL;
		listing->offset = offset;
	}
	used = read_listing(request, listing, buffer, size);
	if (used == -1)
		fuse_reply_err(request, errno);
	else
		fuse_reply_buf(request, buffer, (size_t)used);
	free(buffer);
}

static void on_releasedir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
	struct listing *listing = listing_of(file);

	(void)number;
	closedir(listing->stream);
	free(listing);
	fuse_reply_err(request, 0);
}

static void on_fsyncdir(fuse_req_t request, fuse_ino_t number, int only_data, struct fuse_file_info *file)
{
	int fd = dirfd(listing_of(file)->stream);

	(void)number;
	fuse_reply_err(request, result(only_data ? fdatasync(fd) : fsync(fd)));
}

/* Extended attributes and locks are left out: the kernel then asks for none of the former before each write, and keeps
 * the latter to itself. */
static const struct fuse_lowlevel_ops operations = {
	.create = on_create,
	.fallocate = on_fallocate,
	.flush = on_flush,
	.forget = on_forget,
	.forget_multi = on_forget_multi,
	.fsync = on_fsync,
	.fsyncdir = on_fsyncdir,
	.getattr = on_getattr,
	.link = on_link,
	.lookup = on_lookup,
	.lseek = on_lseek,
	.mkdir = on_mkdir,
	.mknod = on_mknod,
	.open = on_open,
	.opendir = on_opendir,
	.read = on_read,
	.readdir = on_readdir,
	.readlink = on_readlink,
	.release = on_release,
	.releasedir = on_releasedir,
	.rename = on_rename,
	.rmdir = on_rmdir,
	.setattr = on_setattr,
	.statfs = on_statfs,
	.symlink = on_symlink,
	.unlink = on_unlink,
	.write_buf = on_write,
};

/* The start */

static void open_root(const char *directory, const char *identity)
{
	char found[64];
	struct stat attributes;

	root.fd = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root.fd == -1 || fstat(root.fd, &attributes))
		err(1, "%s", directory);
	snprintf(found, sizeof(found), "%ju:%ju", (uintmax_t)attributes.st_dev, (uintmax_t)attributes.st_ino);
	if (strcmp(found, identity))
		errx(1, "%s was replaced just now", directory);
	root.is_directory = true;
	root.lookups = 1;
}

static void raise_limit(void)
{
	struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};

	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		if (getrlimit(RLIMIT_NOFILE, &limit))
			err(1, "getrlimit");
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			err(1, "setrlimit");
	}
	unheld_max = limit.rlim_cur / 4;
}

/* Becomes the user, without other groups or any capability: what he may not do is not done for what runs inside. */
static void become(uid_t user, gid_t group)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	if (setgroups(0, NULL) || setresgid(group, group, group) || setresuid(user, user, user))
		err(1, "can't become user %u", user);
	if (syscall(SYS_capset, &header, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err(1, "can't drop capabilities");
}

int main(int count, char **words)
{
	char *options[] = {"protectfs", "-o", "allow_other,default_permissions,fsname=project,subtype=protectfs", NULL};
	struct fuse_args arguments = FUSE_ARGS_INIT(3, options);
	struct fuse_loop_config *config;
	struct fuse_session *session;
	struct rule *rules = NULL;
	bool is_pattern = true;

	if (count < 7)
		errx(2, "usage: protectfs DIRECTORY DEVICE:INODE MOUNTPOINT UID GID [PATTERN]... -- [PATH]...");
	for (int i = 6; i < count; i++) {
		if (is_pattern && !strcmp(words[i], "--"))
			is_pattern = false;
		else
			add_rule(&rules, words[i], is_pattern);
	}
	close_range(STDERR_FILENO + 1, ~0U, 0);
	open_root(words[1], words[2]);
	root.rules = rules;
	raise_limit();
	umask(0);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);

	session = fuse_session_new(&arguments, &operations, sizeof(operations), NULL);
	if (!session || fuse_session_mount(session, words[3]))
		return 1;
	become((uid_t)strtoul(words[4], NULL, 10), (gid_t)strtoul(words[5], NULL, 10));
	config = fuse_loop_cfg_create();
	if (!config || fuse_daemonize(0))
		return 1;
	return fuse_session_loop_mt(session, config) != 0;
}
