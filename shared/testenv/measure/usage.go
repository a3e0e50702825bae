package measure

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"
)

// A Usage is what a process has used so far; zeros without /proc.
type Usage struct {
	CPU    time.Duration // of all its threads and of children that have ended
	Memory int64         // resident, bytes
	Peak   int64         // the most so far, bytes
}

// UsageOf reads a process's usage.
func UsageOf(pid int) Usage {
	stat, ok := statOf(pid)
	if !ok {
		return Usage{}
	}
	proc, _ := procfs.NewProc(pid)
	status, err := proc.NewStatus()
	if err != nil {
		return Usage{}
	}
	return Usage{cpuOf(stat), int64(status.VmRSS), int64(status.VmHWM)} //nolint:gosec // far below
}

func statOf(pid int) (stat procfs.ProcStat, ok bool) {
	proc, err := procfs.NewProc(pid)
	if err == nil {
		stat, err = proc.Stat()
	}
	return stat, err == nil
}

// cpuOf is the time of a process with its ended children. USER_HZ is 100 on
// every Linux platform of Go.
func cpuOf(stat procfs.ProcStat) time.Duration {
	const tick = 10 * time.Millisecond
	return time.Duration(int(stat.UTime+stat.STime)+stat.CUTime+stat.CSTime) * tick //nolint:gosec // far below
}

// familyCPU adds up a process and its children, as PostgreSQL has one for
// each connection.
func familyCPU(pid int) (total time.Duration) {
	const attempts = 10
	for range attempts {
		own := UsageOf(pid).CPU
		total = 0
		for _, id := range family(Process{pid, true}) {
			if stat, ok := statOf(id); ok {
				total += cpuOf(stat)
			}
		}
		if UsageOf(pid).CPU == own { // else a child has just ended, and was missed
			break
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

// Switches returns how often the threads of each process have left a
// processor so far, without those of threads and processes that have ended.
func Switches(of ...Process) []uint64 {
	found := make([]uint64, len(of))
	for i, p := range of {
		for _, pid := range family(p) {
			threads, _ := procfs.AllThreads(pid)
			for _, thread := range threads {
				if status, err := thread.NewStatus(); err == nil {
					found[i] += status.VoluntaryCtxtSwitches + status.NonVoluntaryCtxtSwitches
				}
			}
		}
	}
	return found
}

// family returns the ids of a process and its children, if they count.
func family(p Process) (ids []int) {
	if p.Pid == 0 {
		return nil
	}
	ids = []int{p.Pid}
	if !p.Family {
		return ids
	}
	processes, _ := procfs.AllProcs()
	for _, child := range processes {
		if stat, ok := statOf(child.PID); ok && stat.PPID == p.Pid {
			ids = append(ids, child.PID)
		}
	}
	return ids
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
	if stat, ok := statOf(backend); ok && stat.Comm == "postgres" {
		return Process{stat.PPID, true}
	}
	return Process{}
}
