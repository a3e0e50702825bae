package continuous

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// A slot is the server's replication slot.
type slot struct {
	Exists  bool
	Lost    bool // the server removed what it should have kept
	Restart LSN  // where it begins
}

func (s server) slot(ctx context.Context, conn *pgx.Conn) (found slot, err error) {
	var restart string
	err = conn.QueryRow(ctx, `SELECT coalesce(wal_status = 'lost', false) OR restart_lsn IS NULL, coalesce(restart_lsn, '0/0')::text
		FROM pg_replication_slots WHERE slot_name = $1`, s.config.Slot).Scan(&found.Lost, &restart)
	if errors.Is(err, pgx.ErrNoRows) {
		return found, nil
	}
	found.Exists = err == nil
	return found, errors.Join(err, found.Restart.UnmarshalText([]byte(restart)))
}

// A receiver receives the server's log.
type receiver struct{ *site }

// receive receives the log until ctx ends or it fails. It begins another
// stretch where the server lacks what follows the newest one.
func (b receiver) receive(ctx context.Context) error {
	f, err := b.server.facts(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(b.owns(f.System), b.server.disconnectKilled(ctx)); err != nil {
		return err
	}
	name, err := b.continues(ctx, f)
	if err != nil {
		return err
	}
	w, err := openWAL(b.folder.stretch(name), f.Segment)
	if err = errors.Join(err, w.removeTorn()); err != nil {
		return err
	}
	b.progress.begin(f, name, b.folder)
	return b.server.replicate(ctx, f.Major, "pg_receivewal", "--directory="+w.dir, "--slot="+b.Slot, "--synchronous", "--no-loop",
		"--status-interval=1")
}

// owns refuses the backup of another server.
func (b receiver) owns(system string) error {
	bases, err := b.folder.bases()
	for _, base := range bases {
		if base.System != system {
			return fmt.Errorf("%s has the backup of another server (system identifier %s, not %s): name another directory", b.To, base.System, system)
		}
	}
	return err
}

// continues returns the stretch to go on in.
func (b receiver) continues(ctx context.Context, f facts) (name string, err error) {
	names, err := b.folder.names("wal")
	if err != nil {
		return "", err
	}
	err = b.server.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		slot, err := b.server.slot(ctx, conn)
		if err != nil {
			return err
		}
		if slot.Exists && !slot.Lost && len(names) > 0 {
			name = names[len(names)-1]
			w, err := openWAL(b.folder.stretch(name), f.Segment)
			if err != nil || w.last == 0 || w.last+1 >= slot.Restart.segment(f.Segment) {
				return err
			}
		}
		return b.begin(ctx, conn, slot, &name)
	})
	return name, err
}

// begin makes the slot again, and a stretch.
func (b receiver) begin(ctx context.Context, conn *pgx.Conn, slot slot, name *string) error {
	if slot.Exists {
		b.logger.WarnContext(ctx, "the server does not have the log that follows the backup's: nothing can be recovered of the time until the next base backup",
			slog.String("slot", b.Slot), slog.Bool("lost", slot.Lost))
		if _, err := conn.Exec(ctx, `SELECT pg_drop_replication_slot($1)`, b.Slot); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, `SELECT pg_create_physical_replication_slot($1, true)`, b.Slot); err != nil {
		return fmt.Errorf("cannot make the replication slot %s: %w", b.Slot, err)
	}
	*name = time.Now().UTC().Format(stamp)
	dir := b.folder.stretch(*name)
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already", filepath.Base(dir)) // of this second
	} else if err != nil {
		return err
	}
	return b.server.account.Chown(dir)
}
