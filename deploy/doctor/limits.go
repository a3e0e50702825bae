package doctor

import (
	"context"
	"fmt"
	"regexp"
	"time"
)

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
