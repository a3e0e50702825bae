package measure

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

// A Usage is a process's resource usage so far. Known is false without /proc.
type Usage struct {
	Known  bool
	CPU    time.Duration // of all its threads and of children that have ended
	Memory int64         // resident, bytes
	Peak   int64         // the highest so far, bytes
}

// clockTick is the unit of CPU times in /proc: USER_HZ is 100 on
// every Linux platform of Go.
const clockTick = 10 * time.Millisecond

// UsageOf reads a process's usage.
func UsageOf(pid int) Usage {
	cpu, _, ok := readStat(pid)
	if !ok {
		return Usage{}
	}
	u := Usage{Known: true, CPU: cpu}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.Memory = kilobytes << 10
		case "VmHWM":
			u.Peak = kilobytes << 10
		}
	}
	return u
}

// readStat returns the CPU time of a process with its ended children,
// and its parent.
func readStat(pid int) (cpu time.Duration, parent int, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	end := bytes.LastIndexByte(stat, ')') // the program's name may contain anything
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

// FamilyUsage adds up a process and its children, as PostgreSQL has one
// for each connection. It omits memory, as shared memory would count
// once for each.
func FamilyUsage(pid int) (total Usage) {
	const attempts = 10
	for range attempts {
		total = UsageOf(pid)
		total.Memory, total.Peak = 0, 0
		own := total.CPU
		total.CPU += childrenCPU(pid)
		if UsageOf(pid).CPU == own { // else a child has just ended, and was missed
			break
		}
	}
	return total
}

func childrenCPU(pid int) (total time.Duration) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			continue
		}
		if cpu, parent, ok := readStat(child); ok && parent == pid {
			total += cpu
		}
	}
	return total
}

// Postmaster finds the process of the PostgreSQL server at url, 0 if
// it runs elsewhere.
func Postmaster(ctx context.Context, url string) int {
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
