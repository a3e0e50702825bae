package continuous

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
)

// A server is the one that is backed up.
type server struct {
	config  Config
	account postgres.Account
	name    string // of our connections, by which those of a killed process are known
}

func newServer(config Config) (s server, err error) {
	if config.To, err = filepath.Abs(config.To); err != nil {
		return s, err
	}
	account, err := postgres.ServerAccount()
	sum := sha256.Sum256([]byte(config.To))
	return server{config, account, "weir-backup-" + hex.EncodeToString(sum[:4])}, err
}

// connect opens a connection for queries.
func (s server) connect(ctx context.Context) (*pgx.Conn, error) {
	address, err := s.config.address()
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("cannot read WEIR_BACKUP_DATABASE_URL")
	}
	config.RuntimeParams["application_name"] = "weir-backup"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the database: %w", err)
	}
	return conn, nil
}

// connectTime is how long a connection and a query may take.
const connectTime = 30 * time.Second

// with runs do on a connection.
func (s server) with(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(ctx, conn)
}

// facts are a server's.
type facts struct {
	System      string
	Major       int
	Segment     uint64
	Tablespaces int
}

func (s server) facts(ctx context.Context) (f facts, err error) {
	err = s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT (SELECT system_identifier::text FROM pg_control_system()), current_setting('server_version_num')::int / 10000,
			(SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size'),
			(SELECT count(*) FROM pg_tablespace WHERE spcname NOT LIKE 'pg\_%')`).Scan(&f.System, &f.Major, &f.Segment, &f.Tablespaces)
	})
	if err == nil && f.Tablespaces > 0 {
		err = errors.New("the server has tablespaces of its own, which this backup can't copy: use pgBackRest or Barman for it")
	}
	return f, err
}

// disconnectKilled ends connections that a killed process has left: its
// children live on.
func (s server) disconnectKilled(ctx context.Context) error {
	return s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, s.name)
		return err
	})
}

// stopTime is how long one of PostgreSQL's programs may take to stop.
const stopTime = 10 * time.Second

// program prepares one of PostgreSQL's programs, of the server's version.
func (s server) program(ctx context.Context, major int, name string, args ...string) (*exec.Cmd, error) {
	bin, err := binaries(s.config.PostgresBin, major)
	if err != nil {
		return nil, err
	}
	cmd := s.account.Command(ctx, s.config.To, filepath.Join(bin, name), args...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGINT) }, stopTime
	return cmd, nil
}

// binaries returns the folder of the server's programs.
func binaries(given string, major int) (string, error) {
	if _, err := exec.LookPath("gzip"); err != nil {
		return "", fmt.Errorf("a restore unpacks the log by gzip: %w", err) // say so now, not when the server is lost
	}
	if given != "" {
		return given, nil
	}
	bin, err := postgres.BinariesOf(major)
	if err != nil {
		return "", fmt.Errorf("%w: install its server and client programs, or name their folder with --postgres-bin", err)
	}
	return bin, nil
}

// replicate runs a program that reads from the server.
func (s server) replicate(ctx context.Context, major int, name string, args ...string) error {
	address, err := s.config.address()
	if err != nil {
		return err
	}
	dsn, env, err := login(address, s.name)
	if err != nil {
		return err
	}
	cmd, err := s.program(ctx, major, name, append(args, "--no-password", "--dbname="+dsn)...)
	if err != nil {
		return err
	}
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "PG") { // libpq's own, such as PGSSLROOTCERT
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	return run(cmd)
}

// run runs a program, and returns the last that it said where it fails.
func run(cmd *exec.Cmd) error {
	said := &tail{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, httpapi.Redact(strings.Join(strings.Fields(said.String()), " ")))
	}
	return nil
}

// A tail keeps the last of what is written to it.
type tail struct{ kept []byte }

const tailBytes = 1000

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-tailBytes):]
	return len(p), nil
}

func (t *tail) String() string { return string(t.kept) }
