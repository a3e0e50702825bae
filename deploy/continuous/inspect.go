package continuous

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A scratch is a server that recovers a copy, reached by nobody else: it
// listens on a Unix socket in a closed directory.
type scratch struct {
	socket string
	cmd    *exec.Cmd
	said   tail
	ended  chan error
}

// scratchSettings go before those of the copy. Nothing is flushed: the
// copy is removed anyway.
var scratchSettings = map[string]string{
	"config_file": "/dev/null", "listen_addresses": "", "shared_preload_libraries": "", "archive_mode": "off", "hot_standby": "off",
	"fsync": "off", "autovacuum": "off", "shared_buffers": "128MB", "logging_collector": "off", "log_destination": "stderr", "ssl": "off",
	"primary_conninfo": "", "log_min_messages": "warning",
}

func (r recovery) start(ctx context.Context) (s *scratch, err error) {
	s = &scratch{ended: make(chan error, 1)}
	if s.socket, err = os.MkdirTemp("", "weir-scratch-"); err != nil { // short: the name of a socket has 107 bytes at most
		return nil, err
	}
	hba := filepath.Join(s.socket, "hba")
	if err := errors.Join(os.WriteFile(hba, []byte("local all all trust\n"), 0o600), r.account.ChownAll(s.socket)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.socket))
	}
	settings := maps.Clone(scratchSettings)
	settings["unix_socket_directories"], settings["hba_file"] = s.socket, hba
	args := []string{"-D", r.data}
	for _, name := range sortedKeys(settings) {
		args = append(args, "-c", name+"="+settings[name])
	}
	s.cmd = r.account.Command(ctx, r.data, filepath.Join(r.bin, "postgres"), args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	s.cmd.Cancel, s.cmd.WaitDelay = func() error { return s.cmd.Process.Signal(syscall.SIGQUIT) }, stopTime
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.socket))
	}
	go func() { s.ended <- s.cmd.Wait() }()
	return s, nil
}

// stop ends the server at once.
func (s *scratch) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	<-s.ended                                 //nolint:errcheck // it fails by the signal
	return os.RemoveAll(s.socket)
}

// await waits until the server has recovered.
func (s *scratch) await(ctx context.Context, user, database string) (*pgx.Conn, error) {
	for ctx.Err() == nil {
		if conn, err := s.connect(ctx, user, database); err == nil {
			return conn, nil
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return nil, fmt.Errorf("it ended while it recovered: %s", s.why())
		default:
			lifecycle.Pause(ctx, time.Second/5)
		}
	}
	return nil, ctx.Err()
}

func (s *scratch) connect(ctx context.Context, user, database string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig("")
	if err != nil {
		return nil, err
	}
	config.Host, config.Port, config.User, config.Database, config.TLSConfig, config.Fallbacks, config.Password = s.socket, 5432, user, database, nil, nil, ""
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	return pgx.ConnectConfig(ctx, config)
}

// why returns the lines with which the server ended.
func (s *scratch) why() string {
	var lines []string
	for line := range strings.Lines(s.said.String()) {
		if strings.Contains(line, "accepting connections") || strings.Contains(line, "starting up") {
			continue // it was asked whether it had recovered
		}
		if strings.Contains(line, "FATAL") || strings.Contains(line, "PANIC") || strings.Contains(line, "ERROR") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return httpapi.Redact(strings.Join(lines, " "))
}

// inspect has a copy recover itself, and looks at what came back.
func (b verifier) inspect(ctx context.Context, r recovery, archived LSN) (found Verified, err error) {
	address, err := b.server.config.address()
	if err != nil {
		return found, err
	}
	source, err := pgx.ParseConfig(address)
	if err != nil {
		return found, errors.New("cannot read WEIR_BACKUP_DATABASE_URL")
	}
	s, err := r.start(ctx)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	conn, err := s.await(ctx, source.User, source.Database)
	if err != nil {
		return found, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if found, err = reachedBy(ctx, conn, archived); err != nil {
		return found, err
	}
	superuser, err := b.modules(ctx, conn, s)
	if err == nil && b.Amcheck {
		err = run(amcheck(ctx, r, s.socket, superuser))
	}
	return found, err
}

// headerBytes are those that a page of the log may begin with: a
// position is given with or without them.
const headerBytes = 64

// reachedBy checks that all log was applied. Without the check, a damaged
// record would look like the end of the log.
func reachedBy(ctx context.Context, conn *pgx.Conn, archived LSN) (found Verified, err error) {
	var reached string
	var at *time.Time
	if err := conn.QueryRow(ctx, `SELECT pg_last_wal_replay_lsn()::text, pg_last_xact_replay_timestamp()`).Scan(&reached, &at); err != nil {
		return found, err
	}
	if err := found.Reached.UnmarshalText([]byte(reached)); err != nil {
		return found, err
	}
	if at != nil {
		found.Commit = at.UTC()
	}
	if found.Reached+headerBytes < archived {
		err = fmt.Errorf("the log ended at %s, and should reach %s", found.Reached, archived)
	}
	return found, err
}

// modules looks for the tables of all modules, and reads the positions of
// their consumers.
func (b verifier) modules(ctx context.Context, conn *pgx.Conn, s *scratch) (superuser string, err error) {
	var databases []string
	err = conn.QueryRow(ctx, `SELECT (SELECT rolname FROM pg_roles WHERE rolsuper AND rolcanlogin ORDER BY oid LIMIT 1),
		ARRAY(SELECT datname::text FROM pg_database WHERE datallowconn AND NOT datistemplate)`).Scan(&superuser, &databases)
	if err != nil {
		return "", err
	}
	missing := map[string]bool{} // bounded by the modules
	for _, module := range b.Expect {
		missing[module] = true
	}
	for _, database := range databases {
		if err := readModules(ctx, s, superuser, database, missing); err != nil {
			return "", err
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("there are no tables of %s", strings.Join(sortedKeys(missing), ", "))
	}
	return superuser, nil
}

// readModules removes those that a database has from the missing.
func readModules(ctx context.Context, s *scratch, superuser, database string, missing map[string]bool) error {
	conn, err := s.connect(ctx, superuser, database)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, module := range sortedKeys(missing) {
		table := pgx.Identifier{endpoint.Schemas[module].Name, "bus_positions"}.Sanitize()
		var there bool
		if err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, table).Scan(&there); err != nil {
			return err
		}
		if !there {
			continue
		}
		var positions int
		if err := conn.QueryRow(ctx, `SELECT count(*) FROM `+table+` WHERE next >= 0`).Scan(&positions); err != nil {
			return fmt.Errorf("cannot read the positions of %s: %w", module, err)
		}
		delete(missing, module)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
