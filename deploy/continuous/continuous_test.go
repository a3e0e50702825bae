package continuous_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/continuous"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// A world is a server with a table of numbers, and its backup.
type world struct {
	server *postgres.Server
	dir    string // of the backup
	conn   *pgx.Conn
	rows   int
}

func newWorld(t *testing.T) *world {
	server, err := postgrestest.StartDurable(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	w := &world{server: server, dir: filepath.Join(scratch(t), "backup")}
	w.connect(t)
	w.exec(t, `CREATE TABLE numbers (n int PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), filler text)`)
	return w
}

// scratch makes a directory that PostgreSQL's user can reach.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := testenv.Scratch("weir-test-backup-")
	testenv.Must(t, err)
	testenv.Must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (w *world) connect(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, func() (err error) {
		w.conn, err = pgx.Connect(t.Context(), w.server.AdminURL())
		return err
	})
	conn := w.conn
	t.Cleanup(func() { conn.Close(context.Background()) })
}

func (w *world) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := w.conn.Exec(t.Context(), statement, args...)
	testenv.Must(t, err)
}

// write commits rows one by one, and returns an instant after the last.
func (w *world) write(t *testing.T, rows int) (after time.Time) {
	t.Helper()
	for range rows {
		w.rows++
		w.exec(t, `INSERT INTO numbers (n, filler) VALUES ($1::int, repeat(md5($1::int::text), 100))`, w.rows)
	}
	testenv.Must(t, w.conn.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&after))
	return after
}

func (w *world) config() continuous.Config {
	return continuous.Config{
		To: w.dir, Database: httpapi.Secret(w.server.AdminURL()), Slot: "weir_backup", Interval: 100 * time.Millisecond,
		Schedule: continuous.Schedule{Every: time.Hour, Verify: time.Hour, Keep: 2},
	}
}

// runs backs up while do runs.
func (w *world) runs(t *testing.T, config continuous.Config, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := continuous.Run(ctx, config, slog.New(slog.NewTextHandler(t.Output(), nil)))
		if ctx.Err() == nil {
			t.Errorf("the backup ended: %v", err)
		}
		ended <- err
	}()
	do()
	cancel()
	testenv.Must(t, <-ended)
}

// status waits until the status is as wanted.
func (w *world) status(t *testing.T, wanted func(continuous.Status) bool) (s continuous.Status) {
	t.Helper()
	testenv.Eventually(t, func() (err error) {
		if s, err = continuous.ReadStatus(w.dir); err == nil && !wanted(s) {
			err = fmt.Errorf("the status is %+v", s)
		}
		return err
	})
	return s
}

// archives waits until all that is committed is in the backup.
func (w *world) archives(t *testing.T) {
	t.Helper()
	var now time.Time
	testenv.Must(t, w.conn.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&now))
	w.status(t, func(s continuous.Status) bool { return s.Archived.After(now) })
}

// recovers returns the numbers of a recovered server.
func (w *world) recovers(t *testing.T, until time.Time) []int {
	t.Helper()
	dir := scratch(t)
	config := continuous.RecoverConfig{From: w.dir, To: filepath.Join(dir, "postgres", "data"), Until: until}
	testenv.Must(t, os.MkdirAll(filepath.Dir(config.To), 0o755))
	testenv.Must(t, continuous.Recover(t.Context(), config, t.Output()))
	server, err := postgres.Start(t.Context(), postgres.Config{Dir: filepath.Dir(config.To), Throwaway: true, Durable: true, Logger: testenv.Logger(t)})
	testenv.Must(t, err)
	defer func() { testenv.Must(t, server.Stop(context.Background())) }()
	conn, err := pgx.Connect(t.Context(), server.AdminURL())
	testenv.Must(t, err)
	defer conn.Close(context.Background())
	found, err := conn.Query(t.Context(), `SELECT n FROM numbers ORDER BY n`)
	testenv.Must(t, err)
	numbers, err := pgx.CollectRows(found, pgx.RowTo[int])
	testenv.Must(t, err)
	return numbers
}

func (w *world) has(t *testing.T, numbers []int, want int) {
	t.Helper()
	if len(numbers) != want || want > 0 && (numbers[0] != 1 || numbers[want-1] != want) {
		t.Errorf("recovered %d rows (%v), want the first %d", len(numbers), ends(numbers), want)
	}
}

func ends(numbers []int) []int {
	if len(numbers) < 3 {
		return numbers
	}
	return []int{numbers[0], numbers[len(numbers)-1]}
}

// What was committed before an instant comes back, and nothing after it;
// without one, everything does.
func TestRecovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.write(t, 3)
	var middle time.Time
	w.runs(t, w.config(), func() {
		w.status(t, func(s continuous.Status) bool { return !s.Verified.IsZero() })
		middle = w.write(t, 200)
		w.write(t, 50)
		w.exec(t, `SELECT pg_switch_wal()`)
		w.write(t, 7)
		w.archives(t)
	})
	w.has(t, w.recovers(t, middle), 203)
	w.has(t, w.recovers(t, time.Time{}), 260)

	status, err := continuous.ReadStatus(w.dir)
	testenv.Must(t, err)
	w.has(t, w.recovers(t, status.Archived), 260) // nothing was committed after it
	w.refuses(t, before, "before the oldest base backup")
	w.refuses(t, time.Now().Add(time.Hour), "ends at")
}

func (w *world) refuses(t *testing.T, until time.Time, why string) {
	t.Helper()
	var out bytes.Buffer
	config := continuous.RecoverConfig{From: w.dir, To: filepath.Join(t.TempDir(), "data"), Until: until}
	if err := continuous.Recover(t.Context(), config, &out); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("until %s: %v, want %q", until, err, why)
	}
	if _, err := os.Stat(config.To); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left a directory: %v", err)
	}
}
