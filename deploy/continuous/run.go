package continuous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirlog/weir/shared/filelock"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A site is a server and the folder of its backup.
type site struct {
	Config

	folder   Folder
	server   server
	logger   *slog.Logger
	metrics  Metrics
	failures failures
	progress progress
}

// A backup is one at work.
type backup struct {
	*site
	bases    bases
	verifier verifier
}

// lookInterval is how often the server is asked how far it is.
const lookInterval = 10 * time.Second

// Run backs the server up until ctx ends. What fails is tried again.
func Run(ctx context.Context, config Config, logger *slog.Logger) error {
	if err := config.check(); err != nil {
		return err
	}
	config.Interval = cmp.Or(config.Interval, lookInterval)
	server, err := newServer(config)
	if err != nil {
		return err
	}
	telemetry := config.Telemetry.Service("backup", logger)
	at := &site{
		Config: server.config, folder: Folder(server.config.To), server: server, logger: logger,
		metrics: NewMetrics(telemetry.Registerer), failures: failures{at: map[string]time.Time{}},
	}
	lock, err := at.open()
	if err != nil {
		return err
	}
	defer lock.Close()
	b := backup{at, bases{at}, verifier{at}}
	return lifecycle.Run(ctx, telemetry.Run, b.loop("receive", receiver{at}.receive), b.loop("look", watcher{at}.look), b.plan)
}

// open makes the directory, and removes what a killed process has left.
func (b *site) open() (*filelock.Lock, error) {
	account := b.server.account
	if err := errors.Join(os.MkdirAll(b.To, 0o755), account.Chown(b.To)); err != nil { //nolint:gosec // the doctor reads the status; what is in it is closed
		return nil, fmt.Errorf("cannot make the directory of the backup: %w", err)
	}
	if !account.CanWrite(b.To) {
		return nil, fmt.Errorf("the user of PostgreSQL's programs can't write to %s: open the folders above to it, or name another one", b.To)
	}
	lock, err := filelock.Try(b.folder.path(lockFile))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("another process backs up into %s: stop it, or name another directory", b.To)
	}
	if err != nil {
		return nil, err
	}
	err = errors.Join(account.Own(b.folder.path("base")), account.Own(b.folder.path("wal")), b.folder.removePartial())
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// loop runs a part again and again.
func (b backup) loop(part string, do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return lifecycle.Every(ctx, b.Interval, func(ctx context.Context) error { return b.try(ctx, part, do) }, func(context.Context, error) {})
	}
}

// try runs a part once, and notes whether it worked.
func (b backup) try(ctx context.Context, part string, do func(context.Context) error) error {
	err := do(ctx)
	if ctx.Err() != nil {
		return err
	}
	b.failures.note(part, err != nil)
	if err != nil {
		b.metrics.failed.WithLabelValues(part).Inc()
		b.logger.WarnContext(ctx, "the backup failed, and tries again", slog.String("part", part), slog.String("error", err.Error()))
	}
	return err
}

// plan makes base backups, restores them and removes old ones when each is due.
func (b backup) plan(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, b.Interval) {
		if !b.plansBase(ctx) || !b.plansVerify(ctx) {
			lifecycle.Pause(ctx, retryLooks*b.Interval)
		}
		_ = b.try(ctx, "remove", func(context.Context) error { return b.bases.remove() })
	}
	return nil
}

// plansBase makes a base backup if one is due, and reports whether that worked.
func (b backup) plansBase(ctx context.Context) bool {
	bases, err := b.folder.bases()
	if _, stretch, _ := b.progress.now(); err == nil && !b.bases.due(bases, stretch) {
		return true
	}
	return b.try(ctx, "base", func(ctx context.Context) error { return errors.Join(err, b.bases.make(ctx)) }) == nil
}

// plansVerify does so for the restore of the newest.
func (b backup) plansVerify(ctx context.Context) bool {
	bases, err := b.folder.bases()
	_, stretch, _ := b.progress.now()
	base, due := b.verifier.due(bases, stretch)
	if err == nil && !due {
		return true
	}
	return b.try(ctx, "verify", func(ctx context.Context) error { return errors.Join(err, b.verifier.verify(ctx, base)) }) == nil
}

// retryLooks is the pause after a failure that took much work, in looks
// at the server.
const retryLooks = 6
