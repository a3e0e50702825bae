package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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
func (c *moduleChecker) databaseClock(ctx context.Context) {
	c.look(ctx, "clock", c.name, "Look at the server's log.", func(ctx context.Context) error {
		ahead, err := pg.ClockAhead(ctx, c.pool, c.Machine.Clock)
		if err != nil {
			return err
		}
		c.skew(c.name, ahead)
		return nil
	})
}

func (c *moduleChecker) skew(subject string, ahead time.Duration) {
	seen := fmt.Sprintf("this machine's clock is %s ahead of the database's", ahead.Round(time.Millisecond))
	switch by := ahead.Abs(); {
	case by >= failSkew:
		c.report.add(Fail, "clock", subject, seen, clockFix)
	case by >= warnSkew:
		c.report.add(Warn, "clock", subject, seen, clockFix)
	default:
		c.report.add(OK, "clock", subject, seen, "")
	}
}

// producers compares the newest record with this machine's clock, as
// brokers report no time: a future record comes from a machine whose
// clock is ahead.
func (c *brokerChecker) producers(newest time.Time) {
	const subject = "producers"
	ahead := newest.Sub(c.now())
	seen := fmt.Sprintf("the newest record is of %s", newest.Format(time.RFC3339))
	switch {
	case newest.IsZero():
		c.report.add(OK, "clock", subject, "there is no record to compare with", "")
	case ahead >= failSkew:
		c.report.add(Fail, "clock", subject, fmt.Sprintf("%s, %s in the future", seen, ahead.Round(time.Second)), clockFix)
	case ahead >= warnSkew:
		c.report.add(Warn, "clock", subject, fmt.Sprintf("%s, %s in the future", seen, ahead.Round(time.Second)), clockFix)
	default:
		c.report.add(OK, "clock", subject, seen, "")
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
func (c *hostChecker) mounted() (dirs []string) {
	data, err := c.Machine.Space(c.DataDir)
	for _, name := range []string{"kafka", "postgres"} {
		dir := filepath.Join(c.DataDir, name)
		if own, missing := c.Machine.Space(dir); err == nil && missing == nil && own.Device != data.Device {
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
func (c *hostChecker) space(dir string) {
	space, err := c.Machine.Space(dir)
	if err != nil {
		c.report.add(Fail, "disk", dir, err.Error(), "Make the directory, or name another one: its service keeps its data there.")
		return
	}
	free := 100 * space.Free / max(1, space.Total)
	seen := fmt.Sprintf("%d%% of %.1f GB are free", free, float64(space.Total)/1e9)
	fix := "Make room, or move the directory to a larger file system: a full one stops what writes to it."
	switch {
	case free < failFreeSpace:
		c.report.add(Fail, "disk", dir, seen, fix)
	case free < warnFreeSpace:
		c.report.add(Warn, "disk", dir, seen, fix)
	default:
		c.report.add(OK, "disk", dir, seen, "")
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
func (c *moduleChecker) limits(ctx context.Context) {
	found, ok := readRow[limits](ctx, c, "role", limitsQuery)
	if !ok {
		return
	}
	c.fewConns(found)
	c.passwordEnds(c.name, found)
	c.harmfulSettings(c.name, found)
}

func (c *moduleChecker) fewConns(found limits) {
	if needed := c.Replicas * c.connections(c.services, c.url); found.Conns >= 0 && found.Conns < needed {
		seen := fmt.Sprintf("%s may open %d connections; with --replicas=%d the service opens %d at most", found.Role, found.Conns, c.Replicas, needed)
		c.report.add(Fail, "role", c.name, seen, fmt.Sprintf("ALTER ROLE %q CONNECTION LIMIT -1.", found.Role))
	}
}

func (c *moduleChecker) passwordEnds(module string, found limits) {
	if found.Until != nil && found.Until.Before(c.now().Add(passwordNotice)) {
		c.report.add(Warn, "role", module, fmt.Sprintf("the password of %s ends at %s", found.Role, found.Until.UTC().Format(time.RFC3339)),
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

func (c *moduleChecker) harmfulSettings(module string, found limits) {
	for _, setting := range found.Set {
		for _, harm := range harms {
			if harm.setting.MatchString(setting) {
				c.report.add(harm.level, "role", module, setting+" for "+found.Role+" or its database: "+harm.seen,
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

// neededOn are settings of a server that are harmful when off.
var neededOn = map[string]harm{
	"fsync":              {Fail, "what was answered is lost, or the database damaged, where the machine fails"},
	"full_page_writes":   {Warn, "a page that was half written where the machine fails stays so, unless the file system writes each whole"},
	"synchronous_commit": {Fail, "what was answered is lost where the server fails"},
	"autovacuum":         {Fail, "dead rows stay, tables grow without end, and the server stops before its transaction ids wrap around"},
}

// offQuery leaves settings of a role or database to limits.
const offQuery = `SELECT name FROM pg_settings WHERE name = ANY($1) AND setting = 'off'
	AND source NOT IN ('global', 'database', 'user', 'database user') ORDER BY 1`

// serverSettings checks whether the server keeps its commits, and cleans up.
func (c *moduleChecker) serverSettings(ctx context.Context) {
	off, _ := readRows[struct{ Name string }](ctx, c, "database", offQuery, sorted(neededOn))
	for _, setting := range off {
		harm := neededOn[setting.Name]
		c.report.add(harm.level, "database", c.name, setting.Name+"=off for the server: "+harm.seen,
			"Take it from the server's command line and postgresql.conf, ALTER SYSTEM RESET "+setting.Name+", and reload.")
	}
}

// A replicationSlot makes the server keep write-ahead log for a standby
// or a backup.
type replicationSlot struct {
	Name    string
	Active  bool
	Lost    bool
	Bounded bool  // what the server keeps
	Kept    int64 // bytes of log
}

// maxAbandoned is how much log a slot without a reader may keep unnoticed, in bytes.
const maxAbandoned = 1 << 30

func (s replicationSlot) abandoned() bool { return !s.Active && s.Kept > maxAbandoned }

const slotsQuery = `SELECT slot_name, active, coalesce(wal_status = 'lost', false), current_setting('max_slot_wal_keep_size') <> '-1',
		coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, restart_lsn), 0)::bigint
	FROM pg_replication_slots ORDER BY 1`

// slots checks whether log is kept for readers that are gone, without a
// bound, or was not kept.
func (c *moduleChecker) slots(ctx context.Context) {
	slots, _ := readRows[replicationSlot](ctx, c, "database", slotsQuery)
	for _, slot := range slots {
		drop := "remove it: SELECT pg_drop_replication_slot('" + slot.Name + "')."
		switch {
		case slot.Lost:
			c.report.add(Fail, "database", c.name, "the server removed log that the replication slot "+slot.Name+" still needed",
				"A continuous backup begins again by itself once it runs; build a standby again, or "+drop)
		case slot.abandoned():
			c.report.add(Warn, "database", c.name,
				fmt.Sprintf("nobody reads the replication slot %s, for which the server keeps %d MiB of write-ahead log: the disk fills", slot.Name, slot.Kept>>20),
				"Start its standby or backup, or "+drop)
		case !slot.Bounded:
			c.report.add(Warn, "database", c.name, "if the reader of the replication slot "+slot.Name+" stays away, the server keeps log until its disk is full",
				"Set max_slot_wal_keep_size of the server, to half of what is free.")
		}
	}
}

// encrypted checks whether the connection to a server elsewhere is encrypted.
func (c *moduleChecker) encrypted(ctx context.Context) {
	host := c.pool.Config().ConnConfig.Host
	if strings.HasPrefix(host, "/") || c.isPrivate(host) {
		return
	}
	if tls, ok := readRow[struct{ On bool }](ctx, c, "database", `SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`); ok && !tls.On {
		c.report.add(Warn, "database", c.name, "the connection to "+host+" is not encrypted: anybody in between can read entries and secrets",
			"Give the server a certificate, and the address sslmode=verify-full.")
	}
}

// isPrivate reports whether nobody else is on the way to a host, such as this machine.
func (c *checker) isPrivate(host string) bool {
	address, err := netip.ParseAddr(host)
	return c.PrivateNetwork || host == "localhost" || err == nil && address.IsLoopback()
}

// files checks whether a process may open as many files as
// its connections need.
func (c *hostChecker) files() {
	const subject = "this shell"
	files, err := c.Machine.Files()
	if err != nil {
		c.report.add(Fail, "files", subject, err.Error(), "Look at the limit with ulimit -n.")
		return
	}
	wanted, err := c.Connections.Limits().Within(1 << 30)
	if err != nil {
		c.report.add(Fail, "files", subject, err.Error(), "Change WEIR_MAX_CONNECTIONS.")
		return
	}
	fits, err := c.Connections.Limits().Within(files)
	switch {
	case err != nil:
		c.report.add(Fail, "files", subject, err.Error(), "The service won't start: do as it says (systemd: LimitNOFILE=).")
	case fits.Total < wanted.Total:
		c.report.add(Warn, "files", subject, fmt.Sprintf("%d files may be open: a service holds %d connections instead of %d", files, fits.Total, wanted.Total),
			"Raise the limit of the services (ulimit -n, systemd: LimitNOFILE=).")
	default:
		c.report.add(OK, "files", subject, fmt.Sprintf("%d files may be open, for %d connections", files, fits.Total), "")
	}
}

// directories checks the named ones, and the data directory if there is one.
func (c *hostChecker) directories() {
	dirs := []string{}
	if _, err := os.Stat(c.DataDir); err == nil {
		dirs = append(append(dirs, c.DataDir), c.mounted()...)
	}
	for _, dir := range []string{c.StateDir, c.BackupDir} {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		c.space(dir)
	}
	c.backups()
}
