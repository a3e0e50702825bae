package app_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// Two ledger processes, each killed with SIGKILL while records arrive, and started again: not one
// byte is off, neither in what is published nor in the postings, nor against the log, by the
// ledger's own command.
func TestKilled(t *testing.T) {
	r := newRig(t)
	binary := build(t, "ledger")
	first := r.launch(binary)
	first.await(t, "partitions=4")
	second := r.launch(binary)
	first.await(t, "partitions=2")
	second.await(t, "partitions=2")
	var want int64
	feed := func(n int) {
		for i := range n {
			l := logs("acme", int64(1+i%9))
			r.Accept(l, l)
			want += l.Bytes
		}
	}
	r.create("acme", "scale")
	r.awaitAccount("acme")
	feed(300)
	kill(t, first)
	feed(300)
	first = r.launch(binary)
	first.await(t, "partitions=2")
	kill(t, second)
	feed(300)
	if got := r.awaitCounted()["acme"].Used; got != want {
		t.Errorf("used %d, want %d", got, want)
	}
	kill(t, first)
	verify := exec.CommandContext(t.Context(), build(t, "ledger-verify"))
	verify.Env = r.environment()
	if out, err := verify.CombinedOutput(); err != nil || !strings.Contains(string(out), "every invariant holds") {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// The command refuses an unusable configuration, with all faults at once.
func TestCommandRefuses(t *testing.T) {
	command := exec.CommandContext(t.Context(), build(t, "ledger"))
	command.Env = append(os.Environ(), "WEIR_LISTEN=:0", "WEIR_TIER_SCALE_BYTES=-5")
	out, err := command.CombinedOutput()
	if err == nil {
		t.Fatalf("it ran: %s", out)
	}
	for _, part := range []string{"WEIR_BROKERS", "WEIR_DATABASE_URL", "WEIR_TLS_CERT_FILE", "scale"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("nothing about %s in %s", part, out)
		}
	}
}

func build(t testing.TB, command string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), command)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", binary, "../cmd/"+command).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

func (r *rig) environment() []string {
	return append(os.Environ(),
		"WEIR_BROKERS="+strings.Join(r.config.Brokers, ","),
		"WEIR_DATABASE_URL="+r.config.DatabaseURL.Reveal(),
		fmt.Sprint("WEIR_TIER_INDIE_BYTES=", r.config.TierIndieBytes))
}

// A running process and its log so far.
type running struct {
	*exec.Cmd
	mu  sync.Mutex
	log bytes.Buffer
}

// Write takes a line of the process's log.
func (p *running) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(line)
}

// await waits until the process has logged that it works on partitions of the logs. A process that
// dies while it joins the group is another matter: how fast that is noticed is up to the broker.
func (p *running) await(t testing.TB, partitions string) {
	t.Helper()
	testenv.Eventually(t, patience, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, contract.GroupLedger) && strings.Contains(line, partitions) {
				return nil
			}
		}
		return fmt.Errorf("process %d has not said %q", p.Process.Pid, partitions)
	})
}

// launch starts one ledger process; its log is shown when the test fails.
func (r *rig) launch(binary string) *running {
	r.t.Helper()
	process := &running{Cmd: exec.Command(binary)}
	process.Env, process.Stderr = r.environment(), process
	if err := process.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		if r.t.Failed() {
			r.t.Logf("process %d:\n%s", process.Process.Pid, process.log.String())
		}
	})
	return process
}

func kill(t testing.TB, process *running) {
	t.Helper()
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
}
