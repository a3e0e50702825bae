package measure

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"
)

// A Process is one whose use of the machine is measured, with its children if
// it has a family, as PostgreSQL has one for each connection. Without a pid,
// or without /proc, it uses nothing.
type Process struct {
	Pid    int
	Family bool
}

// members are the process and its children, if they count.
func (p Process) members() (all []procfs.ProcStat) {
	processes := procfs.Procs{}
	if own, err := procfs.NewProc(p.Pid); p.Pid != 0 && err == nil {
		processes = append(processes, own)
	}
	if p.Pid != 0 && p.Family {
		processes, _ = procfs.AllProcs()
	}
	for _, one := range processes {
		if stat, err := one.Stat(); err == nil && (stat.PID == p.Pid || stat.PPID == p.Pid) {
			all = append(all, stat)
		}
	}
	return all
}

// cpu is the processor time of all members and of children that have ended.
// If one has just ended, it may have been missed.
func (p Process) cpu() (used time.Duration) {
	const attempts = 10
	own := Process{Pid: p.Pid}
	for range attempts {
		before := sum(own.members())
		used = sum(p.members())
		if !p.Family || sum(own.members()) == before {
			break
		}
	}
	return used
}

// sum adds processor times. USER_HZ is 100 on every Linux platform of Go.
func sum(all []procfs.ProcStat) (used time.Duration) {
	const tick = 10 * time.Millisecond
	for _, stat := range all {
		used += time.Duration(int(stat.UTime+stat.STime)+stat.CUTime+stat.CSTime) * tick //nolint:gosec // far below
	}
	return used
}

// CPU begins to count processor time; since returns what each process has
// used, divided by n.
func CPU(of ...Process) (since func(n float64) []time.Duration) {
	before := make([]time.Duration, len(of))
	for i, p := range of {
		before[i] = p.cpu()
	}
	return func(n float64) []time.Duration {
		each := make([]time.Duration, len(of))
		for i, p := range of {
			each[i] = time.Duration(float64(max(0, p.cpu()-before[i])) / n)
		}
		return each
	}
}

// switches are how often the processes' threads have left a processor, by
// themselves or not. Those of ended threads are forgotten.
func (p Process) switches() (all uint64) {
	for _, stat := range p.members() {
		threads, _ := procfs.AllThreads(stat.PID)
		for _, thread := range threads {
			status, _ := thread.NewStatus()
			all += status.VoluntaryCtxtSwitches + status.NonVoluntaryCtxtSwitches
		}
	}
	return all
}

// Switches begins to count context switches; since returns how many each
// process has made, divided by n.
func Switches(of ...Process) (since func(n float64) []float64) {
	before := make([]uint64, len(of))
	for i, p := range of {
		before[i] = p.switches()
	}
	return func(n float64) []float64 {
		each := make([]float64, len(of))
		for i, p := range of {
			each[i] = max(0, float64(p.switches())-float64(before[i])) / n
		}
		return each
	}
}

// Memory returns how many bytes of a process are resident, and the most that
// ever were.
func Memory(pid int) (resident, peak int64) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0
	}
	status, _ := process.NewStatus()
	return int64(status.VmRSS), int64(status.VmHWM) //nolint:gosec // far below
}

// WatchPeak watches a process's resident memory; the returned function ends
// that and returns the most that it had.
func WatchPeak(pid int) (end func() int64) {
	const poll = 20 * time.Millisecond
	ctx, stop := context.WithCancel(context.Background())
	peak := make(chan int64)
	go func() {
		most := int64(0)
		_ = Until(ctx, poll, func(context.Context) (bool, error) {
			resident, _ := Memory(pid)
			most = max(most, resident)
			return false, nil
		})
		peak <- most
	}()
	return func() int64 {
		stop()
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
	for _, stat := range (Process{Pid: backend}).members() {
		if stat.Comm == "postgres" {
			return Process{stat.PPID, true}
		}
	}
	return Process{}
}

// Bytes adds up the files below a directory by what name calls them; files
// may go meanwhile, and those without a name do not count.
func Bytes(dir string, name func(path string) string) (bytes map[string]int64, err error) {
	bytes = map[string]int64{} // bounded by names
	return bytes, filepath.WalkDir(dir, func(path string, file fs.DirEntry, err error) error {
		if err == nil && !file.IsDir() {
			var info fs.FileInfo
			if info, err = file.Info(); err == nil && name(path) != "" {
				bytes[name(path)] += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}
