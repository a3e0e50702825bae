package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/lifecycle"
)

// Config configures a server.
type Config struct {
	Dir      string       // its data, password and log; created if missing
	Port     int          // TCP port on 127.0.0.1; 0 takes a free one
	Binaries string       // folder of the server binaries; "": find or fetch them
	Cache    string       // for fetched binaries; "": a folder of Dir
	Logger   *slog.Logger // required

	Metrics prometheus.Registerer // nil: none

	// Throwaway is for tests: nothing is flushed to disk, and when this
	// process ends in any way, the server is stopped and Dir removed. A
	// killed server may lose the last commits.
	Throwaway bool

	// Killable keeps commits when a Throwaway server is killed: the
	// operating system has them.
	Killable bool

	// Durable keeps a Throwaway server's commits as all other servers do.
	Durable bool

	// CountStatements makes the extension pg_stat_statements measure
	// each statement, if the server's binaries include it.
	CountStatements bool
}

// Errors of Start, each wrapped with a remedy; so is ErrNoBinaries.
var (
	ErrPortInUse = errors.New("port in use")
	ErrLocked    = errors.New("data directory in use")
	ErrDamaged   = errors.New("data directory damaged")
	ErrDiskFull  = errors.New("disk full")
)

func damaged(dir, why string) error {
	return fmt.Errorf("%w: %q: %s; restore the directory from a copy, or move it away to start with an empty database", ErrDamaged, dir, why)
}

type logger = *slog.Logger

// Role and Database are the server's: an ordinary role that owns one
// database. Row level security applies to it.
const (
	Role     = "weir"
	Database = "weir"
)

// A Server is a running server.
type Server struct {
	address
	processes

	cluster  *cluster
	settings map[string]string // bounded by what settings returns, and one more
	guard    *watchdog
	restarts prometheus.Counter
	endLog   func() // ends the rotation of its log
}

// Start creates a missing database, starts the server or takes over a
// running one, and returns when it answers.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	account, err := ServerAccount()
	if err != nil {
		return nil, err
	}
	home, err := openHome(cfg.Dir, account)
	if err != nil {
		return nil, err
	}
	cluster := &cluster{home: home, account: account, logger: cfg.Logger}
	s := &Server{processes: processes{cluster}, cluster: cluster, settings: settings(cfg)}
	s.restarts = NewRestarts(cfg.Metrics)
	if err := s.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, cfg Config) (err error) {
	if cfg.Throwaway {
		if s.guard, err = s.cluster.home.watch(); err != nil {
			return err
		}
	}
	kept, err := s.cluster.home.password()
	if err != nil {
		return err
	}
	s.password = cmp.Or(kept, rand.Text())
	existed, err := s.prepare(ctx, cfg)
	if err == nil && existed && kept == "" {
		err = s.renewPassword(ctx, cfg)
	}
	if err == nil {
		err = s.serve(ctx, cfg)
	}
	if err != nil {
		return err
	}
	err = s.ensureDatabase(ctx, s.cluster.home)
	if err == nil && kept == "" {
		err = s.cluster.home.keepPassword(s.password) // now that the server has it
	}
	if s.settings[preloaded] == statementCounter {
		err = errors.Join(err, s.countStatements(ctx))
	}
	if err != nil {
		return errors.Join(err, s.cluster.stop(ctx))
	}
	s.endLog = s.cluster.log().keep(maxLog, logInterval, cfg.Logger)
	return nil
}

// prepare finds the binaries and creates the data directory, unless it
// existed.
func (s *Server) prepare(ctx context.Context, cfg Config) (existed bool, err error) {
	major, err := s.cluster.home.major()
	if err != nil {
		return false, err
	}
	if err := s.findBinaries(cfg, major); err != nil {
		return false, err
	}
	if cfg.CountStatements && comeWithCounter(s.cluster.bin) {
		s.settings[preloaded] = statementCounter
	}
	if major != 0 {
		return true, nil
	}
	return false, s.cluster.initialize(ctx, s.password, cfg.Throwaway)
}

// findBinaries keeps fetched binaries beside the data unless a
// directory is given: the server's account can reach them.
func (s *Server) findBinaries(cfg Config, major int) error {
	cache := cmp.Or(cfg.Cache, filepath.Join(s.cluster.home.dir, "binaries"))
	bin, err := binaries(cfg, cache, major)
	if err != nil {
		return err
	}
	s.cluster.bin = bin
	if _, err := os.Stat(cache); err == nil {
		return s.cluster.account.ChownAll(cache)
	}
	return nil
}

// serve takes over a running server, or starts one.
func (s *Server) serve(ctx context.Context, cfg Config) error {
	port := s.cluster.runningPort()
	if port != 0 && cfg.Port != 0 && cfg.Port != port {
		if err := s.cluster.stop(ctx); err != nil {
			return err
		}
		port = 0
	}
	if port != 0 && s.takeOver(ctx, port) {
		return nil
	}
	return s.launch(ctx, cfg)
}

// takeOverTime limits how long a running server may take to answer or stop.
const takeOverTime = 30 * time.Second

// takeOver waits until a running server answers, and reports whether it
// does: it may be stopping.
func (s *Server) takeOver(ctx context.Context, port int) bool {
	if s.cluster.awaitRecovery(ctx) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, takeOverTime)
	defer cancel()
	s.port = port
	for ; s.cluster.runningPort() != 0 && ctx.Err() == nil; lifecycle.Pause(ctx, lookInterval) {
		conn, err := pgx.Connect(ctx, s.AdminURL())
		if err == nil {
			conn.Close(ctx)
			return true
		}
	}
	return false
}

// launchTries is how often a free port is chosen, as another program
// may take it first.
const launchTries = 5

func (s *Server) launch(ctx context.Context, cfg Config) (err error) {
	for range launchTries {
		if s.port = cfg.Port; s.port == 0 {
			if s.port, err = freePort(); err != nil {
				return err
			}
		}
		err = s.cluster.start(ctx, s.port, s.settings)
		if cfg.Port != 0 || !errors.Is(err, ErrPortInUse) {
			return err
		}
	}
	return err
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// settings returns those that differ from PostgreSQL's defaults, which
// are for a machine with 128 MB to spare.
func settings(cfg Config) map[string]string {
	s := map[string]string{
		"max_connections": "200",
		"shared_buffers":  "256MB",
		"max_wal_size":    "4GB", // else full load would cause checkpoints all the time
		"jit":             "off", // compiling costs more than the short queries of a service

		"max_slot_wal_keep_size": "8GB", // a backup that does not run must not fill the disk
	}
	if runtime.GOOS == "linux" { // not all systems can
		s["client_connection_check_interval"] = "2s" // a killed client's locks go, also where it waits for others
	}
	if cfg.Throwaway {
		s["max_connections"] = "500" // many packages test on one server
		s["max_wal_size"] = "1GB"    // it may be in memory
	}
	if cfg.Throwaway && !cfg.Durable {
		s["fsync"], s["full_page_writes"] = "off", "off"
	}
	if cfg.Throwaway && !cfg.Durable && !cfg.Killable {
		s["synchronous_commit"] = "off"
	}
	return s
}

// An address is where a server answers, and to whom.
type address struct {
	port     int
	password string
}

func (a address) url(role, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(role, a.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(a.port)), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// URL returns the address of Database for Role, with the password.
func (s *Server) URL() string { return s.url(Role, Database) }

// AdminURL returns the address of the database postgres for the
// superuser postgres: only to create databases and roles.
func (s *Server) AdminURL() string { return s.url("postgres", "postgres") }

// LogFile returns the path of the server's log, about 10 MiB at most;
// the former one is beside it, as .1.
func (s *Server) LogFile() string { return s.cluster.home.log() }

// Binaries returns the folder that the server was started from.
func (s *Server) Binaries() string { return s.cluster.bin }

// Stop disconnects all clients, flushes to disk and ends the server.
// With Throwaway it also removes the directory.
func (s *Server) Stop(ctx context.Context) error {
	s.endLog()
	return errors.Join(s.cluster.stop(ctx), s.close())
}

// close removes a throwaway server's directory, and releases the lock.
func (s *Server) close() error {
	var err error
	if s.guard != nil {
		err = s.guard.release()
	}
	return errors.Join(err, s.cluster.home.close())
}

const invalidPassword = "28P01" // as PostgreSQL calls it

// ensureDatabase creates the missing role and database; a crash may
// have separated the two.
func (a address) ensureDatabase(ctx context.Context, home *home) error {
	conn, err := pgx.Connect(ctx, a.url("postgres", "postgres"))
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == invalidPassword {
		return fmt.Errorf("%w: the password in %q is not the server's: remove the file, the next start sets another one",
			ErrDamaged, home.passwordFile())
	}
	if err != nil {
		return damaged(home.dir, fmt.Sprintf("the server does not let its owner in: %v", err))
	}
	defer conn.Close(ctx)
	// CREATE ROLE takes no parameters; a generated password has
	// only letters and digits.
	err = createMissing(ctx, conn, "SELECT FROM pg_roles WHERE rolname = $1", Role,
		fmt.Sprintf("CREATE ROLE %s LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD '%s'", Role, a.password))
	if err != nil {
		return err
	}
	return createMissing(ctx, conn, "SELECT FROM pg_database WHERE datname = $1", Database,
		fmt.Sprintf("CREATE DATABASE %s OWNER %s", Database, Role))
}

func createMissing(ctx context.Context, conn *pgx.Conn, query, name, create string) error {
	tag, err := conn.Exec(ctx, query, name)
	if err == nil && tag.RowsAffected() == 0 {
		_, err = conn.Exec(ctx, create)
	}
	if err != nil {
		return fmt.Errorf("cannot make %q in the local PostgreSQL: %w", name, err)
	}
	return nil
}

// ErrNotRunning means that no server runs in a directory.
var ErrNotRunning = errors.New("no database server runs there")

// Running returns the URL, with the password, of the server that
// another process runs in dir.
func Running(dir string) (string, error) { return running(dir, Role, Database) }

// RunningAdmin is Running for the superuser and its database.
func RunningAdmin(dir string) (string, error) { return running(dir, "postgres", "postgres") }

func running(dir, role, database string) (string, error) {
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	account, err := ServerAccount()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	place, err := reachablePlace(dir, account)
	if err != nil {
		return "", err
	}
	home := &home{dir: place}
	at := address{port: (&cluster{home: home, account: account}).runningPort()}
	if at.port == 0 {
		return "", fmt.Errorf("%w: %q", ErrNotRunning, dir)
	}
	if at.password, err = home.password(); err != nil {
		return "", err
	}
	if at.password == "" {
		return "", fmt.Errorf("%q has no password: the next start sets one", home.passwordFile())
	}
	return at.url(role, database), nil
}

// statementCounter is the extension that measures statements. It works
// only if the server has loaded it at its start.
const (
	statementCounter = "pg_stat_statements"
	preloaded        = "shared_preload_libraries"
)

// comeWithCounter reports whether server binaries include
// the extension's library.
func comeWithCounter(bin string) bool {
	for _, libraries := range []string{"lib", "lib/postgresql"} {
		if found, _ := filepath.Glob(filepath.Join(filepath.Dir(bin), libraries, statementCounter+".*")); len(found) > 0 {
			return true
		}
	}
	return false
}

// countStatements creates the extension, which is loaded, in Database.
func (a address) countStatements(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, a.url("postgres", Database))
	if err != nil {
		return fmt.Errorf("cannot have the local PostgreSQL count statements: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS "+statementCounter); err != nil {
		return fmt.Errorf("cannot have the local PostgreSQL count statements: %w", err)
	}
	return nil
}
