package continuous_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/continuous"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// childVariable has the configuration of a test's own process.
const childVariable = "WEIR_TEST_BACKUP"

func TestMain(m *testing.M) {
	if given := os.Getenv(childVariable); given != "" {
		var config continuous.Config
		if err := json.Unmarshal([]byte(given), &config); err != nil {
			panic(err)
		}
		config.Database = httpapi.Secret(os.Getenv(childVariable + "_URL"))
		if err := continuous.Run(context.Background(), config, slog.New(slog.NewTextHandler(os.Stdout, nil))); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// child starts a process that backs up, to be killed.
func (w *world) child(t *testing.T, config continuous.Config) *exec.Cmd {
	t.Helper()
	database := config.Database.Reveal()
	config.Database = ""
	given, err := json.Marshal(config)
	testenv.Must(t, err)
	program, err := os.Executable()
	testenv.Must(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childVariable+"="+string(given), childVariable+"_URL="+database)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	testenv.Must(t, cmd.Start())
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	testenv.Must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
}

// The process and the server are killed at any time, while rows are
// written and base backups made: what was committed by each instant, and
// nothing else, comes back.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.config()
	config.Every, config.Keep = time.Second, 100
	child := w.child(t, config)
	w.status(t, func(s continuous.Status) bool { return !s.Verified.IsZero() })
	type instant struct {
		at   time.Time
		rows int
	}
	var instants []instant
	for round := range 6 {
		for until := time.Now().Add(time.Duration(500+rand.IntN(1500)) * time.Millisecond); time.Now().Before(until); {
			w.write(t, 10)
		}
		instants = append(instants, instant{w.write(t, 1), w.rows})
		if round%3 == 2 {
			testenv.Must(t, w.server.Kill())
			testenv.Must(t, w.server.Start())
			w.connect(t)
			continue
		}
		kill(t, child)
		w.write(t, 10)
		child = w.child(t, config)
	}
	w.write(t, 3)
	w.archives(t)
	kill(t, child)
	w.has(t, w.recovers(t, time.Time{}), w.rows)
	for _, i := range instants[len(instants)-3:] {
		w.has(t, w.recovers(t, i.at), i.rows)
	}
	killed := time.Now()
	w.runs(t, w.config(), func() { // what was unfinished is gone
		w.status(t, func(s continuous.Status) bool { return s.At.After(killed) && len(s.Failures) == 0 })
		if left, _ := filepath.Glob(filepath.Join(w.dir, "base", "*.partial")); len(left) > 0 {
			t.Errorf("a killed process has left %v", left)
		}
	})
}

// Damage is found by the restore that runs by itself, and does not count
// as verified; what was whole before still does.
func TestDamage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.config()
	config.Verify = time.Nanosecond // always
	w.runs(t, config, func() {
		w.status(t, func(s continuous.Status) bool { return !s.Verified.IsZero() })
		w.write(t, 50)
		for range 3 {
			w.exec(t, `SELECT pg_switch_wal()`)
			w.write(t, 1)
		}
		w.archives(t)
		testenv.Eventually(t, func() error {
			if len(w.files(t, "wal/*/*.gz")) < 4 {
				return errors.New("the log is not compressed yet")
			}
			return nil
		})
		base, files := w.files(t, "base/*/base.tar.gz")[0], w.files(t, "wal/*/*.gz")
		log := files[len(files)-1]
		for _, damage := range []struct {
			what, file string
			of         func([]byte) []byte
		}{
			{"changed bytes in the base backup", base, changed},
			{"a torn base backup", base, func(b []byte) []byte { return b[:len(b)/2] }},
			{"changed bytes in the log", log, changed},
			{"a file of the log without contents", log, func([]byte) []byte { return zipped(make([]byte, 16<<20)) }},
			{"a missing file of the log", log, nil},
		} {
			w.damages(t, damage.what, damage.file, damage.of)
		}
	})
}

// changed changes bytes in the middle: a single bit may be one that
// fills up a compressed block, and mean nothing.
func changed(b []byte) []byte {
	for i := range b[len(b)/2:][:64] {
		b[len(b)/2+i] ^= 0xFF
	}
	return b
}

func zipped(plain []byte) []byte {
	var to bytes.Buffer
	zipping := gzip.NewWriter(&to)
	_, _ = zipping.Write(plain) // never fails
	_ = zipping.Close()
	return to.Bytes()
}

// damages damages a file, waits until that is found, and undoes it.
func (w *world) damages(t *testing.T, what, file string, of func([]byte) []byte) {
	t.Helper()
	whole, err := os.ReadFile(file)
	testenv.Must(t, err)
	begun := time.Now()
	if of == nil {
		testenv.Must(t, os.Rename(file, file+".away"))
	} else {
		testenv.Must(t, os.WriteFile(file, of(slices.Clone(whole)), 0o600))
	}
	found := w.status(t, func(s continuous.Status) bool { return s.Failures["verify"].After(begun) })
	t.Logf("%s: found after %s", what, found.Failures["verify"].Sub(begun).Round(time.Millisecond))
	if of == nil {
		testenv.Must(t, os.Rename(file+".away", file))
	} else {
		testenv.Must(t, os.WriteFile(file, whole, 0o600))
	}
	begun = time.Now()
	w.status(t, func(s continuous.Status) bool { return s.Verified.After(begun) && s.Failures["verify"].IsZero() })
}

func (w *world) files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, pattern))
	testenv.Must(t, err)
	return found
}

// While the backup is away, the server keeps as much of its log as it may.
// Beyond that it is lost: a base backup is made at once, and nobody
// recovers to a time between.
func TestSlotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, 5)
	w.runs(t, w.config(), func() {
		w.status(t, func(s continuous.Status) bool { return !s.Verified.IsZero() })
		w.write(t, 5)
		w.archives(t)
	})
	between := w.write(t, 5)
	w.exec(t, `SELECT pg_drop_replication_slot('weir_backup')`)
	w.exec(t, `SELECT pg_create_physical_replication_slot('weir_backup')`) // it keeps nothing, as one whose log the server removed
	w.exec(t, `SELECT pg_switch_wal()`)
	w.write(t, 5)
	at := time.Now()
	w.runs(t, w.config(), func() {
		w.status(t, func(s continuous.Status) bool { return s.Verified.After(at) })
		w.write(t, 5)
		w.archives(t)
	})
	w.refuses(t, between, "ends at")
	w.has(t, w.recovers(t, time.Time{}), w.rows)
}

// One process holds a directory, which holds the backup of one server;
// surplus base backups and their log go, the last verified one stays.
func TestDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.config()
	config.Every, config.Keep = time.Millisecond, 2
	w.runs(t, config, func() {
		w.status(t, func(s continuous.Status) bool { return !s.Verified.IsZero() })
		if err := continuous.Run(t.Context(), config, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another process") {
			t.Errorf("a second process: %v", err)
		}
		first := w.files(t, "base/*/base.json")[0]
		log := len(w.files(t, "wal/*/*"))
		testenv.Eventually(t, func() error {
			if _, err := os.Stat(first); err == nil {
				return errors.New("the first base backup is there")
			}
			return nil
		})
		if kept, now := len(w.files(t, "base/*/base.json")), len(w.files(t, "wal/*/*")); kept > 4 || now > log+8 {
			t.Errorf("%d base backups and %d files of the log are kept, %d at first", kept, now, log)
		}
	})
	other := newWorld(t)
	other.dir = w.dir
	other.runs(t, other.config(), func() {
		other.status(t, func(s continuous.Status) bool { return !s.Failures["receive"].IsZero() })
	})
}
