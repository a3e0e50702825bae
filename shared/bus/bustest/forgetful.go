package bustest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv"
)

// A Forgetful broker can go back to what it had when it was last asked to
// remember, as a log that lost its end does: same address, same topics.
type Forgetful struct {
	t      testing.TB
	dir    string
	port   int
	broker *kafka.Broker
}

// NewForgetful starts one that remembers nothing yet.
func NewForgetful(t testing.TB) *Forgetful {
	t.Helper()
	f := &Forgetful{t: t, dir: t.TempDir()}
	f.start()
	t.Cleanup(f.stop)
	return f
}

// Brokers returns its address.
func (f *Forgetful) Brokers() []string { return []string{f.broker.Addr()} }

func (f *Forgetful) data() string   { return filepath.Join(f.dir, "data") }
func (f *Forgetful) memory() string { return filepath.Join(f.dir, "memory") }

func (f *Forgetful) start() {
	f.t.Helper()
	b, err := kafka.Start(kafka.Config{Dir: f.data(), Port: f.port, Open: true, Logger: testenv.Logger(f.t)})
	testenv.Must(f.t, err)
	f.broker = b
	if _, err := fmt.Sscanf(b.Addr(), "127.0.0.1:%d", &f.port); err != nil {
		f.t.Fatal(err)
	}
}

func (f *Forgetful) stop() {
	f.t.Helper()
	if err := f.broker.Close(); err != nil {
		f.t.Error(err)
	}
}

// Remember keeps what the broker has now; it restarts.
func (f *Forgetful) Remember() {
	f.t.Helper()
	f.stop()
	f.copy(f.memory(), f.data())
	f.start()
}

// Forget takes the broker back to what it remembers; it restarts, after
// calling meanwhile.
func (f *Forgetful) Forget(meanwhile func()) {
	f.t.Helper()
	f.stop()
	f.copy(f.data(), f.memory())
	meanwhile()
	f.start()
}

func (f *Forgetful) copy(to, from string) {
	f.t.Helper()
	testenv.Must(f.t, os.RemoveAll(to))
	testenv.Must(f.t, os.CopyFS(to, os.DirFS(from)))
}
