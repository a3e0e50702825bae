package programs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

// envHeld makes TestHeld the process that the others end.
const envHeld = "WEIR_TEST_HELD"

// A test that is killed, or panics as one that times out, takes its programs
// with it, and its scripts run.
func TestEndsWithItsTest(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"kill", "panic"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "file")
			testenv.Must(t, os.WriteFile(file, nil, 0o600))
			held := exec.Command(os.Args[0], "-test.run=^TestHeld$")
			held.Env = append(os.Environ(), envHeld+"="+file)
			in, inErr := held.StdinPipe()
			out, outErr := held.StdoutPipe()
			testenv.Must(t, errors.Join(inErr, outErr, held.Start()))
			line, _ := bufio.NewReader(out).ReadString('\n')
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || !runs(pid) {
				t.Fatalf("no program: %q", line)
			}
			end := in.Close
			if how == "kill" {
				end = held.Process.Kill
			}
			testenv.Must(t, end())
			_ = held.Wait() // killed
			await(t, "the program ends", func() bool { return !runs(pid) })
			await(t, "the file is removed", func() bool { _, err := os.Stat(file); return err != nil })
		})
	}
}

// TestHeld is of no use by itself.
func TestHeld(t *testing.T) {
	file := os.Getenv(envHeld)
	if file == "" {
		return
	}
	AtEnd(t, `rm "$1"`, file)
	fmt.Println(Launch(t, "/bin/sleep", nil, "1000").ID())
	_, _ = os.Stdin.Read(make([]byte, 1))
	go panic("timed out")
	select {}
}

// What ends in order is not killed, and its guard ends too.
func TestEndsInOrder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	t.Run("test", func(t *testing.T) {
		AtEnd(t, `touch "$1"`, file)
		if err := Launch(t, "/bin/sh", nil, "-c", "exit 0").Wait(); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// runs reports whether a process has not ended, whether reaped or not.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // empty where there is none
	return !strings.Contains(string(stat), ") Z")
}
