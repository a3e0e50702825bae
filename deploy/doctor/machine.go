package doctor

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/weirlog/weir/shared/pg"
)

// Largest differences of clocks: sessions and periods end by them, and
// prune stops from an hour on.
const (
	warnSkew = 2 * time.Second
	failSkew = time.Minute
)

const clockFix = "Let both machines follow the same time servers (chrony, systemd-timesyncd)."

// databaseClock compares this machine's clock with the database's.
func (e *examination) databaseClock(ctx context.Context, o opened) {
	e.look(ctx, "clock", o.name, "Look at the server's log.", func(ctx context.Context) error {
		ahead, err := pg.ClockAhead(ctx, o.pool, e.Machine.Clock)
		if err != nil {
			return err
		}
		e.skew(o.name, ahead)
		return nil
	})
}

func (e *examination) skew(subject string, ahead time.Duration) {
	seen := fmt.Sprintf("this machine's clock is %s ahead of the database's", ahead.Round(time.Millisecond))
	switch by := ahead.Abs(); {
	case by >= failSkew:
		e.report.add(Fail, "clock", subject, seen, clockFix)
	case by >= warnSkew:
		e.report.add(Warn, "clock", subject, seen, clockFix)
	default:
		e.report.add(OK, "clock", subject, seen, "")
	}
}

// producers compares the newest record with this machine's clock, as
// brokers report no time: a future record comes from a machine whose
// clock is ahead.
func (e *examination) producers(newest time.Time) {
	const subject = "producers"
	ahead := newest.Sub(e.now())
	seen := fmt.Sprintf("the newest record is of %s", newest.Format(time.RFC3339))
	switch {
	case newest.IsZero():
		e.report.add(OK, "clock", subject, "there is no record to compare with", "")
	case ahead >= failSkew:
		e.report.add(Fail, "clock", subject, fmt.Sprintf("%s, %s in the future", seen, ahead.Round(time.Second)), clockFix)
	case ahead >= warnSkew:
		e.report.add(Warn, "clock", subject, fmt.Sprintf("%s, %s in the future", seen, ahead.Round(time.Second)), clockFix)
	default:
		e.report.add(OK, "clock", subject, seen, "")
	}
}

// Space is the space of a file system, in bytes, and which one it is.
type Space struct{ Free, Total, Device uint64 }

func spaceOf(dir string) (Space, error) {
	var stat syscall.Statfs_t
	var folder syscall.Stat_t
	if err := cmp.Or(syscall.Statfs(dir, &stat), syscall.Stat(dir, &folder)); err != nil {
		return Space{}, err
	}
	size, device := uint64(stat.Bsize), uint64(folder.Dev) //nolint:gosec,unconvert // never negative; of another type elsewhere
	return Space{Free: stat.Bavail * size, Total: stat.Blocks * size, Device: device}, nil
}

// mounted returns the folders of the broker and the database that are
// on other file systems than the data directory.
func (e *examination) mounted() (dirs []string) {
	data, err := e.Machine.Space(e.DataDir)
	for _, name := range []string{"kafka", "postgres"} {
		dir := filepath.Join(e.DataDir, name)
		if own, missing := e.Machine.Space(dir); err == nil && missing == nil && own.Device != data.Device {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Shares of a file system that should be free, in percent.
const (
	warnFreeSpace = 15
	failFreeSpace = 5
)

// space checks the file system of a directory.
func (e *examination) space(dir string) {
	space, err := e.Machine.Space(dir)
	if err != nil {
		e.report.add(Fail, "disk", dir, err.Error(), "Make the directory, or name another one: its service keeps its data there.")
		return
	}
	free := 100 * space.Free / max(1, space.Total)
	seen := fmt.Sprintf("%d%% of %.1f GB are free", free, float64(space.Total)/1e9)
	fix := "Make room, or move the directory to a larger file system: a full one stops what writes to it."
	switch {
	case free < failFreeSpace:
		e.report.add(Fail, "disk", dir, seen, fix)
	case free < warnFreeSpace:
		e.report.add(Warn, "disk", dir, seen, fix)
	default:
		e.report.add(OK, "disk", dir, seen, "")
	}
}

// passwordNotice is how long before its expiry a password is reported.
const passwordNotice = 14 * 24 * time.Hour

// limits are a role's limits besides its rights.
type limits struct {
	Role  string
	Conns int        // at most; -1: as many as the server allows
	Until *time.Time // of its password; nil: forever
	Set   []string   // settings of the role or the database, name=value
}

const limitsQuery = `SELECT rolname, rolconnlimit, nullif(rolvaliduntil, 'infinity'),
	ARRAY(SELECT unnest(setconfig) FROM pg_db_role_setting LEFT JOIN pg_database d ON d.oid = setdatabase
		WHERE setrole IN (0, r.oid) AND (setdatabase = 0 OR datname = current_database()))
	FROM pg_roles r WHERE rolname = current_user`

// limits checks whether the service can work within its role's limits.
func (e *examination) limits(ctx context.Context, o opened) {
	found, ok := readRow[limits](ctx, e, o, "role", limitsQuery)
	if !ok {
		return
	}
	e.fewConns(o, found)
	e.passwordEnds(o.name, found)
	e.harmfulSettings(o.name, found)
}

func (e *examination) fewConns(o opened, found limits) {
	if needed := e.Replicas * o.connections(e.services, o.url); found.Conns >= 0 && found.Conns < needed {
		seen := fmt.Sprintf("%s may open %d connections; with --replicas=%d the service opens %d at most", found.Role, found.Conns, e.Replicas, needed)
		e.report.add(Fail, "role", o.name, seen, fmt.Sprintf("ALTER ROLE %q CONNECTION LIMIT -1.", found.Role))
	}
}

func (e *examination) passwordEnds(module string, found limits) {
	if found.Until != nil && found.Until.Before(e.now().Add(passwordNotice)) {
		e.report.add(Warn, "role", module, fmt.Sprintf("the password of %s ends at %s", found.Role, found.Until.UTC().Format(time.RFC3339)),
			fmt.Sprintf("ALTER ROLE %q PASSWORD '…' VALID UNTIL 'infinity', and the same password in the address.", found.Role))
	}
}

// harms are settings that a service doesn't set itself.
var harms = []struct {
	setting *regexp.Regexp
	level   Level
	seen    string
}{
	{regexp.MustCompile(`^default_transaction_read_only=(on|true|yes|1)$`), Fail, "the service can write nothing"},
	{regexp.MustCompile(`^synchronous_commit=(off|false|no|0)$`), Fail, "what was answered is lost where the server fails"},
	{regexp.MustCompile(`^(statement|transaction)_timeout=[^0]`), Warn, "what takes longer is cancelled, migrations too"},
}

func (e *examination) harmfulSettings(module string, found limits) {
	for _, setting := range found.Set {
		for _, harm := range harms {
			if harm.setting.MatchString(setting) {
				e.report.add(harm.level, "role", module, setting+" for "+found.Role+" or its database: "+harm.seen,
					fmt.Sprintf("ALTER ROLE %q RESET …, or ALTER DATABASE … RESET …; then restart the service.", found.Role))
			}
		}
	}
}

// A harm is the effect of a setting.
type harm struct {
	level Level
	seen  string
}

// undurable are settings of a server that are harmful when off.
var undurable = map[string]harm{
	"fsync":              {Fail, "what was answered is lost, or the database damaged, where the machine fails"},
	"full_page_writes":   {Warn, "a page that was half written where the machine fails stays so, unless the file system writes each whole"},
	"synchronous_commit": {Fail, "what was answered is lost where the server fails"},
}

// undurableQuery leaves settings of a role or database to limits.
const undurableQuery = `SELECT name FROM pg_settings WHERE name = ANY($1) AND setting = 'off'
	AND source NOT IN ('global', 'database', 'user', 'database user') ORDER BY 1`

// durability checks whether the server keeps its commits.
func (e *examination) durability(ctx context.Context, o opened) {
	off, _ := readRows[struct{ Name string }](ctx, e, o, "database", undurableQuery, sorted(undurable))
	for _, setting := range off {
		harm := undurable[setting.Name]
		e.report.add(harm.level, "database", o.name, setting.Name+"=off for the server: "+harm.seen,
			"Take it from the server's command line and postgresql.conf, ALTER SYSTEM RESET "+setting.Name+", and reload.")
	}
}

// files checks whether a process may open as many files as
// its connections need.
func (e *examination) files() {
	const subject = "this shell"
	files, err := e.Machine.Files()
	if err != nil {
		e.report.add(Fail, "files", subject, err.Error(), "Look at the limit with ulimit -n.")
		return
	}
	wanted, err := e.Connections.Limits().Within(1 << 30)
	if err != nil {
		e.report.add(Fail, "files", subject, err.Error(), "Change WEIR_MAX_CONNECTIONS.")
		return
	}
	fits, err := e.Connections.Limits().Within(files)
	switch {
	case err != nil:
		e.report.add(Fail, "files", subject, err.Error(), "The service won't start: do as it says (systemd: LimitNOFILE=).")
	case fits.Total < wanted.Total:
		e.report.add(Warn, "files", subject, fmt.Sprintf("%d files may be open: a service holds %d connections instead of %d", files, fits.Total, wanted.Total),
			"Raise the limit of the services (ulimit -n, systemd: LimitNOFILE=).")
	default:
		e.report.add(OK, "files", subject, fmt.Sprintf("%d files may be open, for %d connections", files, fits.Total), "")
	}
}
