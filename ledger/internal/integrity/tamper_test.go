package integrity_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/testenv"
)

// Every value of a row of each table is raised, lowered, emptied or
// otherwise changed, one at a time, and every row taken away: ledger-verify
// finds it, or untold has why nobody needs it to. A new column fails the
// test until it is found, or told about.
func TestEveryColumnIsUnderTheChecks(t *testing.T) {
	l := tampered(t)
	log := logOf(t, l)
	tx := beginAsOwner(t, l)
	if found := verifyAll(t, tx, l, log); len(found) > 0 {
		t.Fatalf("before anything is changed: %+v", found)
	}
	used := map[string]bool{}
	for _, c := range columns(t, tx) {
		told := func(of string) bool {
			used[of] = used[of] || untold[of] != ""
			return untold[of] != ""
		}
		if told(c.table) || told(c.String()) {
			continue
		}
		for _, row := range c.rows(t, tx) {
			for _, change := range c.changes(t, tx, row) {
				if !told(c.String()+" "+change.how) && !isFound(t, tx, l, log, change.statement) {
					t.Errorf("nothing is found after %s", change.statement)
				}
			}
		}
	}
	for of := range untold {
		if !used[of] {
			t.Errorf("there is no %s that would not be found", of)
		}
	}
}

// untold are the tables, columns and changes that no check finds, with the
// reason.
var untold = map[string]string{
	"answers":           "what was answered to a request that may come again: the decision has what was decided",
	"bus_deferred":      "how far a consumer is, and what it waits for: records come again and are passed over",
	"bus_parked":        "records that had no effect",
	"bus_positions":     "how far a consumer is: set back, records come again and are passed over; set forward, the ranges have a gap",
	"bus_read":          "how far credentials are read",
	"bus_relays":        "how far facts are published",
	"checked_ranges":    "how far the running checks are: ledger-verify checks all",
	"cursor_key":        "signs the places of lists",
	"erasures":          "how far a deletion is",
	"facts":             "facts until they are published",
	"inbox":             "which records a copy may follow: the books do not follow from it",
	"inbox_held":        "parts of requests that are not whole, and not charged",
	"inbox_idempotency": "which records a copy may follow: the books do not follow from it",
	"migrations":        "which files were applied",
	"tallies":           "how far what was not accepted is counted, of which nothing is charged",
	"unpublished":       "which account states are to be published: they are compared with their topic every ten minutes",

	"books.raises":                 "tells old refusals from new ones while ingest catches up: with refusals it is found, and a rebuild compares it",
	"books.reached":                "which threshold was announced last",
	"budgets.reached":              "which threshold was announced last",
	"organizations.due_at lowered": "nothing is due by then",
	"organizations.terms emptied":  "the terms are decided once more",
	"organizations.terms lowered":  "the terms are decided once more",
	"refusal_days.saved_at":        "when it is to be sealed, and that it is",
	"ranges.checksum removed":      "bytes and number of records are compared with the log",
	"ranges.charged":               "how many requests it charged: those without bytes have no transfer",
	"events.private":               "whether an event is published: no decision is",
	"folded_transfers.entries":     "of days whose statement has them",
	"folded_transfers.source":      "of days whose statement is made",
	"folded_transfers.transfers":   "how many were added up",
	"seals.sealed_at":              "when it was sealed: nothing reads it",
}

// A column of a table of the ledger. The name of none is a whole row.
type column struct{ table, name, kind string }

func (c column) String() string { return c.table + "." + c.name }

// columns are those of all tables, and a row of each.
func columns(t *testing.T, tx pgx.Tx) []column {
	t.Helper()
	rows, err := tx.Query(t.Context(), `SELECT table_name, column_name, udt_name FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = $1 AND table_type = 'BASE TABLE' AND table_name !~ '_[0-9]{8}$' AND is_generated = 'NEVER'
		UNION ALL SELECT table_name, '', '' FROM information_schema.tables
			WHERE table_schema = $1 AND table_type = 'BASE TABLE' AND table_name !~ '_[0-9]{8}$' ORDER BY 1, 2`, postgres.Schema)
	testenv.Must(t, err)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) { return c, row.Scan(&c.table, &c.name, &c.kind) })
	testenv.Must(t, err)
	return all
}

// A change is a statement that changes a value of a row.
type change struct{ how, statement string }

// changes change a value of a row in each way.
func (c column) changes(t *testing.T, tx pgx.Tx, row string) []change {
	t.Helper()
	if c.name == "" {
		return []change{{"removed", "DELETE FROM " + c.table + " WHERE " + row}}
	}
	name := c.quoted()
	set := func(how, value string) change {
		value = strings.ReplaceAll(value, "?", name)
		return change{how, fmt.Sprintf("UPDATE %s SET %s = %s WHERE %[2]s::text IS DISTINCT FROM (%[3]s)::text AND %[4]s", c.table, name, value, row)}
	}
	changes := []change{set("removed", "NULL")}
	for _, other := range otherValues[c.kind] {
		changes = append(changes, set(other.how, other.statement))
	}
	switch {
	case c.kind == "json" || c.kind == "jsonb":
		for _, document := range c.documents(t, tx, row) {
			changes = append(changes, set("changed", document))
		}
	case otherValues[c.kind] == nil:
		t.Fatalf("no test changes a %s, as %s is", c.kind, c)
	}
	return changes
}

// quoted is the name of the column in a statement.
func (c column) quoted() string { return pgx.Identifier{c.name}.Sanitize() }

// otherValues are what a value of a type is changed to.
var otherValues = map[string][]change{
	"text":        {{"changed", `coalesce(?, '') || 'x'`}, {"emptied", `''`}},
	"bool":        {{"changed", `NOT ?`}},
	"timestamptz": {{"raised", `coalesce(?, now()) + interval '1 hour'`}, {"lowered", `? - interval '1 hour'`}},
	"date":        {{"raised", `? + 1`}, {"lowered", `? - 1`}},
	"bytea":       {{"changed", `sha256(?)`}, {"emptied", `''`}},
	"bit":         {{"changed", `~?`}},
	"_int4":       {{"changed", `coalesce(?, '{}') || 99`}, {"emptied", `'{}'`}},
	"uuid":        {{"changed", `gen_random_uuid()`}},
	"int2":        otherNumbers, "int4": otherNumbers, "int8": otherNumbers,
}

var otherNumbers = []change{{"raised", `coalesce(?, 0) + 1`}, {"lowered", `coalesce(?, 0) - 1`}, {"emptied", `0`}}

// documents are values that each differ in one place of a document.
func (c column) documents(t *testing.T, tx pgx.Tx, row string) (documents []string) {
	t.Helper()
	rows, err := tx.Query(t.Context(), `WITH RECURSIVE values (path, value) AS (SELECT '{}'::text[], `+c.quoted()+`::jsonb FROM `+c.table+` WHERE `+row+`
		UNION ALL SELECT path || key, inner_value FROM values, LATERAL (
			SELECT key, value AS inner_value FROM jsonb_each(CASE jsonb_typeof(values.value) WHEN 'object' THEN values.value ELSE '{}' END)
			UNION ALL SELECT (n - 1)::text, value FROM jsonb_array_elements(CASE jsonb_typeof(values.value) WHEN 'array' THEN values.value ELSE '[]' END) WITH ORDINALITY AS e (value, n)) below)
		SELECT path, value FROM values WHERE jsonb_typeof(value) NOT IN ('object', 'array')`)
	testenv.Must(t, err)
	var path []string
	var value any
	_, err = pgx.ForEachRow(rows, []any{&path, &value}, func() error {
		other, err := json.Marshal(changed(value))
		if err != nil {
			return err
		}
		documents = append(documents, fmt.Sprintf("jsonb_set(%s::jsonb, '{%s}', '%s')::%s",
			c.quoted(), strings.Join(path, ","), strings.ReplaceAll(string(other), "'", "''"), c.kind))
		return nil
	})
	testenv.Must(t, err)
	return documents
}

// changed is another value than one of a document.
func changed(value any) any {
	switch v := value.(type) {
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return at.Add(time.Hour)
		}
		if strings.HasPrefix(v, "{") {
			return " " + v
		}
		return v + "x"
	case float64:
		return v + 1
	case bool:
		return !v
	}
	return 7
}

// which selects the row that is changed of a table or for a column; for
// others it is the first. Where decisions keep their order, their place
// may change. An early cut divides no charges, a chain begins
// with the first link that is kept, as do the roots, the lines of a period whose transfers
// are folded are in its statement, and what was refused is compared by day.
var which = map[string]string{
	"cuts": "next_offset > 0 AND hour < (SELECT max(hour) FROM cuts)", "grants": "status = 2", "grants.ended_at": "status = 4",
	"events.position": "version = 3", "statements.previous": "number > 1",
	"links": "sequence = (SELECT max(sequence) - 1 FROM links)", "period_lines": "period_start > '2026-10-31'",
	"seals": "hour = (SELECT max(hour) FROM seals)", "transfers": "source = 0 AND reason = 2", "usage_hours": "outcome = 'accepted'", "usage_days": "outcome = 'accepted'",
}

// rows returns the conditions for the rows that are changed: all that are
// taken away, and for a column one that has a value.
func (c column) rows(t *testing.T, tx pgx.Tx) []string {
	t.Helper()
	order := `tableoid, ctid LIMIT 1000`
	if c.name != "" {
		order = fmt.Sprintf(`coalesce(%s::text, '') IN ('', '0', '\x', 'false'), tableoid, ctid LIMIT 1`, c.quoted())
	}
	where := cmp.Or(which[c.String()], which[c.table], "true")
	rows, err := tx.Query(t.Context(), fmt.Sprintf(`SELECT format('tableoid = %%s AND ctid = %%L', tableoid::int, ctid) FROM %s WHERE %s ORDER BY %s`,
		c.table, where, order))
	testenv.Must(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(found) == 0 {
		t.Fatalf("no row of %s to change: %v", c.table, err)
	}
	return found
}

// isFound reports whether a change is found or refused by the database, or
// changes nothing.
func isFound(t *testing.T, tx pgx.Tx, l *ledgertest.Ledger, log keptLog, change string) bool {
	t.Helper()
	nested, err := tx.Begin(t.Context())
	testenv.Must(t, err)
	defer func() {
		testenv.Must(t, nested.Rollback(context.WithoutCancel(t.Context())))
	}()
	tag, err := nested.Exec(t.Context(), change)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && strings.HasPrefix(refused.Code, "23") {
		return true
	}
	if err != nil {
		t.Fatalf("%s: %v", change, err)
	}
	return tag.RowsAffected() == 0 || len(verifyAll(t, nested, l, log)) > 0
}

// verifyAll is what ledger-verify finds.
func verifyAll(t *testing.T, tx pgx.Tx, l *ledgertest.Ledger, log keptLog) []ledger.Violation {
	t.Helper()
	found, err := postgres.Verify(t.Context(), tx, folded, l.Now())
	if err != nil {
		return []ledger.Violation{{Detail: err.Error()}} // it can no longer be read
	}
	for partition := range partitions {
		ranges, err := postgres.RangesOf(t.Context(), tx, partition, 0, 1000)
		testenv.Must(t, err)
		found = append(found, log.check(ranges)...)
	}
	return found
}

// A keptLog has the ranges as the log would give them.
type keptLog map[string]ledger.Range

const partitions = 2

func logOf(t *testing.T, l *ledgertest.Ledger) keptLog {
	t.Helper()
	log := keptLog{}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		for partition := range partitions {
			ranges, err := postgres.RangesOf(ctx, tx, partition, 0, 1000)
			if err != nil {
				return err
			}
			for _, r := range ranges {
				log[fmt.Sprint(r.Partition, r.First, r.Next)] = r
			}
		}
		return nil
	})
	return log
}

// check compares what the log has with what ranges say, as bus.Log does.
func (k keptLog) check(ranges []ledger.Range) (found []ledger.Violation) {
	for _, r := range ranges {
		if is := k[fmt.Sprint(r.Partition, r.First, r.Next)]; is.Checksum == nil || is.Records != r.Records || is.Bytes != r.Bytes ||
			r.Checksum != nil && *is.Checksum != *r.Checksum {
			found = append(found, ledger.Violation{Invariant: ledger.LedgerIsLog})
		}
	}
	return found
}

func beginAsOwner(t *testing.T, l *ledgertest.Ledger) pgx.Tx {
	t.Helper()
	tx, err := pgtest.Owner(t, l.Pool).Begin(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := tx.Exec(t.Context(), `SELECT set_config('weir.organization', '*', true)`); err != nil {
		t.Fatal(err)
	}
	return tx
}

// folding keeps transfers for so short that the days of September are
// folded; checks take it that less is kept.
var (
	folding = ledger.Retention{Transfers: 1, Books: 120, Hours: 1}
	folded  = ledger.Retention{Transfers: 2, Books: 120, Hours: 1}
)

// tampered is a ledger with rows in every table.
func tampered(t *testing.T) *ledgertest.Ledger {
	t.Helper()
	l := ledgertest.New(t)
	by := unitofwork.Request{Actor: "someone", ID: "request", IdempotencyKey: "once"}
	must := func(err error) {
		t.Helper()
		testenv.Must(t, err)
	}
	l.Start(t, "acme", ledger.Indie)
	l.Start(t, "other", ledger.Scale)
	l.AdvanceAll(t)
	day, capped := 20, int64(40)
	_, err := l.Plans.Subscribe(t.Context(), "acme", by, ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Indie, Quota: 500, RequestsPerMinute: 7, Overage: true, OverageCap: 900}, AnchorDay: &day})
	must(err)
	_, err = l.Plans.SetThresholds(t.Context(), "acme", unitofwork.Request{Actor: "someone"}, ledger.Thresholds{50, 90})
	must(err)
	l.Apply(t, chargeAt(l, "acme", 0, 0, 60), chargeAt(l, "acme", 1, 0, 70))
	expires := l.Now().AddDate(0, 3, 0)
	l.GrantAcme(t, ledger.Grant{Amount: 5000, Priority: 1, Expires: expires, RolloverCap: &capped, Reason: "for a friend"})
	voided := l.GrantAcme(t, ledger.Grant{Amount: 30, Priority: 7, Expires: expires})
	_, err = l.Grants.Void(t.Context(), "acme", unitofwork.Request{Actor: "someone"}, voided.ID)
	must(err)
	_, err = l.Grants.Adjust(t.Context(), "acme", unitofwork.Request{Actor: "someone"}, -3, "too little", time.Time{})
	must(err)
	_, err = l.Budgets.Set(t.Context(), "acme", unitofwork.Request{Actor: "someone"}, ledger.BudgetSpec{Spender: ledger.Spender{Project: "project"}, Bytes: 400})
	must(err)
	l.Pass(2 * time.Hour)
	l.Apply(t, chargeAt(l, "acme", 0, 1, 10), chargeAt(l, "acme", 1, 1, 20))
	l.Apply(t, chargeAt(l, "acme", 0, 3, 15))
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := l.Booking.Refuse(ctx, tx, l.Now(), []ledger.Refusal{
			{
				Organization: "acme", Environment: "prod", Bytes: 1000, Remaining: 100, Quota: 500, PeriodStart: l.BalanceNow(t, "acme").Book.Period.Start,
				Exhausts: true, Requests: 2, Cause: ledger.Cause{Event: "req_1", At: l.Now(), Project: "project", Key: "key", Source: ledger.FromOutcomes},
			},
			{
				Organization: "acme", Environment: "prod", Reason: contract.ReasonProjectBudget, Spender: ledger.Spender{Project: "project"}, Bytes: 1000,
				Remaining: 100, Quota: 400, PeriodStart: l.BalanceNow(t, "acme").Book.Period.Start,
				Exhausts: true, Requests: 1, Cause: ledger.Cause{Event: "req_2", At: l.Now(), Project: "project", Key: "key", Source: ledger.FromOutcomes},
			},
		})
		if err != nil {
			return err
		}
		return l.Booking.Count(ctx, tx, l.Now(), []ledger.Tally{{Organization: "acme", Process: "ingest-1", Sequence: 1, At: l.Now(), Uses: []ledger.Use{
			{Organization: "acme", Hour: l.Now().Truncate(time.Hour), Project: "project", Key: "key", Environment: "prod", Outcome: "refused", Reason: "quota", Requests: 3, Entries: 4, Bytes: 5, Errors: 6, KeyInBody: 7},
		}}})
	})
	seal(t, l, l.Now().Add(time.Hour).Truncate(time.Hour))
	for partition := range partitions {
		l.SetPosition(t, partition, 5, [16]byte{1}, "") // from now on there are checkpoints
	}
	l.Pass(2 * time.Hour)
	l.Apply(t, chargeAt(l, "acme", 0, 2, 30)) // it had been parked
	l.Apply(t, chargeAt(l, "acme", 0, 4, 40))
	_, err = l.Plans.Follow(t.Context(), l.Pool)
	must(err)
	must(prune.New(prune.Config{
		Pool: l.Pool, Tables: func(clock func() time.Time) []prune.Table {
			return postgres.Tables(clock, folding, erasure.Retention{})
		}, Clock: l.Now,
		Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}).RunOnce(t.Context()))
	seal(t, l, l.Now().Add(time.Hour).Truncate(time.Hour))
	return l
}

func chargeAt(l *ledgertest.Ledger, organization string, partition int, offset, bytes int64) ledger.Charge {
	c := logged(organization, partition, offset, l.Now())
	c.Bytes, c.Environment = bytes, "prod"
	return c
}

// Refusals that are changed together with their sums and what they
// exhausted differ from the root of their hour, and so does a root that is
// told of none.
func TestRootsHaveRefusals(t *testing.T) {
	l := tampered(t)
	log := logOf(t, l)
	tx := beginAsOwner(t, l)
	for _, change := range []string{
		`DELETE FROM refusals; DELETE FROM refusal_days; UPDATE books SET refused = 0; UPDATE budgets SET refused = 0`,
		`UPDATE seals SET refused = NULL`,
	} {
		if _, err := tx.Conn().PgConn().Exec(t.Context(), change).ReadAll(); err != nil {
			t.Fatal(err)
		}
		if found := verifyAll(t, tx, l, log); len(found) != 1 {
			t.Errorf("after %s: %+v", change, found)
		}
	}
}
