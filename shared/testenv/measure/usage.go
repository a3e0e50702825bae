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

// A Usage is what a process has used so far; zeros without /proc.
type Usage struct {
	CPU    time.Duration // of all its threads and of children that have ended
	Memory int64         // resident, bytes
	Peak   int64         // the most so far, bytes
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
	u := Usage{CPU: cpu}
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

// familyCPU adds up a process and its children, as PostgreSQL has one for
// each connection.
func familyCPU(pid int) (total time.Duration) {
	const attempts = 10
	for range attempts {
		own := UsageOf(pid).CPU
		total = own + childrenCPU(pid)
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

// A Process is one whose processor time is measured; without a pid it is
// unknown. Family includes its children.
type Process struct {
	Pid    int
	Family bool
}

// CPU returns the processor time of each process so far.
func CPU(of ...Process) []time.Duration {
	used := make([]time.Duration, len(of))
	for i, p := range of {
		switch {
		case p.Pid == 0:
		case p.Family:
			used[i] = familyCPU(p.Pid)
		default:
			used[i] = UsageOf(p.Pid).CPU
		}
	}
	return used
}

// Since returns what each process has used since before, divided by n.
func Since(before []time.Duration, n float64, of ...Process) []time.Duration {
	each := CPU(of...)
	for i := range each {
		each[i] = time.Duration(float64(each[i]-before[i]) / n)
	}
	return each
}

// WatchPeak watches a process's resident memory; the returned function ends
// that and returns the most that it had.
func WatchPeak(pid int) func() int64 {
	const poll = 20 * time.Millisecond
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			most = max(most, UsageOf(pid).Memory)
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(poll):
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-peak
	}
}

// Postmaster finds the PostgreSQL server at url; unknown if it runs elsewhere.
func Postmaster(ctx context.Context, url string) Process {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return Process{}
	}
	defer conn.Close(ctx)
	var backend int
	if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		return Process{}
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", backend))
	if _, parent, ok := readStat(backend); ok && err == nil && strings.HasPrefix(string(name), "postgres") {
		return Process{parent, true}
	}
	return Process{}
}
