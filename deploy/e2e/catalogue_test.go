package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/allinone"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	base "github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	tenants "github.com/weirlog/weir/tenants/app"
)

// The schemas are the modules' names.
var schemas = []string{"grouping", "ingest", "ledger", "tenants"}

// exceptions are tables without tenants' data, by name, and indexes and
// foreign keys without the organization, as "table.index", each with the
// reason. Unneeded ones must be removed.
var exceptions = map[string]string{
	"alert_clock":       "one row for the installation: up to when the log store has all that was accepted",
	"bus_positions":     "how far a consumer has applied a partition, which holds records of all tenants",
	"bus_read":          "how far a topic is read into memory, which holds records of all tenants",
	"bus_relays":        "who publishes an outbox, which holds facts of all tenants",
	"checked_ranges":    "how far a partition is checked, which holds records of all tenants",
	"cursor_key":        "one row for the installation: what signs the cursors of the module's lists",
	"cuts":              "where the hours of a partition end, which holds records of all tenants",
	"deleted_objects":   "names of objects that are to be deleted again",
	"moves":             "which batches of blocks, of all tenants, are on their way",
	"move_state":        "one row of the installation",
	"gap_runs":          "which stretches of a partition are summed up, which hold records of all tenants",
	"inbox":             "ids of batches that had their effect, drawn at random, without content",
	"inbox_idempotency": "digests of a project and its idempotency key, which two projects never share, without content",
	"migrations":        "the state of the schema",
	"checkpoints":       "one row for each day: positions and the hash of what all organizations had",
	"terms":             "one row for the installation: the rules that its settings had last",
	"ranges":            "sums over stretches of a partition, which holds records of all tenants",
	"replays":           "places of a partition that were applied late, without whose they are",
	"seals":             "a hash over the chains of all tenants for each hour",

	"checkpoint_rows.checkpoint_rows_hour_fkey": "a checkpoint is the installation's",

	"moving_blocks.moving_blocks_of_move":         "who moves blocks, as the system, does so for all organizations of a batch",
	"gap_charges.gap_charges_run":                 "anyone who sums up stretches, as the system, does so for all organizations in them",
	"bus_parked.bus_parked_replay":                "a consumer, which acts as the system, looks for what is to be applied again in its partitions",
	"alerts.alerts_due":                           "the loop that evaluates alerts looks, as the system, for those of all organizations that are due",
	"facts.facts_relay":                           "the relay, which acts as the system, reads all tenants' facts in the order of their commits",
	"events.events_in_commit_order":               "the same for the events; and a position stands for one event of the installation",
	"organizations.organizations_due":             "the loop that ends periods and grants looks, as the system, for all organizations that are due",
	"error_groups.error_groups_due":               "the loop that ends what is ignored looks, as the system, for all organizations' groups that are due",
	"error_alerts.error_alerts_due":               "the loop that sends what alerts tell looks, as the system, for those of all organizations that are due",
	"error_alert_counts.counts_by_age":            "by time alone, for removing what is old",
	"source_map_searches.source_map_searches_due": "the loop that maps samples anew looks, as the system, for all organizations' projects that are due",
	"links.links_hour":                            "by time alone, for removing what is old",
	"refusals.refusals_at":                        "a block range index by time, for removing what is old",
	"tallies.tallies_at":                          "a block range index by time, for removing what is old",
	"usage_hours.usage_hours_hour":                "by time alone, for removing what is old",
	"usage_days.usage_days_day":                   "by time alone, for removing what goes with a day of transfers",
	"transfers.transfers_booked":                  "a block range index by time, for reading all tenants' books; it finds blocks and no rows",
	"organizations.organizations_terms":           "the loop that decides changed terms looks, as the system, for all organizations that they concern",
	"refusal_days.refusal_days_age":               "by time alone, for removing what goes with a day of refusals",
	"refusal_days.refusal_days_unsealed":          "who seals an hour, as the system, takes what all organizations were refused",
	"checkpoint_rows.checkpoint_rows_hour":        "by time alone, for removing what goes with its checkpoint",
	"organizations.organizations_by_age":          "the operator's list of all organizations",
	"challenges.challenges_by_end":                "whatever has run out is swept away; challenges are the installation's, before it is known who signs in",
	"projects.projects_by_id":                     "the operator names a thing by its id alone, so no two organizations may share one",
	"api_keys.api_keys_by_id":                     "see projects_by_id",
	"service_tokens.service_tokens_by_id":         "see projects_by_id",
	"members.members_by_id":                       "see projects_by_id",
	"invitations.invitations_by_id":               "see projects_by_id",
	"sessions.sessions_by_id":                     "see projects_by_id",
	"deletions.deletions_by_id":                   "see projects_by_id",
	"deletions.deletions_unfinished":              "the loop that goes on with deletions looks, as the system, for those of all organizations that are due",
	"withdrawals.withdrawals_in_order":            "see facts_relay",
	"erasures.erasures_open":                      "the loop that erases what is deleted looks, as the system, for that of all organizations",
	"api_keys.api_keys_by_hash":                   "a leak report says only the key, not whose it is",
	"sign_in_failures.sign_in_failures_due":       "the loop that tells of failures looks, as the system, for those of all organizations that are due",
	"devices.devices_by_hash":                     "anyone who signs in has a cookie and says an address, not an organization",
	"members.members_by_email":                    "anyone who signs in says an address, not an organization",
	"members.members_by_identity":                 "an identity provider says who signs in, not an organization",
	"members.members_by_reset_hash":               "anyone who resets a password has a code, and says no organization",
	"invitations.invitations_by_code_hash":        "anyone who was invited has a code, and says no organization",
	"passkeys.passkeys_by_credential":             "anyone who signs in with a passkey says its credential alone",
	"group_days.group_days_by_day":                "the pruner, as the system, looks for the oldest days of all organizations",
}

// A table is a table's row in the catalogue.
type table struct {
	Schema, Name                                               string
	Parent                                                     string // of a partition
	Partitioned, Organization, NotNull, Leads, Secured, Forced bool
	Policies                                                   []string
	Indexes                                                    []string // those that do not begin with the organization
	Foreign                                                    []string // keys that may refer to another organization's row
}

// tablesQuery reads every table of the modules. The column, the key and the
// policies are the table's own, so a partition can't rely on its parent's.
const tablesQuery = `
	SELECT n.nspname, c.relname, coalesce((SELECT p.relname FROM pg_inherits JOIN pg_class p ON p.oid = inhparent WHERE inhrelid = c.oid), ''),
		c.relkind = 'p', a.attnum IS NOT NULL, coalesce(a.attnotnull, false),
		EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indkey[0] IN (a.attnum, h.adnum)),
		c.relrowsecurity, c.relforcerowsecurity,
		ARRAY(SELECT pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polrelid = c.oid AND polcmd = '*' AND polroles = '{0}'),
		ARRAY(SELECT r.relname::text FROM pg_index i JOIN pg_class r ON r.oid = i.indexrelid WHERE i.indrelid = c.oid
			AND (i.indkey[0] IN (a.attnum, h.adnum)) IS NOT TRUE ORDER BY 1),
		ARRAY(SELECT k.conname::text FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f' AND NOT EXISTS (
			SELECT FROM unnest(k.conkey, k.confkey) AS pair (here, there) JOIN pg_attribute o ON o.attrelid = k.confrelid AND o.attnum = pair.there
			WHERE pair.here = a.attnum AND o.attname = 'organization') ORDER BY 1)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'organization' AND NOT a.attisdropped
		LEFT JOIN pg_attrdef h ON h.adrelid = c.oid AND pg_get_expr(h.adbin, h.adrelid) = 'hashtextextended(organization, (0)::bigint)'
	WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p') ORDER BY 1, 2`

// compared is a policy for rows of the organization, whose setting may be read once for a statement.
var compared = regexp.MustCompile(`^\(\(organization = (\( SELECT )?current_setting\('weir\.organization'`)

// Every table with a tenant's data has the organization, or the hash
// generated from it, first in its primary key, in every other index and
// in every foreign key, and shows its rows only to that organization,
// even to the table's owner. Exempt are the partitions of days, into which consumers copy and which no
// request names. Weir's login role can't bypass any of that.
func catalogueIsSecured(t *testing.T, conn *pgx.Conn) {
	makeDays(t, conn)
	tables := readTables(t, conn)
	byName, partitions, needed := map[string]table{}, 0, map[string]bool{}
	for _, table := range tables {
		byName[table.Schema+"."+table.Name] = table
	}
	for name, table := range byName {
		if table.Parent != "" {
			partitions++
			testenv.Must(t, table.checkDay(byName[table.Schema+"."+table.Parent]))
		} else if err := table.check(needed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, reason := range exceptions {
		if !needed[name] || reason == "" {
			t.Errorf("the exception %q is needed: %t, and its reason is %q", name, needed[name], reason)
		}
	}
	if len(tables) < 20 || partitions == 0 {
		t.Errorf("the catalogue has %d tables, %d of them partitions: it is not read right", len(tables), partitions)
	}
	var unused []string
	testenv.Must(t, conn.QueryRow(t.Context(), `SELECT array_agg(attrelid::regclass || '.' || attname) FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
		WHERE relnamespace::regnamespace::text = ANY($1) AND col_description(attrelid, attnum) = 'no longer used' AND NOT attisdropped`, schemas).Scan(&unused))
	if len(unused) > 0 {
		t.Errorf("%q are no longer used: drop them", unused)
	}
	var bypasses bool
	testenv.Must(t, conn.QueryRow(t.Context(), `SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&bypasses))
	if bypasses {
		t.Error("the login role bypasses row level security")
	}
}

// check returns what is wrong with a table that is no partition, and
// notes the needed exceptions.
func (d table) check(needed map[string]bool) error {
	if !d.Organization {
		return except(needed, d.Name, "has no column organization")
	}
	if !d.NotNull || !d.Leads {
		return fmt.Errorf("organization is not null: %t, leads the primary key: %t", d.NotNull, d.Leads)
	}
	if !d.Secured || !d.Forced {
		return fmt.Errorf("row level security is enabled: %t, forced: %t", d.Secured, d.Forced)
	}
	if len(d.Policies) != 1 || !compared.MatchString(d.Policies[0]) {
		return fmt.Errorf("its policies are %q, want one that compares the organization", d.Policies)
	}
	var faults []error
	for _, key := range d.Foreign {
		faults = append(faults, except(needed, d.Name+"."+key, "its foreign key "+key+" does not carry the organization"))
	}
	for _, index := range d.Indexes {
		faults = append(faults, except(needed, d.Name+"."+index, "its index "+index+" does not begin with the organization"))
	}
	return errors.Join(faults...)
}

// except allows a fault with an exception, by its name.
func except(needed map[string]bool, name, fault string) error {
	if exceptions[name] == "" {
		return fmt.Errorf("%s, and there is no exception %q with a reason", fault, name)
	}
	needed[name] = true
	return nil
}

// checkDay returns what is wrong with a partition: it must be a day of
// a checked table.
func (d table) checkDay(parent table) error {
	day, err := time.Parse("20060102", d.Name[strings.LastIndex(d.Name, "_")+1:])
	if d.Partitioned && strings.HasPrefix(d.Name, parent.Name+"_") && parent.Parent == "" {
		return nil // of a value, such as a retention, and its days are partitions of it
	}
	if err != nil || d.Name != pg.DayPartition(parent.Name, day) || !parent.Partitioned {
		return fmt.Errorf("%s.%s is no day of a partitioned table, but part of %q", d.Schema, d.Name, d.Parent)
	}
	return nil
}

// hasClasses reports whether the partitions of d, not d itself, are
// partitioned by day.
func (d table) hasClasses(tables []table) bool {
	return slices.ContainsFunc(tables, func(part table) bool { return part.Schema == d.Schema && part.Parent == d.Name && part.Partitioned })
}

func readTables(t *testing.T, conn *pgx.Conn) []table {
	t.Helper()
	rows, err := conn.Query(t.Context(), tablesQuery, schemas)
	testenv.Must(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	testenv.Must(t, err)
	return tables
}

// A schemaOwner is a module that has migrated its schema.
type schemaOwner interface {
	Bounds() []prune.Bound
	Prune(ctx context.Context) error
	Close()
}

// openModules lets each module migrate its schema, as at any start.
// They are in the order of schemas, and register their metrics.
func openModules(t *testing.T, database string, registry *telemetry.Registry) (modules []schemaOwner) {
	t.Helper()
	set, err := allinone.ModulesFromEnvironment()
	testenv.Must(t, err)
	for _, config := range []*base.Config{&set.Ingest.Config, &set.Ledger.Config, &set.Grouping.Config, &set.Tenants.Config} {
		config.DatabaseURL, config.Brokers, config.Telemetry.Registry = httpapi.Secret(database), []string{"127.0.0.1:1"}, registry
	}
	logger := slog.New(slog.DiscardHandler)
	for _, open := range []func() (schemaOwner, error){
		func() (schemaOwner, error) { return grouping.New(t.Context(), set.Grouping, logger) },
		func() (schemaOwner, error) { return ingest.New(t.Context(), set.Ingest, logger) },
		func() (schemaOwner, error) { return ledger.New(t.Context(), set.Ledger, logger) },
		func() (schemaOwner, error) { return tenants.New(t.Context(), set.Tenants, logger) },
	} {
		app, err := open()
		testenv.Must(t, err)
		t.Cleanup(app.Close)
		modules = append(modules, app)
	}
	return modules
}

// makeDays creates a partition of every partitioned table, so that
// there are partitions to check.
func makeDays(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	_, err := conn.Exec(t.Context(), `SELECT ingest.attach_partition('ingest.blocks', NULL, 90, 'received_at')`) // of a retention
	testenv.Must(t, err)
	tables := readTables(t, conn)
	for _, table := range tables {
		if !table.Partitioned || table.hasClasses(tables) {
			continue
		}
		testenv.Must(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SET LOCAL search_path = `+table.Schema); err != nil {
				return err
			}
			return pg.EnsureDays(t.Context(), tx, table.Name, time.Now())
		}))
	}
}
