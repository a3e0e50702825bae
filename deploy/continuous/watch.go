package continuous

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// A mark is a position of the log at a time of the server's clock.
type mark struct {
	at  time.Time
	lsn LSN
}

// look asks the server how much of its log is here: once the slot has
// reached where the log ended at a look, all until then is.
func (b *backup) look(ctx context.Context) error {
	return errors.Join(b.ask(ctx), b.tidy())
}

func (b *backup) ask(ctx context.Context) error {
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
	return b.reached(now, here)
}

// reached notes how far the stretch is.
func (b *backup) reached(now mark, here slot) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stretch == "" || !here.Exists || here.Lost {
		return nil
	}
	if b.pending.at.IsZero() {
		b.pending = now
	}
	if here.Restart+headerBytes < b.pending.lsn {
		return nil
	}
	b.archived = Archived{System: b.facts.System, At: b.pending.at.UTC(), LSN: b.pending.lsn}
	b.pending = now
	b.failures.note("receive", false) // it ends only by a failure
	return write(filepath.Join(b.folder.stretch(b.stretch), archivedFile), b.archived, 0o600)
}

// receiving notes the stretch that is received.
func (b *backup) receiving(f facts, stretch string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if stretch != b.stretch {
		b.archived = Archived{}
		_ = read(filepath.Join(b.folder.stretch(stretch), archivedFile), &b.archived) // a new one has none
	}
	b.facts, b.stretch, b.pending = f, stretch, mark{}
}

// now returns what is received, and how far.
func (b *backup) now() (f facts, stretch string, archived Archived) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.facts, b.stretch, b.archived
}

// tidy compresses whole files of the log, and shows the status.
func (b *backup) tidy() error {
	f, stretch, archived := b.now()
	if stretch == "" {
		return b.show(archived)
	}
	w, err := openWAL(b.folder.stretch(stretch), f.Segment)
	return errors.Join(err, w.compress(b.server.account), b.show(archived))
}

// show writes the status and the metrics.
func (b *backup) show(archived Archived) error {
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
