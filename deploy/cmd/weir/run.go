package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/loadgen"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/process"
)

type runCommand struct {
	allinone.Config

	Memory process.Memory `embed:""`

	CPUProfile string `help:"File for a CPU profile of the whole run." env:"WEIR_CPU_PROFILE" hidden:""`
}

// Run runs everything until ctx ends.
func (r *runCommand) Run(ctx context.Context, logger *slog.Logger) (err error) {
	r.Memory.Apply()
	stopProfile, err := process.Profile(r.CPUProfile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	if r.Modules, err = allinone.ModulesFromEnvironment(); err != nil {
		return err
	}
	if r.NoDemo { // otherwise nobody could sign in
		r.Modules.Tenants.Output = os.Stdout
	}
	begun := time.Now()
	fmt.Fprintln(os.Stdout, "Starting Weir …")
	app, err := allinone.New(ctx, r.Config, logger)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-app.Started():
			app.WriteHints(os.Stdout, time.Since(begun))
		case <-ctx.Done():
		}
	}()
	context.AfterFunc(ctx, func() { fmt.Fprintln(os.Stdout, "\nStopping: requests are answered, what was accepted is kept …") })
	if err := app.Run(ctx); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "Stopped.")
	return nil
}

type demoCommand struct {
	DataDir   string        `help:"Data directory of a running weir; its dev.env has the address and the credentials." env:"WEIR_DATA_DIR" default:".weir"`
	Duration  time.Duration `help:"How long to send." default:"1m"`
	PerMinute int           `help:"Posts a minute. The demo organization may make 1,800." default:"600"`
	Seed      uint64        `help:"The same seed makes the same traffic, but for the time." default:"1"`
}

// How often progress is shown: in place on a terminal, else by a line.
const (
	terminalRefresh = 200 * time.Millisecond
	lineRefresh     = 5 * time.Second
)

// Validate is called by kong.
func (d *demoCommand) Validate() error {
	if d.Duration <= 0 || d.PerMinute <= 0 {
		return errors.New("--duration and --per-minute must be more than 0")
	}
	return nil
}

// Run sends the traffic.
func (d *demoCommand) Run(ctx context.Context, _ *slog.Logger) error {
	env, err := allinone.ReadDevEnv(filepath.Join(d.DataDir, allinone.EnvFile))
	if err != nil {
		return err
	}
	if env.APIKey == "" {
		return fmt.Errorf("there is no demo organization in %q: start `weir run` (make run) first, in another terminal", d.DataDir)
	}
	api, err := client.New(env.BaseURL, env.CAFile, 16)
	if err != nil {
		return err
	}
	defer api.Close()
	config := loadgen.Config{
		APIKey: env.APIKey, ServiceToken: env.ServiceToken, Organization: env.Organization, Project: env.Project,
		Duration: d.Duration, PerMinute: d.PerMinute, Refresh: lineRefresh, Seed: d.Seed,
	}
	if config.Overwrite = terminal.Of(os.Stdout).Width > 0; config.Overwrite {
		config.Refresh = terminalRefresh
	}
	fmt.Fprintf(os.Stdout, "Sending to %s for %s, %d posts a minute; Ctrl-C ends it early.\n", env.BaseURL, d.Duration, d.PerMinute)
	return loadgen.Run(ctx, api, config, os.Stdout)
}
