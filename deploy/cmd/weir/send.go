package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/deploy/shipper"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/ui"
)

const sendHelp = `Sends lines of standard input, or of files, as log entries:

  myprogram | weir send
  weir send --level=warn old.log
  weir send --follow /var/log/shop/*.log

A line that is a JSON object becomes an entry by its members: message or msg, timestamp or time, level or severity, error; others become
metadata. Any other line is a message, received now.

With --follow it goes on when lines are added, when a file is replaced by the next of its name, and where it was when it was stopped: of
lines that were just being sent, some may come twice.`

type sendCommand struct {
	Files       []string `arg:"" optional:"" type:"path" help:"Files to send. Default: standard input."`
	Follow      bool     `short:"f" help:"Go on with what is added to the files, until interrupted."`
	Level       string   `help:"Level of lines that name none." enum:"debug,info,warn,error,fatal" default:"info"`
	Environment string   `help:"Environment of lines that name none. Default: that of the API key."`
	StateDir    string   `name:"state-dir" type:"path" help:"Where --follow keeps how far files were sent. Default: weir/send in the user's folder of caches."`

	reader
}

// Help is called by kong.
func (sendCommand) Help() string { return sendHelp }

// Validate is called by kong.
func (s *sendCommand) Validate() error {
	if s.Follow && len(s.Files) == 0 {
		return fmt.Errorf("--follow needs files: standard input is read to its end anyway")
	}
	return nil
}

// Run is called by kong.
func (s *sendCommand) Run(ctx context.Context) error {
	api, _, err := s.open()
	if err != nil {
		return err
	}
	defer api.Close()
	if s.StateDir, err = stateDir(s.StateDir); err != nil {
		return err
	}
	sending := &shipper.Shipper{
		API: api, APIKey: s.APIKey.Reveal(), Defaults: shipper.Defaults{Level: s.Level, Environment: s.Environment}, Now: time.Now,
		Say: func(text string) { fmt.Fprintln(os.Stderr, "weir:", terminal.Line(text)) },
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	lines, read := make(chan shipper.Line, 1000), make(chan error, 1)
	go func() {
		defer close(lines)
		read <- s.read(reading, lines)
	}()
	if err = sending.Run(ctx, lines); err == nil {
		err = <-read
	}
	fmt.Fprintf(os.Stderr, "Entries sent: %s\n", ui.Count(int64(sending.Sent)))
	switch {
	case ctx.Err() != nil && s.Follow:
		return nil
	case err == nil && sending.Rejected > 0:
		return fmt.Errorf("%d lines were rejected", sending.Rejected)
	}
	return err
}

// read reads all files, or standard input.
func (s *sendCommand) read(ctx context.Context, lines chan<- shipper.Line) error {
	if len(s.Files) == 0 {
		return shipper.Stream(ctx, os.Stdin, lines)
	}
	if !s.Follow {
		for _, path := range s.Files {
			if err := sendFile(ctx, path, lines); err != nil {
				return err
			}
		}
		return nil
	}
	followed, ctx := errgroup.WithContext(ctx)
	for _, path := range s.Files {
		followed.Go(func() error { return (&shipper.Follower{Path: path, StateDir: s.StateDir}).Follow(ctx, lines) })
	}
	return followed.Wait()
}

func sendFile(ctx context.Context, path string, lines chan<- shipper.Line) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return shipper.Stream(ctx, file, lines)
}

func stateDir(given string) (string, error) {
	if given == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("there is no folder of caches (%w): name one by --state-dir", err)
		}
		given = filepath.Join(caches, "weir", "send")
	}
	return given, os.MkdirAll(given, 0o700)
}
