package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
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
	stopProfile, err := profile(r.CPUProfile)
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
