package kafka

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk/disktest"
	"github.com/weirlog/weir/shared/testenv"
)

// envServe turns this test program into a broker for its parent, which
// kills it; with envCompact into one that compacts all the time.
const (
	envServe   = "WEIR_TEST_SERVE_DIR"
	envCompact = "WEIR_TEST_COMPACT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envServe); dir != "" {
		serve(dir)
	}
	os.Exit(m.Run())
}

// serve runs a broker until it is killed.
func serve(dir string) {
	b, err := Start(Config{Dir: dir, Open: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(b.Addr())
	if os.Getenv(envCompact) != "" {
		go compactForEver(b)
	}
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func compactForEver(b *Broker) {
	for {
		if err := b.Compact(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		time.Sleep(20 * time.Millisecond) // lets producers in between
	}
}

// startChild starts a broker in another process and returns its address.
func startChild(t *testing.T, dir string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(append(os.Environ(), envServe+"="+dir), env...), os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // held open: the child ends with its parent
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	testenv.Must(t, err)
	testenv.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	testenv.Must(t, err)
	return cmd, strings.TrimSpace(addr)
}

// SIGKILL under load loses no acknowledged record, in many rounds.
func TestKillLosesNothing(t *testing.T) {
	dir := t.TempDir()
	acked := map[string]bool{}
	for round := range 3 {
		child, addr := startChild(t, dir)
		if round == 0 {
			create(t, addr, "test.kill")
		}
		for _, value := range produceUntilKilled(t, child, addr, round) {
			acked[value] = true
		}
	}
	b := start(t, Config{Dir: dir})
	end := endOffset(t, b.Addr(), "test.kill")
	for _, r := range consume(t, b.Addr(), "test.kill", int(end)) {
		delete(acked, string(r.Value))
	}
	if len(acked) > 0 {
		t.Errorf("%d acknowledged records are lost", len(acked))
	}
}

// produceUntilKilled kills the broker after a few hundred acknowledgements,
// with more in flight, and returns what was acknowledged.
func produceUntilKilled(t *testing.T, child *exec.Cmd, addr string, round int) []string {
	t.Helper()
	c := client(t, addr, kgo.DefaultProduceTopic("test.kill"), kgo.RecordRetries(0), kgo.ProducerLinger(0))
	var mu sync.Mutex
	var acked []string
	var answers sync.WaitGroup
	enough := make(chan struct{})
	for i := range 5000 {
		answers.Add(1)
		value := fmt.Sprintf("%d/%d/%s", round, i, strings.Repeat("x", 200))
		c.Produce(t.Context(), kgo.StringRecord(value), func(r *kgo.Record, err error) {
			defer answers.Done()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				return
			}
			if acked = append(acked, string(r.Value)); len(acked) == 300 {
				close(enough)
			}
		})
	}
	<-enough
	child.Process.Kill()
	child.Wait()
	c.Close()
	answers.Wait()
	return acked
}

// SIGKILL of a broker that compacts all the time keeps each key's
// newest acknowledged value, in many rounds.
func TestKillInCompactionLosesNothing(t *testing.T) {
	dir := t.TempDir()
	acked := map[string]int{}
	for round := range 3 {
		child, addr := startChild(t, dir, envCompact+"=1")
		if round == 0 {
			create(t, addr, "test.state", "cleanup.policy", "compact", "segment.bytes", "2000")
		}
		updateUntilKilled(t, child, addr, round, acked)
		state, _ := stateOf(t, start(t, Config{Dir: crashed(t, dir)}), "test.state")
		for key, want := range acked {
			if got, err := strconv.Atoi(strings.TrimSpace(state[key])); err != nil || got < want {
				t.Errorf("round %d: key %s is %q, %d was acknowledged", round, key, state[key], want)
			}
		}
	}
}

// updateUntilKilled sets keys to ever larger numbers, kills the broker
// after some, and notes each key's acknowledged value in acked.
func updateUntilKilled(t *testing.T, child *exec.Cmd, addr string, round int, acked map[string]int) {
	t.Helper()
	const keys, enough = 7, 40
	c := client(t, addr, kgo.DefaultProduceTopic("test.state"), kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(30*time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return time.Millisecond }), kgo.MetadataMinAge(10*time.Millisecond))
	for i := range enough {
		key, value := fmt.Sprint(i%keys), round*enough+i
		record := kgo.KeyStringRecord(key, fmt.Sprintf("%d%s", value, strings.Repeat(" ", 100)))
		testenv.Must(t, c.ProduceSync(t.Context(), record).FirstErr())
		acked[key] = value
	}
	child.Process.Kill()
	child.Wait()
	c.Close()
}

// Damage is found and named; the traces of a crash are not damage.
func TestDamage(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(t *testing.T, dir string)
		want error
	}{
		"unharmed":                {func(*testing.T, string) {}, nil},
		"unfinished write":        {appendTo(segmentOf, []byte{0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 1}), nil},
		"zeros after a power cut": {appendTo(segmentOf, make([]byte, 4096)), nil},
		"a byte has changed":      {changeByte(segmentOf, 80), ErrDamaged},
		"the first length is odd": {changeByte(segmentOf, 8), ErrDamaged},
		"the end is missing":      {cut(segmentOf, 100), ErrDamaged},
		"the file is missing":     {remove(segmentOf), ErrDamaged},
		"topics.json is missing":  {remove(fileOf("topics.json")), ErrDamaged},
		"topics.json is no JSON":  {changeByte(fileOf("topics.json"), 0), ErrDamaged},
		"checkpoint.json is cut":  {cut(fileOf("checkpoint.json"), 20), ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := start(t, Config{Dir: dir})
			create(t, b.Addr(), "test.damage")
			produce(t, b.Addr(), "test.damage", values(5)...)
			stop(t, b)
			test.harm(t, dir)
			b, err := Start(Config{Dir: dir, Open: true, Logger: slog.New(slog.DiscardHandler)})
			if err == nil {
				defer b.Close()
			}
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if err != nil && (!strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("want one line that names %s: %v", dir, err)
			}
		})
	}
}

func segmentOf(dir string) string { return filepath.Join(dir, "partitions", "test.damage-0", "0.dat") }

func fileOf(name string) func(string) string {
	return func(dir string) string { return filepath.Join(dir, name) }
}

func appendTo(file func(string) string, tail []byte) func(*testing.T, string) {
	return rewrite(file, func(b []byte) []byte { return append(b, tail...) })
}

func changeByte(file func(string) string, at int) func(*testing.T, string) {
	return rewrite(file, func(b []byte) []byte { b[at] ^= 0x55; return b })
}

func cut(file func(string) string, keep int) func(*testing.T, string) {
	return rewrite(file, func(b []byte) []byte { return b[:keep] })
}

func rewrite(file func(string) string, change func([]byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		raw, err := os.ReadFile(file(dir))
		if err == nil {
			err = os.WriteFile(file(dir), change(raw), 0o600)
		}
		testenv.Must(t, err)
	}
}

func remove(file func(string) string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		testenv.Must(t, os.Remove(file(dir)))
	}
}

// A broker starts on a full disk, serves what there is, and refuses what
// is new by an error that clients know, until there is room.
func TestFullDisk(t *testing.T) {
	dir, files := t.TempDir(), disktest.New(disk.OS{})
	b := start(t, Config{Dir: dir, files: files})
	create(t, b.Addr(), "test.full")
	create(t, b.Addr(), "test.state", "cleanup.policy", "compact")
	produce(t, b.Addr(), "test.full", values(3)...)
	produce(t, b.Addr(), "test.state", updates(3)...)
	stop(t, b)

	files.Fail(disktest.Only("write", syscall.ENOSPC))
	b = start(t, Config{Dir: dir, files: files})
	if got := consume(t, b.Addr(), "test.full", 3); len(got) != 3 {
		t.Errorf("%d records can be read", len(got))
	}
	c := client(t, b.Addr(), kgo.DefaultProduceTopic("test.full"), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0))
	if err := c.ProduceSync(t.Context(), kgo.StringRecord("refused")).FirstErr(); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("a full disk is answered %v, want %v", err, kerr.KafkaStorageError)
	}
	files.Fail(nil)
	produce(t, b.Addr(), "test.full", kgo.StringRecord("3"))
	for i, r := range consume(t, b.Addr(), "test.full", 4) {
		if want := string(rune('0' + i)); string(r.Value) != want {
			t.Errorf("offset %d holds %q, want %s", r.Offset, r.Value, want)
		}
	}
	if err := b.Compact(t.Context()); err != nil {
		t.Error(err)
	}
}

// A repair cuts the log at its damage, keeps what it cuts off, and the
// log goes on from there.
func TestRepair(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(t *testing.T, dir string)
		left int // records; 5: nothing is cut
	}{
		"unharmed":                                {func(*testing.T, string) {}, 5},
		"a byte has changed":                      {changeByte(segmentOf, 80), 1},
		"the end is missing":                      {cut(segmentOf, 100), 1},
		"the file is missing":                     {remove(segmentOf), 0},
		"the log and its checkpoint are damaged":  {also(changeByte(segmentOf, 80), cut(fileOf("checkpoint.json"), 10)), 1},
		"the log is damaged without a checkpoint": {also(changeByte(segmentOf, 80), remove(fileOf("checkpoint.json"))), 1},
		"the checkpoint is damaged":               {cut(fileOf("checkpoint.json"), 0), 5},
		"the producers' ids are damaged":          {changeByte(fileOf("producers"), 0), 5},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := start(t, Config{Dir: dir})
			create(t, b.Addr(), "test.damage")
			produce(t, b.Addr(), "test.damage", values(5)...)
			stop(t, b)
			test.harm(t, dir)
			cuts, err := Repair(dir)
			if err != nil || (len(cuts) == 1) != (test.left < 5) {
				t.Fatalf("%+v, %v", cuts, err)
			}
			for _, c := range cuts {
				if c.Topic != "test.damage" || c.From != int64(test.left) {
					t.Errorf("it reports %+v", c)
				}
				if _, err := os.Stat(c.Kept); c.Bytes > 0 && err != nil {
					t.Errorf("nothing is kept: %v", err)
				}
			}
			b = start(t, Config{Dir: dir})
			produce(t, b.Addr(), "test.damage", kgo.StringRecord(strconv.Itoa(test.left)))
			for i, r := range consume(t, b.Addr(), "test.damage", test.left+1) {
				if string(r.Value) != strconv.Itoa(i) || r.Offset != int64(i) {
					t.Errorf("offset %d holds %q, want %d", r.Offset, r.Value, i)
				}
			}
		})
	}
}

func also(harm ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		for _, do := range harm {
			do(t, dir)
		}
	}
}
