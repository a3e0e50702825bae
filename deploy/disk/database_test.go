//go:build disk

package disk

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// The main process of PostgreSQL is killed under load, alone, again and again:
// intake goes on, reads are 500 unavailable, /readyz names the database, and
// all comes back in the same process, with every entry once. On Apache Kafka as
// well, where it is given.
func TestDatabaseIsKilled(t *testing.T) {
	in := startAnywhere(t)
	end := in.load(2, 10, 100)
	in.awaitAcked(200)
	away := in.killDatabase()
	in.awaitReadyz("database")
	in.awaitAcked(200) // accepted while there is no database
	_, err := in.api.Balance(t.Context(), in.env.ServiceToken, in.env.Organization)
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusInternalServerError || problem.Code != "unavailable" || problem.RetryAfter == 0 {
		t.Errorf("a read without a database: %v; want 500 unavailable with Retry-After", err)
	}
	if _, refused := in.counts(); len(refused) > 0 {
		t.Errorf("%d posts were refused without a database, the first with %v", len(refused), refused[0])
	}
	away()
	in.awaitReadyz("")
	for range 3 {
		away := in.killDatabase()
		in.awaitReadyz("database")
		away()
		in.awaitAcked(100)
		in.awaitReadyz("")
	}
	end()
	in.verify()
	in.stop()
	in.restart()
	in.verify()
	in.stop()
}

// A database that can't be started again ends the process, by one line that
// says why, and with a status for whatever restarts it.
func TestDatabaseDoesNotStart(t *testing.T) {
	in := start(t, folder(t), nil)
	end := in.load(1, 10, 100)
	in.awaitAcked(10)
	settings := filepath.Join(in.database(), "postgresql.conf")
	original, err := os.ReadFile(settings)
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(settings, []byte("= spoilt\n"), 0o600))
	in.killDatabase()()
	testenv.Eventually(t, func() error {
		if !in.running.HasEnded() {
			return errors.New("it has not ended")
		}
		return nil
	})
	end()
	lines := strings.Split(strings.TrimSpace(in.output()), "\n")
	if err, last := in.running.Wait(), lines[len(lines)-1]; err == nil || !strings.Contains(last, "PostgreSQL keeps ending") || !strings.Contains(last, settings) {
		t.Errorf("it ended with %v and the line %q; want a status and the reason", err, last)
	}
	testenv.Must(t, os.WriteFile(settings, original, 0o600))
	in.restart()
	in.verify()
	in.stop()
}

// PostgreSQL ends on a disk without space: it is tried until there is some,
// however often, and goes on.
func TestDatabaseWithoutSpace(t *testing.T) {
	dir := mount(t, "size=300m")
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // else PostgreSQL's user would keep its data elsewhere
		t.Fatal(err)
	}
	in := start(t, dir, nil)
	testenv.Must(t, in.post(t.Context(), in.env.APIKey, 100, 100))
	in.verify()
	ballast := filepath.Join(dir, "ballast")
	fill(t, ballast)
	in.killDatabase()()
	testenv.Eventually(t, func() error {
		if strings.Count(in.running.Output.String(), "waits for space") < 3 {
			return errors.New("it does not wait for space")
		}
		return nil
	})
	in.awaitReadyz("database")
	testenv.Must(t, os.Remove(ballast))
	in.awaitReadyz("")
	testenv.Eventually(t, func() error { return in.post(t.Context(), in.env.APIKey, 10, 100) })
	in.verify()
	in.stop()
}

// fill writes a file until the disk has no space left.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	testenv.Must(t, err)
	defer file.Close()
	for block := make([]byte, 1<<20); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// database returns the data directory of PostgreSQL.
func (in *installation) database() string { return filepath.Join(in.dir, "postgres", "data") }

// killDatabase kills the main process of PostgreSQL. Until the returned
// function is called, one of its processes is stopped, and hinders a new
// one until it is killed as well.
func (in *installation) killDatabase() (release func()) {
	in.t.Helper()
	raw, err := os.ReadFile(filepath.Join(in.database(), "postmaster.pid"))
	testenv.Must(in.t, err)
	first, _, _ := strings.Cut(string(raw), "\n")
	postmaster, err := strconv.Atoi(first)
	testenv.Must(in.t, err)
	child := childOf(in.t, postmaster)
	send(in.t, child, syscall.SIGSTOP)
	send(in.t, postmaster, syscall.SIGKILL)
	return func() { _ = syscall.Kill(child, syscall.SIGCONT) } // it may be killed by now
}

func send(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	testenv.Must(t, syscall.Kill(pid, signal))
}

// childOf returns a process that works for a server.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", parent))
	testenv.Must(t, err)
	first, _, _ := strings.Cut(string(raw), " ")
	child, err := strconv.Atoi(first)
	if err != nil {
		t.Fatalf("process %d has no children: %q", parent, raw)
	}
	return child
}

// awaitReadyz waits until /readyz names a part, or is 200 if that is empty.
func (in *installation) awaitReadyz(part string) {
	in.t.Helper()
	testenv.Eventually(in.t, func() error {
		if in.running.HasEnded() {
			in.t.Fatalf("ended instead of serving:\n%s", in.output())
		}
		err := in.api.Ready(in.t.Context())
		switch {
		case part == "" && err != nil:
			return err
		case part != "" && (err == nil || !strings.Contains(err.Error(), part)):
			return fmt.Errorf("/readyz: %s; want one that names the %s", fmt.Sprint(err), part)
		}
		return nil
	})
}

// A start with entries that cannot be applied for now serves: posts are
// accepted, reads are as of what is applied, and /readyz and the log say
// that it catches up. It lasts as long as it lasts.
func TestStartWithABacklog(t *testing.T) {
	in := startAnywhere(t)
	testenv.Must(t, in.post(t.Context(), in.env.APIKey, 100, 100))
	in.verify()
	before := in.consumed()
	release := in.hinderLedger()
	testenv.Must(t, in.post(t.Context(), in.env.APIKey, 100, 100))
	in.running.Kill() // and PostgreSQL goes on, with the lock
	in.restart()      // which waits for the hints
	testenv.Eventually(t, func() error {
		if said, err := in.readyz(); err != nil || said.Status != "catching_up" || !strings.HasPrefix(said.Behind[0].Part, "ledger: ") {
			return fmt.Errorf("/readyz says %+v, %w", said, err)
		}
		if !strings.Contains(in.running.Output.String(), "catching up") {
			return errors.New("the log does not say that it catches up")
		}
		return nil
	})
	in.post200()
	if now := in.consumed(); now != before {
		t.Errorf("%d bytes are charged while the ledger can charge nothing; %d before", now, before)
	}
	release()
	testenv.Eventually(t, func() error {
		if said, err := in.readyz(); err != nil || said.Status != "ready" {
			return fmt.Errorf("/readyz says %+v, %w", said, err)
		}
		return nil
	})
	in.verify()
	in.stop()
}

func (in *installation) post200() {
	in.t.Helper()
	if err := in.post(in.t.Context(), in.env.APIKey, 10, 100); err != nil {
		in.t.Error(err)
	}
}

func (in *installation) consumed() int64 {
	in.t.Helper()
	balance, err := in.api.Balance(in.t.Context(), in.env.ServiceToken, in.env.Organization)
	testenv.Must(in.t, err)
	return balance.Consumed
}

// hinderLedger keeps the ledger from charging, by a lock that lets others
// read, until the returned function is called.
func (in *installation) hinderLedger() (release func()) {
	in.t.Helper()
	url, err := postgres.Running(in.dir + "/postgres")
	testenv.Must(in.t, err)
	conn, err := pgx.Connect(in.t.Context(), url)
	testenv.Must(in.t, err)
	if _, err := conn.Exec(in.t.Context(), `BEGIN; LOCK TABLE ledger.ranges IN EXCLUSIVE MODE`); err != nil {
		in.t.Fatal(err)
	}
	return func() {
		if err := conn.Close(in.t.Context()); err != nil {
			in.t.Error(err)
		}
	}
}

// readyz returns what /readyz says with 200.
func (in *installation) readyz() (said httpapi.ReadyAnswer, err error) {
	authorities, err := client.Authorities(in.env.CAFile)
	if err != nil {
		return said, err
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}}
	defer web.CloseIdleConnections()
	answer, err := web.Get(strings.TrimSuffix(in.env.BaseURL, "/v1") + "/readyz")
	if err != nil {
		return said, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return said, fmt.Errorf("%d %s: %w", answer.StatusCode, body, err)
	}
	return said, json.Unmarshal(body, &said)
}
