package app_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// Kills, and among how many organizations.
const (
	shortKills, fullKills                 = 4, 100 // the latter in make test-faults
	shortOrganizations, fullOrganizations = 20, 1000
	longestLife                           = 300 * time.Millisecond
)

// Two ledger processes, the database and the broker, killed with SIGKILL one after another while records arrive, and started again: not one byte
// is off, neither in what is published nor in the postings, nor against the log, by the ledger's own command; each fact was published, under
// one id; and a ledger that is made anew has the same chains.
func TestKilled(t *testing.T) {
	kills, organizations := testenv.Rounds(t, shortKills, fullKills), shortOrganizations
	if kills > shortKills {
		organizations = fullOrganizations
	}
	brokers, killBroker := besiegedBroker(t, kills > shortKills)
	database := testenv.FaultyPostgres(t)
	r := newRigAt(t, brokers, database.URL)
	s := &siege{rig: r, binary: build(t, "ledger"), random: testenv.Random(t, rand.Uint64()), want: map[string]int64{}}
	s.begin(organizations)
	victims := []func(){func() { s.fell(0) }, func() { database.Restart(t) }, func() { s.fell(1) }, killBroker}
	for i := range kills {
		s.feed(i, kills)
		time.Sleep(rand.N(longestLife)) // a random moment of the work, not a wait
		victims[i%len(victims)]()
		s.revive()
	}
	s.feed(kills, kills)
	s.check()
	s.end()
	verify := exec.CommandContext(t.Context(), build(t, "ledger-verify"))
	verify.Env = r.environment()
	if out, err := verify.CombinedOutput(); err != nil || !strings.Contains(string(out), "every invariant holds") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	s.compareAnew()
}

// besiegedBroker is a broker and how to kill it. One that the run has given to all tests lives on, unless the test is at its full count: to start
// an Apache Kafka for four kills takes longer than these.
func besiegedBroker(t *testing.T, full bool) (brokers []string, kill func()) {
	t.Helper()
	if os.Getenv(testenv.EnvBrokers) != "" && !full {
		return testenv.Kafka(t), func() {}
	}
	cluster := testenv.FaultyKafka(t, 1)
	return cluster.Brokers(), func() { cluster.Nodes[0].Restart(t) }
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
