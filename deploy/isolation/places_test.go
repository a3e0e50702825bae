package isolation

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// startServer starts the test's own database server with a readable
// log. It also logs the parameters of failing statements, as an
// administrator may configure.
func startServer(t *testing.T) *postgres.Server {
	t.Helper()
	server, err := postgrestest.Start(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("the database server: %v", err)
		}
	})
	asAdmin(t, server, func(conn *pgx.Conn) {
		_, err := conn.Exec(t.Context(), "ALTER DATABASE "+postgres.Database+" SET log_parameter_max_length_on_error = -1")
		testenv.Must(t, err)
	})
	return server
}

func asAdmin(t *testing.T, server *postgres.Server, do func(conn *pgx.Conn)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.AdminURL())
	testenv.Must(t, err)
	defer func() { testenv.Must(t, conn.Close(t.Context())) }()
	do(conn)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	testenv.Must(t, err)
	return string(text)
}

// states are the files in which modules keep what they know of each other.
func (w *world) states(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob(filepath.Join(w.state, "*", "*"))
	testenv.Must(t, err)
	for _, file := range files {
		all["state "+filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file)] = read(t, file)
	}
	if len(all) < len(schemas) {
		t.Errorf("only %d files of state were looked through", len(all))
	}
	return all
}

// backup is the manifest of a backup made now. The backup itself
// is compressed tables.
func (w *world) backup(t *testing.T) map[string]string {
	t.Helper()
	t.Setenv(endpoint.SharedDatabase, w.database)
	config := backup.Config{To: t.TempDir(), Jobs: 1, Source: backup.Source{Brokers: w.brokers}}
	progress := &strings.Builder{}
	dir, err := backup.Make(t.Context(), config, progress)
	testenv.Must(t, err)
	return map[string]string{"a backup's manifest": read(t, filepath.Join(dir, backup.ManifestName)), "a backup's progress": progress.String()}
}

// processes returns what every user of the machine can read of this
// process, its children and the database server's: their command lines; and
// their environments, which only their own user can read. Only on Linux.
func processes(t *testing.T, server *postgres.Server) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pid := range append(family(os.Getpid()), servers(t, server)...) {
		for _, file := range []string{"cmdline", "environ"} {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file)); err == nil { // it may have ended meanwhile
				all[fmt.Sprintf("process %d %s", pid, file)] = string(bytes.ReplaceAll(text, []byte{0}, []byte{' '}))
			}
		}
	}
	return all
}

// family returns a process and its descendants.
func family(pid int) (pids []int) {
	pids = []int{pid}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		_, rest, named := strings.Cut(string(stat), ") ") // 4711 (postgres) S 4710 …
		fields := strings.Fields(rest)
		if err != nil || !named || len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		pids = append(pids, family(child)...)
	}
	return pids
}

// servers returns the processes of the database server.
func servers(t *testing.T, server *postgres.Server) (pids []int) {
	t.Helper()
	asAdmin(t, server, func(conn *pgx.Conn) {
		rows, err := conn.Query(t.Context(), "SELECT pid FROM pg_stat_activity")
		testenv.Must(t, err)
		pids, err = pgx.CollectRows(rows, pgx.RowTo[int])
		testenv.Must(t, err)
	})
	return pids
}

// plantFailure makes a statement with a secret fail.
func (w *world) plantFailure(t *testing.T, secret string) {
	t.Helper()
	if _, err := w.pool.Exec(t.Context(), "SELECT $1::text::int", secret); err == nil {
		t.Fatal("the statement did not fail")
	}
}

// plantProcess runs a program with a secret on its command line.
func plantProcess(t *testing.T, secret string) {
	t.Helper()
	planted := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read line", secret) // reads until its input is closed
	input, err := planted.StdinPipe()
	testenv.Must(t, err)
	testenv.Must(t, planted.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = planted.Wait()
	})
}
