package fault

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// stopTime bounds how long a process may take to stop.
const stopTime = 30 * time.Second

// Stop sends SIGSTOP to a process and returns once all its threads have
// stopped: on a busy machine one may still answer. Where the system
// does not show threads, it only sends the signal.
func Stop(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for timeout := time.After(stopTime); ; {
		stopped, err := isStopped(pid)
		if err != nil || stopped {
			return err
		}
		select {
		case <-ticker.C:
		case <-timeout:
			return fmt.Errorf("process %d does not stop", pid)
		}
	}
}

// isStopped reports whether no thread of a process runs.
func isStopped(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread) // 4711 (kafka) T …
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		if _, state, _ := bytes.Cut(stat, []byte(") ")); !bytes.HasPrefix(state, []byte("T")) {
			return false, nil
		}
	}
	return true, nil
}
