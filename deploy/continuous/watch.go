package continuous

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// A watcher shows how far the backup is.
type watcher struct{ *site }

// look asks the server how much of its log is here: once the slot has
// reached where the log ended at a look, all until then is.
func (b watcher) look(ctx context.Context) error {
	return errors.Join(b.ask(ctx), b.tidy())
}

func (b watcher) ask(ctx context.Context) error {
	var now mark
	var here slot
	err := b.server.with(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		var end string
		if err := conn.QueryRow(ctx, `SELECT now(), pg_current_wal_insert_lsn()::text`).Scan(&now.at, &end); err != nil {
			return err
		}
		here, err = b.server.slot(ctx, conn)
		return errors.Join(err, now.lsn.UnmarshalText([]byte(end)))
	})
	if err != nil {
		return err
	}
	if here.Exists && !here.Lost {
		b.metrics.lag.Set(float64(max(0, int64(now.lsn-here.Restart)))) //nolint:gosec // positions are far below
	}
	stretch, archived, further := b.progress.reach(now, here)
	if !further {
		return nil
	}
	b.failures.note("receive", false) // it ends only by a failure
	return write(filepath.Join(b.folder.stretch(stretch), archivedFile), archived, 0o600)
}

// tidy compresses whole files of the log, and shows the status.
func (b watcher) tidy() error {
	f, stretch, archived := b.progress.now()
	if stretch == "" {
		return b.show(archived)
	}
	w, err := openWAL(b.folder.stretch(stretch), f.Segment)
	return errors.Join(err, w.compress(b.server.account), b.show(archived))
}

// show writes the status and the metrics.
func (b watcher) show(archived Archived) error {
	s := Status{At: time.Now().UTC(), Archived: archived.At, Bytes: map[string]int64{}, Failures: b.failures.open()}
	bases, err := b.folder.bases()
	if err != nil {
		return err
	}
	for _, base := range bases {
		s.Base = base.At
		if base.Verified != nil && base.Verified.At.After(s.Verified) {
			s.Verified = base.Verified.At
			b.metrics.verifySeconds.Set(base.Verified.Seconds)
		}
	}
	for _, part := range []string{"base", "wal"} {
		if s.Bytes[part], err = bytesIn(b.folder.path(part)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	b.metrics.show(s)
	return write(b.folder.path(statusFile), s, 0o644)
}
