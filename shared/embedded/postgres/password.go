package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirlog/weir/shared/atomicfile"
)

// passwordFile belongs to the caller; the server does not read it.
func (h *home) passwordFile() string { return h.path("password") }

// password reads the password; "" if it is lost, or there is none yet.
func (h *home) password() (string, error) {
	raw, err := os.ReadFile(h.passwordFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(raw)), err
}

func (h *home) keepPassword(password string) error {
	return atomicfile.Write(h.passwordFile(), password+"\n", 0o600)
}

// renewPassword sets another password where the former one is lost, such
// as in a power cut. Only a stopped server can be told without the
// former one; one that was killed recovers first.
func (s *Server) renewPassword(ctx context.Context, cfg Config) error {
	s.cluster.logger.Warn("the database's password is lost: setting another one", slog.String("file", s.cluster.home.passwordFile()))
	if s.cluster.runningPort() == 0 {
		if err := s.launch(ctx, cfg); err != nil {
			return err
		}
	}
	if err := s.cluster.stop(ctx); err != nil {
		return err
	}
	return s.cluster.setPassword(ctx, s.password)
}

// setPassword sets the password of both roles at once, in PostgreSQL's
// single-user mode. It passes through a pipe, and is not logged.
func (c *cluster) setPassword(ctx context.Context, password string) error {
	cmd := c.account.command(ctx, c.home.dir, filepath.Join(c.bin, "postgres"), "--single", "-D", c.home.data(),
		"-c", "log_statement=none", "-c", "log_min_duration_statement=-1", "-c", "log_min_error_statement=panic", "postgres")
	cmd.Stdin = strings.NewReader(fmt.Sprintf("DO $$ BEGIN ALTER ROLE postgres PASSWORD '%[2]s'; "+
		"IF EXISTS (SELECT FROM pg_roles WHERE rolname = '%[1]s') THEN ALTER ROLE %[1]s PASSWORD '%[2]s'; END IF; END $$\n", Role, password))
	out, err := cmd.CombinedOutput()
	if _, failed, found := strings.Cut(string(out), "ERROR:"); found && err == nil {
		line, _, _ := strings.Cut(failed, "\n") // those after it may have the password
		err = errors.New(strings.TrimSpace(line))
	}
	if err != nil {
		return fmt.Errorf("cannot set another password for the database in %q: %w", c.home.data(), err)
	}
	return nil
}
