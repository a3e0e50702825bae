package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/port"
)

// dir returns a directory that the server's account can reach, unlike
// t.TempDir when the tests run as root.
func dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "weir-postgres-test-")
	testenv.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

// original is the directory of a server that has run before. TestMain
// creates and removes it.
var original string

func TestMain(m *testing.M) {
	if home := os.Getenv(envThrowaway); home != "" {
		serveThrowaway(home)
	}
	var err error
	if original, err = os.MkdirTemp("", "weir-postgres-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(original)
	os.Exit(code)
}

var runOriginal = sync.OnceValue(func() error {
	s, err := Start(context.Background(), Config{Dir: original, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return s.Stop(context.Background())
})

// made returns a copy of the original: initdb would take a second
// for each test.
func made(t *testing.T) string {
	t.Helper()
	testenv.Must(t, runOriginal())
	home := dir(t)
	if out, err := exec.Command("cp", "-a", original+"/.", home).CombinedOutput(); err != nil {
		t.Fatalf("cannot copy a server's directory: %v: %s", err, out)
	}
	return home
}

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	s, err := Start(t.Context(), cfg)
	testenv.Must(t, err)
	return s
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	testenv.Must(t, err)
	defer conn.Close(ctx)
	var v T
	if err := conn.QueryRow(ctx, sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// The role of services is not a superuser and may not bypass
// row level security.
func TestRoleIsOrdinary(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Dir: dir(t), Throwaway: true})
	defer s.Stop(t.Context())
	if query[bool](t, s.URL(), "SELECT rolsuper OR rolbypassrls OR rolcreaterole FROM pg_roles WHERE rolname = current_user") {
		t.Error("the role has powers that a service must not have")
	}
	if got := query[string](t, s.URL(), "SELECT current_user || '@' || current_database()"); got != "weir@weir" {
		t.Errorf("connected as %s", got)
	}
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func insert(t *testing.T, url, sql string) {
	t.Helper()
	query[int](t, url, sql+" RETURNING 1")
}

// Commits are there after an orderly stop, at the same address.
func TestRestart(t *testing.T) {
	t.Parallel()
	home := made(t)
	number, err := port.Free()
	testenv.Must(t, err)
	s := start(t, Config{Dir: home, Port: number})
	create(t, s.URL())
	insert(t, s.URL(), "INSERT INTO kept VALUES (1)")
	stop(t, s)
	s = start(t, Config{Dir: home, Port: number})
	defer stop(t, s)
	if n := query[int](t, s.URL(), "SELECT count(*) FROM kept"); n != 1 {
		t.Errorf("%d rows after a restart, want 1", n)
	}
	if fsync := query[string](t, s.URL(), "SELECT current_setting('fsync')"); fsync != "on" {
		t.Errorf("fsync is %s", fsync)
	}
}

func create(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	testenv.Must(t, err)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept (id int)"); err != nil {
		t.Fatal(err)
	}
}

// A server that outlived its caller is taken over.
func TestTakesOverAnOrphan(t *testing.T) {
	t.Parallel()
	home := made(t)
	orphan := start(t, Config{Dir: home})
	create(t, orphan.URL())
	orphan.cluster.home.close() // as the kernel does when the caller is killed
	s := start(t, Config{Dir: home})
	defer stop(t, s)
	if s.URL() != orphan.URL() {
		t.Errorf("got %s, want the orphan at %s", s.URL(), orphan.URL())
	}
	query[int](t, s.URL(), "SELECT count(*) FROM kept")
}

// A server killed together with its caller is started again: its pid
// file is ignored, even if another process has that id now.
func TestStalePid(t *testing.T) {
	t.Parallel()
	for name, pid := range map[string]int{"nobody's": 0, "another program's": os.Getpid()} {
		t.Run(name, func(t *testing.T) {
			home := made(t)
			killed := start(t, Config{Dir: home})
			kill(t, killed)
			if pid != 0 {
				reuse(t, killed, pid)
			}
			s := start(t, Config{Dir: home})
			defer stop(t, s)
			query[int](t, s.URL(), "SELECT 1")
		})
	}
}

// kill kills a server and waits until it is gone.
func kill(t *testing.T, s *Server) {
	t.Helper()
	file, _ := s.cluster.readPid()
	testenv.Must(t, syscall.Kill(file.pid, syscall.SIGKILL))
	s.cluster.home.close()
	for isPostgres(file.pid) { // the kernel needs a moment
		runtime.Gosched()
	}
}

// Running processes of a killed server delay the next start, and do
// not fail it.
func TestWaitsForOrphans(t *testing.T) {
	t.Parallel()
	home := made(t)
	killed := start(t, Config{Dir: home})
	orphan := query[int](t, killed.AdminURL(), "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
	signal(t, orphan, syscall.SIGSTOP)
	kill(t, killed)
	go func() {
		defer signal(t, orphan, syscall.SIGCONT)
		awaitLogged(t, killed, "pre-existing shared memory block")
	}()
	s := start(t, Config{Dir: home})
	defer stop(t, s)
	query[int](t, s.URL(), "SELECT 1")
}

func signal(t *testing.T, pid int, what syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, what); err != nil {
		t.Error(err)
	}
}

func awaitLogged(t *testing.T, s *Server, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, 10*time.Millisecond) {
		log, err := os.ReadFile(s.cluster.home.log())
		if err != nil {
			t.Error(err)
			return
		}
		if strings.Contains(string(log), text) {
			return
		}
	}
	t.Errorf("the log has no %q", text)
}

func reuse(t *testing.T, s *Server, pid int) {
	t.Helper()
	path := filepath.Join(s.cluster.home.data(), "postmaster.pid")
	raw, err := os.ReadFile(path)
	testenv.Must(t, err)
	_, rest, _ := strings.Cut(string(raw), "\n")
	testenv.Must(t, os.WriteFile(path, []byte(strconv.Itoa(pid)+"\n"+rest), 0o600))
}

// Every failure of a start is one line with a remedy.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	held := start(t, Config{Dir: made(t), Throwaway: true})
	defer stop(t, held)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for name, test := range map[string]struct {
		cfg  Config
		want error
		says string
	}{
		"the port is taken":        {Config{Dir: made(t), Port: port}, ErrPortInUse, strconv.Itoa(port)},
		"the directory is held":    {Config{Dir: held.cluster.home.dir}, ErrLocked, held.cluster.home.dir},
		"pg_control is cut off":    {Config{Dir: harmed(t, "global/pg_control")}, ErrDamaged, "server.log"},
		"PG_VERSION is gone":       {Config{Dir: harmed(t, "PG_VERSION")}, ErrDamaged, "PG_VERSION"},
		"the settings are garbled": {Config{Dir: harmed(t, "postgresql.conf")}, ErrDamaged, "server.log"},
	} {
		t.Run(name, func(t *testing.T) {
			test.cfg.Logger = slog.New(slog.DiscardHandler)
			s, err := Start(t.Context(), test.cfg)
			if err == nil {
				stop(t, s)
			}
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line of %q that names %s", err, test.want, test.says)
			}
		})
	}
}

// harmed returns the directory of a stopped server with one damaged file.
func harmed(t *testing.T, file string) string {
	t.Helper()
	home := made(t)
	path := filepath.Join(home, "data", file)
	spoil := func() error { return os.WriteFile(path, []byte("= spoilt"), 0o600) }
	if file == "PG_VERSION" {
		spoil = func() error { return os.Remove(path) }
	}
	testenv.Must(t, spoil())
	return home
}

// The password is in no file that others can read, and on no command line.
func TestPasswordStaysPrivate(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Dir: dir(t), Throwaway: true})
	defer stop(t, s)
	info, err := os.Stat(s.cluster.home.path("password"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("password file: %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(s.cluster.home.path("initial-password")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the password is still lying about")
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	testenv.Must(t, err)
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), s.password) {
			t.Errorf("the password is on a command line: %s", path)
		}
	}
}

// If the server's account can't reach a folder, as below /root, the
// data goes elsewhere, and the next start finds it there.
func TestUnreachableFolder(t *testing.T) {
	t.Parallel()
	closed := dir(t)
	home := filepath.Join(closed, "inside")
	testenv.Must(t, os.Chmod(closed, 0o700))
	s := start(t, Config{Dir: home})
	place := s.cluster.home.dir
	if place != home {
		t.Cleanup(func() { os.RemoveAll(place) })
	}
	create(t, s.URL())
	stop(t, s)
	s = start(t, Config{Dir: home})
	defer stop(t, s)
	query[int](t, s.URL(), "SELECT count(*) FROM kept")
}

// Statements are counted if the binaries include the extension.
func TestStatementsAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Dir: dir(t), Throwaway: true, CountStatements: true})
	defer stop(t, s)
	counted := query[bool](t, s.URL(), "SELECT to_regclass('pg_stat_statements') IS NOT NULL")
	if want := comeWithCounter(s.Binaries()); counted != want {
		t.Errorf("the binaries come with the extension: %t; statements are counted: %t", want, counted)
	}
	if counted && query[int](t, s.URL(), "SELECT count(*) FROM pg_stat_statements") == 0 {
		t.Error("no statement was counted")
	}
}

func TestLibrariesLieBesideBinaries(t *testing.T) {
	for _, libraries := range []string{"lib", "lib/postgresql"} {
		root := t.TempDir()
		bin, library := filepath.Join(root, "bin"), filepath.Join(root, libraries)
		if comeWithCounter(bin) {
			t.Errorf("%q has no libraries", root)
		}
		testenv.Must(t, os.MkdirAll(library, 0o755))
		testenv.Must(t, os.WriteFile(filepath.Join(library, statementCounter+".so"), nil, 0o600))
		if !comeWithCounter(bin) {
			t.Errorf("%s is not found in %q", statementCounter, library)
		}
	}
}
