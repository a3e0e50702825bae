package doctor

import "context"

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
