package bus_test

import (
	"bufio"
	"context"
	"encoding/json"
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

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/pg"
)

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
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), lines: make(chan string, 1)}
	p.cmd.Env = append(os.Environ(), envMember+"="+string(text))
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
	case <-time.After(bustest.Timeout):
		t.Fatal("a process of the test prints nothing")
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
