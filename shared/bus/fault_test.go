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
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// The fault tests are short unless WEIR_FAULT_ROUNDS says how often each fault is to happen. WEIR_FAULT_SEED repeats a run.
const (
	envRounds = "WEIR_FAULT_ROUNDS"
	envSeed   = "WEIR_FAULT_SEED"
	envRole   = "WEIR_BUS_TEST_ROLE" // what this binary is when a test starts it: a process that can be killed
)

func TestMain(m *testing.M) {
	var role role
	if text := os.Getenv(envRole); text == "" {
		os.Exit(m.Run())
	} else if err := json.Unmarshal([]byte(text), &role); err != nil {
		panic(err)
	}
	if err := role.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// role is a process of a fault test: a member of a consumer group, or a broker.
type role struct {
	Dir  string // a broker's data directory and port
	Port int

	Brokers  []string // a member's
	Database string
	Topic    string
}

func (r role) run() error {
	if r.Dir != "" {
		return r.serve()
	}
	return r.consume()
}

func (r role) serve() error {
	b, err := kafka.Start(kafka.Config{Dir: r.Dir, Port: r.Port, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	fmt.Println("serving")
	_, err = io.Copy(io.Discard, os.Stdin) // until the test ends, whatever becomes of it
	return errors.Join(err, b.Close())
}

// consume applies records, and says so in the middle of each transaction, where it dallies for a moment.
func (r role) consume() error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	pool, err := pg.Open(ctx, r.Database, "bus")
	if err != nil {
		return err
	}
	cfg := quick(r.Brokers, r.Topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if err := writeEffects(ctx, tx, records); err != nil {
			return err
		}
		fmt.Println("applied")
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		return nil
	})
	cfg.RebalanceTimeout, cfg.MaxRecords = time.Second, 50
	c, err := bus.NewConsumer(cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// process is a role that runs.
type process struct {
	cmd   *exec.Cmd
	lines chan string
	stdin io.Closer
	wait  func() // until it has ended
}

func (r role) start(t testing.TB) *process {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), lines: make(chan string, 1)}
	p.cmd.Env = append(os.Environ(), envRole+"="+string(text))
	p.cmd.Stderr = &logLines{t: t}
	p.stdin, err = p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.wait = sync.OnceFunc(func() { p.cmd.Wait() })
	go p.read(out)
	t.Cleanup(p.kill)
	return p
}

// read keeps the newest line only.
func (p *process) read(out io.Reader) {
	for s := bufio.NewScanner(out); s.Scan(); {
		select {
		case p.lines <- s.Text():
		default:
		}
	}
}

// await waits until the process says something from now on.
func (p *process) await(t testing.TB) {
	t.Helper()
	select {
	case <-p.lines:
	default:
	}
	select {
	case <-p.lines:
	case <-time.After(patience):
		t.Fatal("a process of the test says nothing")
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.wait()
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stop ends the process in order.
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

// rounds is how often a fault happens: short, unless the environment asks for more.
func rounds(t testing.TB, short int) int {
	t.Helper()
	if text := os.Getenv(envRounds); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s is %q", envRounds, text)
		}
		return n
	}
	return short
}

// chance is the randomness of one test, which its log allows to repeat.
func chance(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(envSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s is %q", envSeed, text)
		}
	}
	t.Logf("repeat with %s=%d", envSeed, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// traffic publishes one message after the other from several goroutines until it is stopped, and knows what became of each.
type traffic struct {
	mu       sync.Mutex
	written  map[string]bool
	unknown  map[string]bool
	refused  map[string]bool
	stopping chan struct{}
	wg       sync.WaitGroup
}

func startTraffic(p *bus.Publisher, topic string, senders int, pace time.Duration) *traffic {
	tr := &traffic{written: map[string]bool{}, unknown: map[string]bool{}, refused: map[string]bool{}, stopping: make(chan struct{})}
	for s := range senders {
		tr.wg.Go(func() { tr.send(p, topic, s, pace) })
	}
	return tr
}

func (tr *traffic) send(p *bus.Publisher, topic string, sender int, pace time.Duration) {
	for i := 0; ; i++ {
		select {
		case <-tr.stopping:
			return
		case <-time.After(pace):
		}
		m := message.NewMessage(fmt.Sprintf("%d-%d", sender, i), []byte("payload"))
		m.Metadata[bus.KeyMetadata] = fmt.Sprint(sender)
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

// audit compares what the callers were told with the log and returns how many records are there more than once.
func (tr *traffic) audit(t testing.TB, log []bus.Record) (repeated int) {
	t.Helper()
	found := make(map[string]int)
	last := make(map[string]int) // sender -> newest index seen
	for _, r := range log {
		id := r.Header("ce_id")
		if found[id]++; found[id] > 1 {
			repeated++
			continue
		}
		var sender, index int
		fmt.Sscanf(id, "%d-%d", &sender, &index)
		if before, ok := last[fmt.Sprint(sender)]; ok && index < before {
			t.Errorf("%s lies behind %d of the same key", id, before)
		}
		last[fmt.Sprint(sender)] = index
	}
	for id := range tr.written {
		if found[id] == 0 {
			t.Errorf("%s was reported written and is lost", id)
		}
	}
	for id := range tr.refused {
		if found[id] > 0 {
			t.Errorf("%s was reported not written and is there", id)
		}
	}
	t.Logf("%d written, %d unknown, %d not written, %d more than once", len(tr.written), len(tr.unknown), len(tr.refused), repeated)
	return repeated
}

// A consumer that is killed again and again between applying and committing neither loses an effect nor takes one twice.
func TestConsumerKilledBeforeCommit(t *testing.T) {
	random := chance(t)
	brokers, topic, url := testenv.Kafka(t), "test.killed", testenv.Postgres(t)
	pool := databaseAt(t, url)
	effects(t, pool)
	ensure(t, brokers, topic, 4, nil)
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	member := role{Brokers: brokers, Database: url, Topic: topic}
	total := 0
	for range rounds(t, 4) {
		publish(t, p, topic, total, 500, 40)
		total += 500
		victim := member.start(t)
		for range 1 + random.IntN(4) {
			victim.await(t)
		}
		victim.kill()
	}
	member.start(t)
	applied(t, pool, total, 2*patience)
}

// A consumer that stands still in the middle of a transaction for longer than its session, and then goes on, has no effect any
// more: the others have taken its work over.
func TestConsumerStoppedLongerThanItsSession(t *testing.T) {
	brokers, topic, url := testenv.Kafka(t), "test.stopped", testenv.Postgres(t)
	pool := databaseAt(t, url)
	effects(t, pool)
	ensure(t, brokers, topic, 4, nil)
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	member := role{Brokers: brokers, Database: url, Topic: topic}
	total := 0
	for range rounds(t, 1) {
		publish(t, p, topic, total, 1000, 40)
		total += 1000
		sleeper := member.start(t)
		sleeper.await(t)
		sleeper.signal(t, syscall.SIGSTOP)
		heir := member.start(t)
		applied(t, pool, total, 2*patience)
		sleeper.signal(t, syscall.SIGCONT)
		publish(t, p, topic, total, 1000, 40)
		total += 1000
		applied(t, pool, total, patience)
		sleeper.kill()
		heir.stop()
	}
}

// Members that come and go all the time cost time and nothing else.
func TestMembersComeAndGo(t *testing.T) {
	random := chance(t)
	brokers, topic, pool := testenv.Kafka(t), "test.storm", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 6, nil)
	tr := startTraffic(newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 8, time.Millisecond)
	startConsumer(t, quick(brokers, topic, pool, writeEffects))
	var stops []func()
	for range rounds(t, 10) {
		_, stop := startConsumer(t, quick(brokers, topic, pool, writeEffects))
		stops = append(stops, stop)
		if len(stops) > 2 {
			i := random.IntN(len(stops))
			stops[i]()
			stops = append(stops[:i], stops[i+1:]...)
		}
		time.Sleep(300 * time.Millisecond) // the fault is the pace
	}
	tr.stop()
	applied(t, pool, tr.confirmed(), 2*patience)
}

// A broker that is killed again and again while messages are on their way loses nothing that was confirmed, and keeps the order
// of each key. The embedded broker forgets what it knew of producers when it is killed, so that a batch whose answer was lost
// may be there twice; Apache Kafka does not, see TestApacheKafka.
func TestBrokerKilledWhilePublishing(t *testing.T) {
	random := chance(t)
	port := freePort(t)
	broker, topic := role{Dir: t.TempDir(), Port: port}, "test.broker"
	running := broker.start(t)
	running.await(t)
	brokers := []string{fmt.Sprintf("127.0.0.1:%d", port)}
	ensure(t, brokers, topic, 3, nil)
	tr := startTraffic(newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 16, time.Millisecond)
	for range rounds(t, 4) {
		goal := tr.confirmed() + 50 + random.IntN(500)
		testenv.Eventually(t, patience, func() error {
			if n := tr.confirmed(); n < goal {
				return fmt.Errorf("%d messages written, want %d", n, goal)
			}
			return nil
		})
		running.kill()
		running = broker.start(t)
		running.await(t)
	}
	tr.stop()
	tr.audit(t, readAll(t, brokers, topic))
}

// The database throws everybody out, again and again: the consumers come back by themselves, nothing is lost, nothing is twice.
func TestDatabaseSessionsKilled(t *testing.T) {
	brokers, topic, pool := testenv.Kafka(t), "test.database", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 4, nil)
	tr := startTraffic(newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 8, time.Millisecond)
	own, err := pg.Open(context.Background(), pool.Config().ConnString(), "bus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	startConsumer(t, quick(brokers, topic, own, writeEffects))
	executioner, err := pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for range rounds(t, 30) {
		if _, err := executioner.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE pid <> pg_backend_pid() AND datname = current_database()`); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // the fault is the pace
	}
	executioner.Release()
	tr.stop()
	pool.Reset()
	applied(t, pool, tr.confirmed(), patience)
}
