package doctor

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/replica"
)

// oldestPostgres is the oldest tested version.
const oldestPostgres = 15

// A databaseChecker checks the databases of the modules.
type databaseChecker struct {
	checker

	services allinone.Modules
	broker   *brokerChecker
	users    map[string]string // of the modules
	load     servers
	held     []erasure.Deletion // what modules hold something of
}

// databases checks each module's database and its contents.
func (c *databaseChecker) databases(ctx context.Context) {
	c.load, c.users = servers{}, map[string]string{}
	for _, m := range modules {
		if url, err := endpoint.DatabaseURL(m.name, c.DataDir); err == nil {
			c.users[m.name] = userOf(url)
		}
	}
	for _, m := range modules {
		if !c.includes(m.name) {
			continue
		}
		if opened, ok := c.open(ctx, m); ok {
			c.check(ctx, opened)
			opened.pool.Close()
		}
	}
	c.connections(c.load)
	c.unknownBackup(c.load)
}

func (c *databaseChecker) check(ctx context.Context, m *moduleChecker) {
	m.server(ctx, c.load)
	m.serverSettings(ctx)
	m.slots(ctx)
	m.encrypted(ctx)
	m.replica(ctx)
	m.databaseClock(ctx)
	(&roleChecker{m}).role(ctx, c.users)
	m.limits(ctx)
	m.restored(ctx)
	if m.migrations(ctx) {
		m.contents(ctx)
		c.orphans(ctx, m)
	}
}

// contents checks what the module has written.
func (c *moduleChecker) contents(ctx context.Context) {
	queues, consumers := &queueChecker{c}, &consumerChecker{c}
	queues.parked(ctx)
	consumers.consumers(ctx)
	queues.deferred(ctx)
	consumers.topicsRead(ctx)
	queues.unpublished(ctx)
	switch c.name {
	case "ledger":
		c.books(ctx)
	case "ingest":
		c.history(ctx)
	}
}

// open connects for reading only.
func (c *databaseChecker) open(ctx context.Context, m module) (opened *moduleChecker, ok bool) {
	url, err := endpoint.DatabaseURL(m.name, c.DataDir)
	if err != nil {
		c.report.add(Fail, "database", m.name, err.Error(), fmt.Sprintf(
			"Set %s, or %s where each module has a database of its own; _FILE behind it names a file.", endpoint.SharedDatabase, endpoint.DatabaseOf(m.name)))
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, c.CheckTimeout)
	defer cancel()
	begun := c.now()
	pool, err := pg.OpenReaders(ctx, url.Reveal(), m.schema.Name, 1)
	if err == nil {
		if err = pool.Ping(ctx); err != nil {
			pool.Close()
		}
	}
	if err != nil {
		c.report.add(Fail, "database", m.name, err.Error(), pg.Remedy(err))
		return nil, false
	}
	config := pool.Config().ConnConfig
	took := c.now().Sub(begun).Milliseconds()
	c.report.add(OK, "database", m.name, fmt.Sprintf("%s:%d/%s answers in %d ms", config.Host, config.Port, config.Database, took), "")
	return &moduleChecker{c.checker, m, c.services, c.broker, url, pool}, true
}

// Servers are the loads of PostgreSQL servers, by address.
type servers map[string]*load

type load struct {
	most     int // connections for ordinary roles
	needed   int
	archiver archiver
}

// server checks the version, and notes the limit of connections.
func (c *moduleChecker) server(ctx context.Context, all servers) {
	var version string
	var number, most int
	var archiver archiver
	ok := c.look(ctx, "database", c.name, "Look at the server's log.", func(ctx context.Context) error {
		return c.pool.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('server_version_num')::int,
			current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
				- coalesce(current_setting('reserved_connections', true)::int, 0),
			last_archived_time, last_failed_time IS NOT NULL AND last_failed_time > coalesce(last_archived_time, '-infinity')
			FROM pg_stat_archiver`).Scan(&version, &number, &most, &archiver.Last, &archiver.Fails)
	})
	if !ok {
		return
	}
	if number/10000 < oldestPostgres {
		c.report.add(Fail, "database", c.name, "PostgreSQL "+version, fmt.Sprintf("Upgrade to PostgreSQL %d or later.", oldestPostgres))
	} else {
		c.report.add(OK, "database", c.name, "PostgreSQL "+version, "")
	}
	config := c.pool.Config().ConnConfig
	address := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	if all[address] == nil {
		all[address] = &load{most: most, archiver: archiver}
	}
	all[address].needed += c.Replicas * c.connections(c.services, c.url)
}

// connections compares the servers' limits with what all processes
// open at most.
func (c *databaseChecker) connections(all servers) {
	for _, address := range sorted(all) {
		l := all[address]
		seen := fmt.Sprintf("%d connections are for ordinary roles; with --replicas=%d services open %d at most", l.most, c.Replicas, l.needed)
		fix := "Raise PostgreSQL's max_connections, or lower the pools (pool_max_conns=… in the address)."
		switch {
		case l.needed > l.most:
			c.report.add(Fail, "connections", address, seen, fix)
		case l.needed*10 > l.most*9:
			c.report.add(Warn, "connections", address, seen, fix)
		default:
			c.report.add(OK, "connections", address, seen, "")
		}
	}
}

// migrations reports whether the schema is up to date.
func (c *moduleChecker) migrations(ctx context.Context) (current bool) {
	var missing, unknown []string
	ok := c.look(ctx, "migrations", c.name, "Look at the role's rights.", func(ctx context.Context) (err error) {
		missing, unknown, err = pg.Migrated(ctx, c.pool, c.schema.Migrations...)
		return err
	})
	switch {
	case !ok:
		return false
	case len(missing) > 0:
		c.report.add(Fail, "migrations", c.name, fmt.Sprintf("%d are missing: %s", len(missing), firstFew(missing)),
			"weir migrate applies them, or the service of this version where its role owns the schema: its log says what keeps it from that.")
		return false
	case len(unknown) > 0:
		c.report.add(Warn, "migrations", c.name, fmt.Sprintf("%d are of another version: %s", len(unknown), firstFew(unknown)),
			"Use the weir of the version that the services have.")
	default:
		c.report.add(OK, "migrations", c.name, "all are applied", "")
		c.objects(ctx)
	}
	return true
}

// firstFew returns the first of many.
func firstFew(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// An object is a part of a schema whose loss stays unnoticed: without
// it reads are slow, or forbidden rows are accepted.
type object struct {
	Kind       string `json:"kind"` // index, constraint, trigger or policy
	Table      string `json:"table"`
	Name       string `json:"name"`
	Definition string `json:"definition"` // its CREATE statement
}

func (o object) is(other object) bool {
	return o.Kind == other.Kind && o.Table == other.Table && o.Name == other.Name
}

// level returns the level of its absence.
func (o object) level() Level {
	if strings.HasPrefix(o.Definition, "CREATE INDEX") {
		return Warn
	}
	return Fail
}

//go:embed objects/*.jsonl
var objectFiles embed.FS

// objectsOf returns the objects after all migrations of a module.
func objectsOf(module string) (objects []object, err error) {
	text, err := objectFiles.ReadFile("objects/" + module + ".jsonl")
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var o object
		if err := json.Unmarshal(line, &o); err != nil {
			return nil, fmt.Errorf("cannot read an object of %s: %w", module, err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// objectsQuery is for a schema. It omits invalid indexes, unvalidated
// constraints and disabled triggers, and all objects of partitions:
// theirs can't be lost without their table's.
const objectsQuery = `WITH tables AS (SELECT oid, relname::text AS name, oid::regclass::text AS path FROM pg_class
		WHERE relnamespace = to_regnamespace(quote_ident($1)) AND relkind IN ('r', 'p') AND NOT relispartition),
	constraints AS (SELECT c.*, t.name, t.path FROM pg_constraint c JOIN tables t ON conrelid = t.oid
		WHERE contype IN ('c', 'f', 'p', 'u', 'x') AND conparentid = 0 AND convalidated)
	SELECT 'index', t.name, c.relname::text, replace(pg_get_indexdef(c.oid), ' ON ONLY ', ' ON ')
		FROM pg_index JOIN tables t ON indrelid = t.oid JOIN pg_class c ON indexrelid = c.oid
		WHERE indisvalid AND c.oid NOT IN (SELECT conindid FROM constraints)
	UNION ALL SELECT 'constraint', name, conname::text, format('ALTER TABLE %s ADD CONSTRAINT %I %s', path, conname, pg_get_constraintdef(oid)) FROM constraints
	UNION ALL SELECT 'trigger', t.name, tgname::text, pg_get_triggerdef(g.oid) FROM pg_trigger g JOIN tables t ON tgrelid = t.oid
		WHERE NOT tgisinternal AND tgenabled <> 'D'
	UNION ALL SELECT 'policy', t.name, polname::text, format('CREATE POLICY %I ON %s AS %s FOR %s USING (%s)', polname, path,
			CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
			CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
			pg_get_expr(polqual, polrelid)) || coalesce(' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')', '')
		FROM pg_policy JOIN tables t ON polrelid = t.oid`

// objects checks whether the schema still has all objects of its migrations.
func (c *moduleChecker) objects(ctx context.Context) {
	found, ok := readRows[object](ctx, c, "schema", objectsQuery, c.schema.Name)
	wanted, err := objectsOf(c.name)
	if !ok || err != nil {
		return
	}
	whole := true
	for _, want := range wanted {
		if slices.ContainsFunc(found, want.is) {
			continue
		}
		whole = false
		c.report.add(want.level(), "schema", c.name, fmt.Sprintf("the %s %s of %s is missing, or not in force", want.Kind, want.Name, want.Table),
			"As the role that owns the schema, within it: "+want.Definition+". What is there in its place, drop first.")
	}
	if whole {
		c.report.add(OK, "schema", c.name, fmt.Sprintf("all %d indexes, constraints, triggers and policies are in force", len(wanted)), "")
	}
}

// replica checks whether a module's read replica answers and has caught up.
func (c *moduleChecker) replica(ctx context.Context) {
	url, err := endpoint.ReplicaURL(c.name)
	if err == nil && url == "" {
		return
	}
	if err == nil {
		err = c.checkReplica(ctx, replica.Config{DatabaseURL: url, Wait: c.CheckTimeout})
	}
	if err == nil {
		c.report.add(OK, "replica", c.name, "it has what the database has", "")
		return
	}
	c.report.add(Warn, "replica", c.name, err.Error(), fmt.Sprintf("Let %s name a standby of the module's database, and look at the standby's log and, "+
		"on the database, at pg_stat_replication. The database answers until then.", endpoint.ReplicaOf(c.name)))
}

func (c *moduleChecker) checkReplica(ctx context.Context, config replica.Config) error {
	reader, err := replica.Open(ctx, config, replica.Options{
		Schema: c.schema.Name, Conns: 1, Clock: c.now, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer reader.Close()
	return reader.Check(ctx, c.pool)
}

func userOf(address httpapi.Secret) string {
	parsed, err := url.Parse(address.Reveal())
	if err != nil {
		return ""
	}
	return parsed.User.Username()
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// rights are a role's rights.
type rights struct {
	Role                string
	Superuser, Bypasses bool
	Uses, Creates, Owns bool     // the schema
	Closed              []string // its tables and sequences that the role can't use as serving needs
	Beyond              []string // its tables and sequences with which the role may do more
	Open                []string // its tables that show every tenant's rows
	Foreign             []string // schemas of other modules that the role may use
}

// rightsQuery takes a schema, all modules' schemas, and tables and
// sequences with the rights that serving needs.
const rightsQuery = `WITH relations AS (
		SELECT c.oid, relname::text AS name, relkind = 'S' AS sequence, string_to_array(coalesce(s.rights, ''), ', ') AS needed
		FROM pg_class c LEFT JOIN unnest($3::text[], $4::text[]) AS s (name, rights) ON s.name = relname
		WHERE relnamespace = to_regnamespace(quote_ident($1)) AND relkind IN ('r', 'p', 'S') AND NOT relispartition),
	held AS (
		SELECT oid, name, needed, one FROM relations, unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS one
			WHERE NOT sequence AND has_table_privilege(oid, one)
		UNION ALL SELECT oid, name, needed, one FROM relations, unnest('{USAGE,SELECT,UPDATE}'::text[]) AS one
			WHERE CASE WHEN sequence THEN has_sequence_privilege(oid, one) END
		UNION ALL SELECT r.oid, name, needed, one || ' (' || attname || ')'
			FROM relations r JOIN pg_attribute ON attrelid = r.oid AND attnum > 0 AND NOT attisdropped, unnest('{SELECT,INSERT,UPDATE,REFERENCES}'::text[]) AS one
			WHERE NOT sequence AND has_column_privilege(r.oid, attnum, one) AND NOT has_table_privilege(r.oid, one))
	SELECT r.rolname, r.rolsuper, r.rolbypassrls,
	coalesce(has_schema_privilege(n.oid, 'USAGE'), false),
	coalesce(has_schema_privilege(n.oid, 'CREATE'), false) OR has_database_privilege(current_database(), 'CREATE'),
	coalesce(pg_has_role(n.nspowner, 'USAGE'), false),
	ARRAY(SELECT name FROM relations WHERE EXISTS (SELECT FROM unnest(needed) AS wanted WHERE NOT EXISTS
		(SELECT FROM held WHERE held.oid = relations.oid AND held.one IN (wanted, split_part(wanted, ' ', 1)))) ORDER BY 1),
	ARRAY(SELECT DISTINCT name FROM held WHERE one <> ALL (needed) ORDER BY 1),
	ARRAY(SELECT relname::text FROM pg_class c WHERE relnamespace = n.oid AND relkind IN ('r', 'p') AND NOT relispartition
		AND NOT (relrowsecurity AND relforcerowsecurity)
		AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'organization' AND NOT attisdropped) ORDER BY 1),
	ARRAY(SELECT nspname::text FROM pg_namespace WHERE nspname = ANY($2) AND nspname <> $1 AND has_schema_privilege(oid, 'USAGE') ORDER BY 1)
	FROM pg_roles r LEFT JOIN pg_namespace n ON n.nspname = $1 WHERE r.rolname = current_user`

// A roleChecker checks the rights of a module's role.
type roleChecker struct{ *moduleChecker }

// role checks the rights of the module's role: with its own tables what serving
// needs, nothing with those of others, and never past row level security.
func (c *roleChecker) role(ctx context.Context, users map[string]string) {
	var schemas []string
	for _, m := range modules {
		schemas = append(schemas, m.schema.Name)
	}
	needed := c.schema.Rights()
	var serving []string
	for _, relation := range sorted(needed) {
		serving = append(serving, needed[relation])
	}
	found, ok := readRow[rights](ctx, c.moduleChecker, "role", rightsQuery, c.schema.Name, schemas, sorted(needed), serving)
	if !ok {
		return
	}
	before := len(c.report.Findings)
	c.bypasses(c.name, found)
	c.ownTables(found)
	c.beyondServing(found)
	c.foreignTables(c.name, found, users)
	if len(c.report.Findings) == before {
		c.report.add(OK, "role", c.name, fmt.Sprintf("%s %s its schema and is bound by row level security", found.Role, found.relation()), "")
	}
}

func (c *roleChecker) bypasses(module string, found rights) {
	if !found.Superuser && !found.Bypasses {
		return
	}
	what := "BYPASSRLS"
	if found.Superuser {
		what = "SUPERUSER"
	}
	c.report.add(Fail, "role", module, fmt.Sprintf("%s has %s: it bypasses row level security, which keeps tenants apart", found.Role, what),
		fmt.Sprintf(`ALTER ROLE %q NO%s; the service refuses to start with it.`, found.Role, what))
}

func (c *roleChecker) ownTables(found rights) {
	if !found.Uses && !found.Creates {
		c.report.add(Fail, "role", c.name, fmt.Sprintf("%s has neither the schema %s nor the right to make it", found.Role, c.schema.Name),
			fmt.Sprintf("weir migrate makes it, as the role of %s; or ALTER DATABASE … OWNER TO %q.", endpoint.MigratingDatabaseOf(c.name), found.Role))
	}
	if len(found.Closed) > 0 {
		c.report.add(Fail, "role", c.name, fmt.Sprintf("%s can't use as serving needs %s", found.Role, strings.Join(found.Closed, ", ")),
			"weir migrate gives the role what serving needs.")
	}
	if len(found.Open) > 0 {
		c.report.add(Fail, "role", c.name, "row level security is not forced on "+strings.Join(found.Open, ", "),
			fmt.Sprintf("ALTER TABLE %s.… ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY.", c.schema.Name))
	}
}

// relation returns the role's relation to its schema.
func (r rights) relation() string {
	if r.Owns {
		return "owns and serves"
	}
	return "serves, and doesn't own,"
}

// beyondServing checks for rights beyond serving, if another role
// migrates: with one role for both nothing can be revoked.
func (c *roleChecker) beyondServing(found rights) {
	if found.Owns && !endpoint.MigratesApart(c.name) {
		return
	}
	what := "owns its schema, though another role migrates it: it can drop tables and turn row level security off"
	switch {
	case found.Owns:
	case found.Uses && found.Creates:
		what = "may make things in its schema or database, though it need not"
	case len(found.Beyond) > 0:
		what = "may do more than serving needs with " + firstFew(found.Beyond)
	default:
		return
	}
	c.report.add(Fail, "role", c.name, found.Role+" "+what, fmt.Sprintf(`Take it away (REASSIGN OWNED BY %q TO the role of %s, REVOKE), then weir migrate.`,
		found.Role, endpoint.MigratingDatabaseOf(c.name)))
}

// foreignTables checks whether modules with separate roles are closed
// to each other.
func (c *roleChecker) foreignTables(module string, found rights, users map[string]string) {
	for _, other := range found.Foreign {
		if user := cmp.Or(users[other], found.Role); user != found.Role {
			c.report.add(Fail, "role", module, fmt.Sprintf("%s may look into the schema of %s", found.Role, other),
				fmt.Sprintf("REVOKE ALL ON SCHEMA %s FROM %q.", other, found.Role))
		}
	}
}
