package continuous

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/lifecycle"
)

// bases are the base backups.
type bases struct{ *site }

// due reports whether it is time for a base backup: also where the
// stretch at work has none, as nothing of it could be recovered.
func (b bases) due(bases []Base, stretch string) bool {
	if stretch == "" {
		return false
	}
	if len(bases) == 0 {
		return true
	}
	newest := bases[len(bases)-1]
	return newest.Stretch != stretch || time.Since(newest.At) >= b.Every
}

// make makes a base backup. It has its name once it is whole, and the
// log that makes it consistent is here.
func (b bases) make(ctx context.Context) error {
	begun := time.Now()
	f, stretch, _ := b.progress.now()
	name := begun.UTC().Format(stamp)
	dir := b.folder.base(name) + partial
	if err := b.server.account.Own(dir); err != nil {
		return err
	}
	base := Base{Name: name, System: f.System, Major: f.Major, Segment: f.Segment, Stretch: stretch}
	err := b.copyServer(ctx, dir, &base)
	if err == nil {
		err = os.Rename(dir, b.folder.base(name))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	b.logger.InfoContext(ctx, "made a base backup", slog.String("base", name), slog.Int64("bytes", base.Bytes), slog.Duration("took", time.Since(begun)))
	return atomicfile.SyncDir(b.folder.path("base"))
}

func (b bases) copyServer(ctx context.Context, dir string, base *Base) (err error) {
	err = b.server.replicate(ctx, base.Major, "pg_basebackup", "--pgdata="+dir, "--format=tar", "--compress=gzip:1", "--wal-method=none",
		"--checkpoint=fast", "--label=weir backup "+base.Name)
	if err != nil {
		return err
	}
	if err := base.readManifest(dir); err != nil {
		return err
	}
	err = b.server.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT now()`).Scan(&base.At)
	})
	if err != nil {
		return err
	}
	base.At = base.At.UTC()
	if err := b.awaitLog(ctx, *base); err != nil {
		return err
	}
	if base.Bytes, err = bytesIn(dir); err != nil {
		return err
	}
	return base.keep(dir)
}

// readManifest reads from where to where the log makes the copy consistent.
func (b *Base) readManifest(dir string) error {
	var manifest struct {
		Ranges []struct {
			Timeline uint32
			Start    LSN `json:"Start-LSN"`
			End      LSN `json:"End-LSN"`
		} `json:"WAL-Ranges"`
	}
	if err := read(filepath.Join(dir, manifestFile), &manifest); err != nil {
		return err
	}
	if len(manifest.Ranges) != 1 {
		return fmt.Errorf("the server changed its timeline %d times while it was copied", len(manifest.Ranges)-1)
	}
	r := manifest.Ranges[0]
	b.Timeline, b.Start, b.End = r.Timeline, r.Start, r.End
	return nil
}

// logTime is how long the log of a copy may take to come.
const logTime = 5 * time.Minute

// awaitLog waits until the log has what was committed during the copy.
func (b bases) awaitLog(ctx context.Context, base Base) error {
	ctx, cancel := context.WithTimeoutCause(ctx, logTime, errors.New("the log of the base backup has not come"))
	defer cancel()
	for ctx.Err() == nil {
		_, stretch, archived := b.progress.now()
		if stretch != base.Stretch {
			return errors.New("the log has a gap since the copy began")
		}
		if archived.LSN >= base.End && !archived.At.Before(base.At) {
			return nil
		}
		lifecycle.Pause(ctx, b.Interval)
	}
	return context.Cause(ctx)
}
