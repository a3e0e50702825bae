package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// A usage is what a process has used so far. Known is false where the system does not tell (it needs /proc).
type usage struct {
	known  bool
	cpu    time.Duration // of all its threads and of children that have ended
	memory int64         // resident, bytes
	peak   int64         // the most that it ever was resident, bytes
}

// clockTick is the unit of CPU times in /proc: USER_HZ is 100 on every Linux platform that Go runs on.
const clockTick = 10 * time.Millisecond

// usageOf reads what a process has used.
func usageOf(pid int) usage {
	cpu, _, ok := readStat(pid)
	if !ok {
		return usage{}
	}
	u := usage{known: true, cpu: cpu}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.memory = kilobytes << 10
		case "VmHWM":
			u.peak = kilobytes << 10
		}
	}
	return u
}

// readStat returns the CPU time of a process with its ended children, and its parent.
func readStat(pid int) (cpu time.Duration, parent int, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	end := bytes.LastIndexByte(stat, ')') // the program's name may hold anything
	if err != nil || end < 0 {
		return 0, 0, false
	}
	fields := strings.Fields(string(stat[end+1:])) // from the third field on, see proc(5)
	if len(fields) < 15 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	ticks := 0
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.Atoi(field)
		ticks += n
	}
	return time.Duration(ticks) * clockTick, parent, err == nil
}

// familyUsage adds up a process and its children, as PostgreSQL has one for each connection. The memory that they share
// counts once for each, so it is left out.
func familyUsage(pid int) usage {
	total := usageOf(pid)
	total.memory, total.peak = 0, 0
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			continue
		}
		if cpu, parent, ok := readStat(child); ok && parent == pid {
			total.cpu += cpu
		}
	}
	return total
}

// postmaster finds the process of the PostgreSQL server at url, 0 where it runs elsewhere.
func postmaster(ctx context.Context, url string) int {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0
	}
	defer conn.Close(ctx)
	var backend int
	if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		return 0
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", backend))
	if _, parent, ok := readStat(backend); ok && err == nil && strings.HasPrefix(string(name), "postgres") {
		return parent
	}
	return 0
}
