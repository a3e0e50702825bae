package subject

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/measure"
)

// In makes an empty directory for the files of a measurement, with a
// PostgreSQL that flushes to disk as in production, and measures statements if
// it can. Both are gone after do.
func In(ctx context.Context, logger *slog.Logger, do func(dir, database string) error) (err error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL may run as another user
		return err
	}
	server, err := postgres.Start(ctx, postgres.Config{Dir: filepath.Join(dir, "postgres"), Logger: logger, CountStatements: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	return do(dir, server.URL())
}

// Say reports progress.
func Say(format string, values ...any) { fmt.Fprintf(os.Stdout, format+"\n", values...) }

// A Weir is the measured installation, and a client of its API.
type Weir struct {
	*measure.Program
	*client.Client
	Env allinone.DevEnv
}

// maxConnections of the client, more than any benchmark opens.
const maxConnections = 512

// Run runs the program weir that is beside this one, until it has done
// something with it.
func Run(ctx context.Context, dir string, variables map[string]string, do func(*Weir) error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w := &Weir{}
	own := map[string]string{"WEIR_LISTEN": "127.0.0.1:0", "WEIR_DATA_DIR": filepath.Join(dir, "weir")}
	for name, value := range variables {
		own[name] = value
	}
	if w.Program, err = measure.Start(dir, filepath.Join(filepath.Dir(self), "weir"), "run", nil, own); err != nil {
		return fmt.Errorf("cannot start what is measured: %w", err)
	}
	if err := w.Await(ctx, w.ready(filepath.Join(dir, "weir", allinone.EnvFile))); err != nil {
		return fmt.Errorf("what is measured: %w", err)
	}
	err = do(w)
	w.Close()
	_, stopped := w.Stop()
	return errors.Join(err, stopped)
}

// ready reports whether the process serves at the address in its file, which
// may be an earlier run's, and has its demo organization.
func (w *Weir) ready(file string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		env, err := allinone.ReadDevEnv(file)
		if err != nil || env.ConsolePassword == "" {
			return false, err
		}
		w.Env = env
		if w.Client, err = client.New(env.BaseURL, env.CAFile, maxConnections); err != nil {
			return false, nil //nolint:nilerr // its files are not there yet
		}
		return w.Ready(ctx) == nil, nil
	}
}
