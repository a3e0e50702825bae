package programs

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
	"testing"
)

// A guard is a shell that acts once this process has ended in any way: the
// kernel then closes the pipe that the shell reads from.
type guard struct {
	shell *exec.Cmd
	pipe  io.WriteCloser
}

// watch starts a guard. Its script waits with read, which fails at that end.
func watch(script string, args ...string) (*guard, error) {
	shell := exec.Command("/bin/sh", append([]string{"-c", script, "weir-test-guard"}, args...)...)
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends the test's process group must not end it
	pipe, err := shell.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &guard{shell, pipe}, shell.Start()
}

// release ends it; a script that asks with read goes on as if all is well.
func (g *guard) release() error {
	_, err := io.WriteString(g.pipe, "\n")
	return errors.Join(err, g.pipe.Close(), g.shell.Wait())
}

// AtEnd runs a shell script with arguments once the test has ended, or its
// process in any way, such as by SIGKILL.
func AtEnd(t testing.TB, script string, args ...string) {
	t.Helper()
	g, err := watch("read -r _\n"+script, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.release(); err != nil {
			t.Errorf("what cleans up behind the test: %v", err)
		}
	})
}
