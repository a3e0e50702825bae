package testenv

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Scratch makes a folder for the data of a server that lives as long as tests: in memory where there is room for it. A database is three
// hundred files, and each test makes one: on a disk that takes five times as much of the processor, and waits besides.
func Scratch(pattern string) (string, error) {
	if os.Getenv("TMPDIR") == "" && hasRoom(inMemory) {
		return os.MkdirTemp(inMemory, pattern)
	}
	return os.MkdirTemp("", pattern)
}

// inMemory is where Linux has a file system in memory. A container's is small unless somebody says otherwise.
const inMemory = "/dev/shm"

// The room that a run of all tests does not need in full, and what it leaves to the tests.
const (
	leastRoom   = 4 << 30
	leastMemory = 8 << 30
)

func hasRoom(dir string) bool {
	var room syscall.Statfs_t
	if syscall.Statfs(dir, &room) != nil || room.Bavail*uint64(room.Bsize) < leastRoom {
		return false
	}
	info, err := os.Open("/proc/meminfo")
	if err != nil {
		return false
	}
	defer info.Close()
	return available(info) >= leastMemory
}

// available reads from Linux's account how many bytes of memory processes can still have; 0 where it does not say.
func available(info io.Reader) (bytes uint64) {
	for lines := bufio.NewScanner(info); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	return 0
}
