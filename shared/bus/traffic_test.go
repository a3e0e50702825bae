package bus_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// traffic publishes messages one by one from several goroutines until
// it is stopped, and keeps the outcome of each.
type traffic struct {
	mu       sync.Mutex
	written  map[string]bool
	unknown  map[string]bool
	refused  map[string]bool
	lanes    int // how many organizations the senders belong to; 0: none
	stopping chan struct{}
	wg       sync.WaitGroup
}

func startTraffic(p *publisher.Publisher, topic string, senders int, pace time.Duration) *traffic {
	return startTrafficOf(p, topic, senders, 0, pace)
}

// startTrafficOf is startTraffic with senders of so many organizations.
func startTrafficOf(p *publisher.Publisher, topic string, senders, lanes int, pace time.Duration) *traffic {
	tr := &traffic{written: map[string]bool{}, unknown: map[string]bool{}, refused: map[string]bool{}, lanes: lanes, stopping: make(chan struct{})}
	for s := range senders {
		tr.wg.Go(func() { tr.send(p, topic, s, pace) })
	}
	return tr
}

func (tr *traffic) send(p *publisher.Publisher, topic string, sender int, pace time.Duration) {
	for i := 0; ; i++ {
		select {
		case <-tr.stopping:
			return
		case <-time.After(pace):
		}
		m := message.NewMessage(fmt.Sprintf("%d-%d", sender, i), []byte("payload"))
		m.Metadata[bus.KeyMetadata] = fmt.Sprint(sender)
		if tr.lanes > 0 {
			m.Metadata["ce_organization"] = fmt.Sprint("lane-", sender%tr.lanes)
		}
		tr.note(m.UUID, p.Publish(topic, m))
	}
}

func (tr *traffic) note(id string, err error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	switch {
	case err == nil:
		tr.written[id] = true
	case errors.Is(err, bus.ErrUnknownOutcome):
		tr.unknown[id] = true
	default:
		tr.refused[id] = true
	}
}

func (tr *traffic) stop() {
	close(tr.stopping)
	tr.wg.Wait()
}

func (tr *traffic) confirmed() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.written)
}

// audit compares reported outcomes with the log: how many messages reported
// as written are lost, and how many are in the log more than once.
func (tr *traffic) audit(t testing.TB, log []bus.Record) (lost, repeated int) {
	t.Helper()
	found := make(map[string]int)
	last := make(map[string]int) // sender and partition -> newest index seen
	for _, r := range log {
		id := r.Header("ce_id")
		if found[id]++; found[id] > 1 {
			repeated++
			continue
		}
		var sender, index int
		fmt.Sscanf(id, "%d-%d", &sender, &index)
		place := fmt.Sprint(sender, "/", r.Partition)
		if before, ok := last[place]; ok && index < before {
			t.Errorf("%s lies behind %d of the same key", id, before)
		}
		last[place] = index
	}
	for id := range tr.written {
		if found[id] == 0 {
			t.Errorf("%s was reported written and is lost", id)
			lost++
		}
	}
	for id := range tr.refused {
		if found[id] > 0 {
			t.Errorf("%s was reported not written and is there", id)
		}
	}
	t.Logf("%d written, %d unknown, %d not written, %d more than once", len(tr.written), len(tr.unknown), len(tr.refused), repeated)
	return lost, repeated
}

// more waits until n more messages are reported as written.
func (tr *traffic) more(t testing.TB, n int) {
	t.Helper()
	goal := tr.confirmed() + n
	testenv.Eventually(t, func() error {
		if got := tr.confirmed(); got < goal {
			return fmt.Errorf("%d messages written, want %d", got, goal)
		}
		return nil
	})
}

// The fault tests are short unless testenv.EnvRounds is set; "full"
// runs the README's rounds.
func TestMain(m *testing.M) {
	if text := os.Getenv(envMember); text != "" {
		if err := runMember(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := bustest.Main(m)
	if os.Getenv(testenv.EnvRounds) != "" {
		counts.print(os.Stdout)
	}
	os.Exit(code)
}

func runMember(text string) error {
	var m member
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return err
	}
	return m.consume()
}

// tally counts what the fault tests of a run found.
type tally struct {
	mu   sync.Mutex
	rows []row
}

type row struct {
	fault                                  string
	rounds, records, lost, twice, repeated int
}

var counts tally

func (c *tally) add(r row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, r)
	if os.Getenv(testenv.EnvRounds) != "" {
		fmt.Printf("counted: %+v\n", r) // all that is left of a run ended early
	}
}

// print writes the faults as a table.
func (c *tally) print(to io.Writer) {
	fmt.Fprintln(to, "| fault | rounds | records | lost | applied twice | again in the log |\n|---|---|---|---|---|---|")
	for _, r := range c.rows {
		fmt.Fprintf(to, "| %s | %d | %d | %d | %d | %d |\n", r.fault, r.rounds, r.records, r.lost, r.twice, r.repeated)
	}
}

// each runs the rounds in turn, and prints its progress if
// testenv.EnvRounds is set.
func each(t testing.TB, n int, round func(i int)) {
	t.Helper()
	begin := time.Now()
	for i := range n {
		round(i)
		if os.Getenv(testenv.EnvRounds) != "" && (i+1)%max(1, n/5) == 0 {
			fmt.Printf("%s: round %d of %d after %s\n", t.Name(), i+1, n, time.Since(begin).Round(time.Second))
		}
	}
}

// chance returns a random source with a new seed for each run.
func chance(t testing.TB) *rand.Rand {
	t.Helper()
	return testenv.Random(t, uint64(time.Now().UnixNano()))
}

// settle waits until the whole log has taken effect, and counts records
// lost, applied twice or repeated.
func settle(t testing.TB, r row, tr *traffic, brokers []string, topic string, pool *pgxpool.Pool) row {
	t.Helper()
	tr.stop()
	log := bustest.ReadAll(t, brokers, topic)
	r.lost, r.repeated = tr.audit(t, log)
	return settleEffects(t, r, pool, log)
}

func settleEffects(t testing.TB, r row, pool *pgxpool.Pool, log []bus.Record) row {
	t.Helper()
	r.records = len(log)
	awaitEffects(t, pool, r.records)
	a := bustest.Count(t, pool)
	r.lost += r.records - a.Distinct
	r.twice = a.All - a.Distinct
	if r.lost != 0 || r.twice != 0 || a.OutOfOrder != 0 {
		t.Errorf("%d records of %d lost, %d applied twice, %d in disorder", r.lost, r.records, r.twice, a.OutOfOrder)
	}
	counts.add(r)
	return r
}

// awaitEffects waits for n effects while more appear. It only counts rows:
// reading them takes the database, which the consumers need, much longer.
func awaitEffects(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	begin := time.Now()
	applied, progress, shown := 0, begin, begin
	for applied < n && time.Since(progress) < testenv.Patience {
		time.Sleep(100 * time.Millisecond) // between two looks
		var now int
		testenv.Must(t, pool.QueryRow(context.Background(), `SELECT count(*) FROM effects`).Scan(&now))
		if now > applied {
			applied, progress = now, time.Now()
		}
		if os.Getenv(testenv.EnvRounds) != "" && time.Since(shown) > 10*time.Second {
			shown = time.Now()
			fmt.Printf("%s: %d of %d records applied after %s\n", t.Name(), applied, n, time.Since(begin).Round(time.Second))
		}
	}
}

const envMember = "WEIR_BUS_TEST_MEMBER" // makes this binary a member, which a test can kill

// member is a process of a fault test, in a consumer group.
type member struct {
	Brokers  []string
	Database string
	Topic    string
	Lanes    bool // consumes with lanes
}

// consume applies records. Within each transaction it prints a line and pauses.
func (r member) consume() error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	pool, err := pg.Open(ctx, r.Database, "bus")
	if err != nil {
		return err
	}
	cfg := bustest.QuickConsumer(r.Brokers, r.Topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if err := bustest.WriteEffects(ctx, tx, records); err != nil {
			return err
		}
		fmt.Println("applied")
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) // so that it is killed at any moment
		return nil
	})
	cfg.SessionTimeout, cfg.RebalanceTimeout, cfg.MaxRecords = 2*time.Second, time.Second, 50
	if r.Lanes {
		cfg.Lanes, cfg.MaxRecords = bustest.Strict, 20
	}
	c, err := consumer.New(cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// process is a running member.
type process struct {
	cmd   *exec.Cmd
	lines chan string
	stdin io.Closer
	wait  func() // until it has ended
}

func (r member) start(t testing.TB) *process {
	t.Helper()
	text, err := json.Marshal(r)
	testenv.Must(t, err)
	p := &process{cmd: exec.Command(os.Args[0]), lines: make(chan string, 1)}
	p.cmd.Env = append(os.Environ(), envMember+"="+string(text))
	p.cmd.Stderr = &logLines{t: t}
	p.stdin, err = p.cmd.StdinPipe()
	testenv.Must(t, err)
	out, err := p.cmd.StdoutPipe()
	testenv.Must(t, err)
	testenv.Must(t, p.cmd.Start())
	p.wait = sync.OnceFunc(func() { p.cmd.Wait() })
	go p.read(out)
	t.Cleanup(p.kill)
	return p
}

// read keeps only the newest line.
func (p *process) read(out io.Reader) {
	for s := bufio.NewScanner(out); s.Scan(); {
		select {
		case p.lines <- s.Text():
		default:
		}
	}
}

// await waits for the next line of the process.
func (p *process) await(t testing.TB) {
	t.Helper()
	select {
	case <-p.lines:
	default:
	}
	select {
	case <-p.lines:
	case <-time.After(testenv.Patience):
		t.Fatal("a process of the test prints nothing")
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.wait()
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	testenv.Must(t, p.cmd.Process.Signal(s))
}

// stop ends the process gracefully.
func (p *process) stop() {
	p.stdin.Close()
	p.wait()
}

type logLines struct{ t testing.TB }

func (l *logLines) Write(b []byte) (int, error) {
	defer func() { _ = recover() }() // the test may be over
	l.t.Logf("member: %s", b)
	return len(b), nil
}
