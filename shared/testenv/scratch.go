package testenv

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Scratch makes a folder for the data of a test's server, in memory if
// there is room: each test makes a database, which is three hundred
// files; on a disk that takes five times the CPU, and waits.
func Scratch(pattern string) (string, error) {
	if InMemory() {
		return os.MkdirTemp(inMemory, pattern)
	}
	return os.MkdirTemp("", pattern)
}

// InMemory reports whether the data of servers for tests goes to memory.
func InMemory() bool { return os.Getenv("TMPDIR") == "" && hasRoom(inMemory) }

// inMemory is Linux's file system in memory. In a container it is
// small by default.
const inMemory = "/dev/shm"

// Free space needed in the memory file system, and free memory.
const (
	minFreeTmpfs  = 4 << 30
	minFreeMemory = 8 << 30
)

func hasRoom(dir string) bool {
	var room syscall.Statfs_t
	if syscall.Statfs(dir, &room) != nil || room.Bavail*uint64(room.Bsize) < minFreeTmpfs {
		return false
	}
	info, err := os.Open("/proc/meminfo")
	if err != nil {
		return false
	}
	defer info.Close()
	return available(info) >= minFreeMemory
}

// available reads the memory available to processes from /proc/meminfo;
// 0 if it is missing.
func available(info io.Reader) (bytes uint64) {
	for lines := bufio.NewScanner(info); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	return 0
}
