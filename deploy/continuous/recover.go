package continuous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/embedded/postgres"
)

// RecoverConfig says what to recover, and to where.
type RecoverConfig struct {
	From  string    `arg:"" help:"Directory of the continuous backup."`
	To    string    `help:"Data directory to make: empty, or not there." required:"" type:"path"`
	Until time.Time `help:"Recover what was committed until then, such as 2026-11-23T14:05:00Z. Without it: all there is." format:"2006-01-02T15:04:05.999999999Z07:00"`

	PostgresBin string `name:"postgres-bin" help:"Folder of PostgreSQL's programs, of the server's major version. Without it, where distributions put them." env:"WEIR_POSTGRES_BIN"`
}

// A recovery makes a data directory of a base backup.
type recovery struct {
	folder  Folder
	base    Base
	data    string
	bin     string
	account postgres.Account
}

// Recover makes a data directory whose server recovers itself at its
// first start, and says what it will have.
func Recover(ctx context.Context, config RecoverConfig, out io.Writer) error {
	from, err := filepath.Abs(config.From)
	if err != nil {
		return err
	}
	r := recovery{folder: Folder(from), data: config.To + partial}
	if r.account, err = postgres.ServerAccount(); err != nil {
		return err
	}
	if err := isFree(config.To); err != nil {
		return err
	}
	if err := r.choose(config.Until); err != nil {
		return err
	}
	if r.bin, err = binaries(config.PostgresBin, r.base.Major); err != nil {
		return err
	}
	target, err := r.target(ctx, config.Until)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "base      %s, %d bytes\n", r.base.At.Format(time.RFC3339), r.base.Bytes)
	if err := r.make(target, out); err != nil {
		return err
	}
	if err := os.Rename(r.data, config.To); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(config.To))
}

// isFree refuses a directory that has something in it.
func isFree(dir string) error {
	switch entries, err := os.ReadDir(dir); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty: stop its server, and move it away first", dir)
	}
	return os.Remove(dir)
}

// choose takes the newest base backup that was made until then.
func (r *recovery) choose(until time.Time) error {
	bases, err := r.folder.bases()
	if err != nil {
		return err
	}
	if len(bases) == 0 {
		return fmt.Errorf("%s has no base backup", r.folder)
	}
	for _, base := range bases {
		if until.IsZero() || !base.At.After(until) {
			r.base = base
		}
	}
	if r.base.Name == "" {
		return fmt.Errorf("%s is before the oldest base backup, of %s: nothing earlier can be recovered",
			until.Format(time.RFC3339), bases[0].At.Format(time.RFC3339))
	}
	var archived Archived
	if err := read(filepath.Join(r.folder.stretch(r.base.Stretch), archivedFile), &archived); err != nil {
		return fmt.Errorf("cannot tell how far the log reaches: %w", err)
	}
	if until.After(archived.At) {
		return fmt.Errorf("the log that follows the base backup of %s ends at %s, before %s: choose an earlier time, or leave it out for all there is",
			r.base.At.Format(time.RFC3339), archived.At.Format(time.RFC3339Nano), until.Format(time.RFC3339Nano))
	}
	return nil
}

// target returns the time at which PostgreSQL is to stop: none, if
// nothing was committed after it. PostgreSQL refuses a time that no later
// commit confirms.
func (r *recovery) target(ctx context.Context, until time.Time) (time.Time, error) {
	w, err := openWAL(r.folder.stretch(r.base.Stretch), r.base.Segment)
	if err == nil {
		err = w.follows(r.base.Start)
	}
	if err != nil || until.IsZero() {
		return until, err
	}
	last, err := r.lastCommit(ctx, w)
	if err != nil || !last.After(until) {
		return time.Time{}, err
	}
	return until, nil
}

// lastCommit returns when the log has its last commit; zero: it has none
// since the base backup.
func (r *recovery) lastCommit(ctx context.Context, w wal) (last time.Time, err error) {
	dir, err := os.MkdirTemp("", "weir-log-")
	if err != nil {
		return last, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	segments := []segment{}
	if w.next.number > 0 {
		segments = append(segments, w.next)
	}
	for n := w.last; n >= r.base.Start.segment(w.size) && n > 0; n-- {
		segments = append(segments, w.whole[n])
	}
	for _, s := range segments {
		path := filepath.Join(dir, s.name(w.size))
		if err := w.copyTo(path, s); err != nil {
			return last, err
		}
		// It fails at the end of the log: what it printed before counts.
		cmd := exec.CommandContext(ctx, filepath.Join(r.bin, "pg_waldump"), "--rmgr=Transaction", path)
		cmd.Env = []string{"TZ=UTC", "LC_ALL=C"}
		said, _ := cmd.Output()
		if last = newestCommit(string(said)); !last.IsZero() || ctx.Err() != nil {
			return last, ctx.Err()
		}
		if err := os.Remove(path); err != nil {
			return last, err
		}
	}
	return last, nil
}

// commit matches what pg_waldump prints of one.
var commit = regexp.MustCompile(`desc: COMMIT\S* (?:.*?)(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) UTC`)

func newestCommit(said string) (last time.Time) {
	for _, match := range commit.FindAllStringSubmatch(said, -1) {
		if at, err := time.Parse("2006-01-02 15:04:05.999999", match[1]); err == nil && at.After(last) {
			last = at
		}
	}
	return last
}

// make makes the directory.
func (r recovery) make(target time.Time, out io.Writer) error {
	if err := os.RemoveAll(r.data); err != nil {
		return err
	}
	err := r.extract()
	if err == nil {
		err = r.prepare(target, out)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(r.data))
	}
	return nil
}

// prepare has the server of an unpacked base backup recover itself until
// a time; zero: to the end of the log.
func (r recovery) prepare(target time.Time, out io.Writer) error {
	w, err := openWAL(r.folder.stretch(r.base.Stretch), r.base.Segment)
	if err != nil {
		return err
	}
	if err := w.follows(r.base.Start); err != nil {
		return err
	}
	command, err := restoreCommand(w.dir)
	if err != nil {
		return err
	}
	if w.next.number > 0 {
		if err := w.copyTo(filepath.Join(r.data, "pg_wal", w.next.name(w.size)), w.next); err != nil {
			return err
		}
	}
	settings := map[string]string{"restore_command": command, "recovery_target_action": "promote"}
	if !target.IsZero() {
		settings["recovery_target_time"] = target.UTC().Format("2006-01-02 15:04:05.999999-07")
		fmt.Fprintf(out, "until     %s\n", target.UTC().Format(time.RFC3339Nano))
	}
	if err := appendSettings(filepath.Join(r.data, "postgresql.auto.conf"), settings); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.data, "recovery.signal"), nil, 0o600); err != nil {
		return err
	}
	return r.account.ChownAll(r.data)
}

func appendSettings(path string, settings map[string]string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range sortedKeys(settings) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	_, err = file.WriteString(text.String())
	return errors.Join(err, file.Sync(), file.Close())
}
