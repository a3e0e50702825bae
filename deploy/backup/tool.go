package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
)

// tool finds one of PostgreSQL's programs: in a given folder, on PATH,
// or where distributions put them.
func tool(folder, name string) (string, error) {
	if folder != "" {
		return exec.LookPath(filepath.Join(folder, name))
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	if folder, err := postgres.Binaries(); err == nil {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s: install PostgreSQL's client programs, of the server's version or later, or name their folder with --postgres-bin", name)
}

// run runs one of PostgreSQL's programs on a database.
func run(ctx context.Context, program string, database httpapi.Secret, args ...string) (err error) {
	l, err := loginOf(database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.forget()) }()
	cmd := exec.CommandContext(ctx, program, append(args, "--no-password", "--dbname="+l.address)...)
	cmd.Env = append(os.Environ(), l.env...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, httpapi.Redact(strings.TrimSpace(said.String())))
	}
	return nil
}
