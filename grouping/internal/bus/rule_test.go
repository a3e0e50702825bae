package bus_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ruletext"
)

// Rules see the metadata of entries, also numbers and what is below objects, from
// when they hold; what they scrub is in no sample, title or message.
func TestRulesOfEntries(t *testing.T) {
	pool := open(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(t.Context(), tx, "acme"); err != nil {
			return err
		}
		of := postgres.Project{Organization: "acme", Name: "shop"}
		_, err := postgres.SaveRules(t.Context(), tx, of, ruletext.Version{Number: 1, Text: `group by type, metadata.tenant.id, metadata.trial where service:pay
same "Refused" environment:prod type:Refused
scrub email`}, now, postgres.Author{}, func() time.Time { return now })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const failed = `"error":{"type":"E","message":"no mail to bob@example.com","stack_trace":["at a.B.c(B.java:1)"]},"message":"bob@example.com"}`
	l := logs(
		`{"level":"error","metadata":{"service":"pay","tenant":{"id":7}},`+failed, `{"level":"error","metadata":{"service":"pay","tenant.id":"7"},`+failed,
		`{"level":"error","metadata":{"service":"pay","tenant":{"id":"8"}},`+failed, `{"level":"error","metadata":{"service":"pay","tenant":{"id":"8"},"trial":true},`+failed,
		`{"level":"error","metadata":{"service":"web","tenant":{"id":"8"}},`+failed, `{"level":"error","metadata":{"service":"pay","tenant":["8"]},`+failed,
		`{"level":"error","error":{"type":"Refused"}}`, `{"level":"error","environment":"test","error":{"type":"Refused"}}`,
	)
	l.Time = now.Add(time.Second)
	if err := consume(t.Context(), pool, record(l, 1)); err != nil {
		t.Fatal(err)
	}
	before := logs(`{"level":"error","error":{"type":"Refused","message":"to eve@example.com"}}`)
	before.Time = now.Add(-time.Second)
	if err := consume(t.Context(), pool, record(before, 2)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range groupsOf(t, pool, "acme") {
		got = append(got, g.Title+" "+strings.Repeat("|", int(g.Count)))
	}
	slices.Sort(got)
	want := []string{"E: no mail to <email> |", "E: no mail to <email> |", "E: no mail to <email> |", "E: no mail to <email> |", "E: no mail to <email> ||",
		"Refused |", "Refused |", "Refused: to eve@example.com |"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	var kept int
	err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM occurrences o WHERE o::text LIKE '%bob@%') + (SELECT count(*) FROM error_groups g WHERE g::text LIKE '%bob@%')
			+ (SELECT count(*) FROM facts f WHERE f::text LIKE '%bob@%')`).Scan(&kept)
	})
	if err != nil || kept > 0 {
		t.Errorf("what is scrubbed is kept in %d rows, %v", kept, err)
	}
}

// A project whose rules are of another one, or another organization, has none of them.
func TestRulesOfOthers(t *testing.T) {
	pool := open(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	for _, of := range []postgres.Project{{Organization: "acme", Name: "lair"}, {Organization: "evil", Name: "shop"}} {
		err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if err := pg.AsOrganization(t.Context(), tx, pg.Organization(of.Organization)); err != nil {
				return err
			}
			first := ruletext.Version{Number: 1, Text: `same "Mine" type:*`}
			_, err := postgres.SaveRules(t.Context(), tx, of, first, now, postgres.Author{}, func() time.Time { return now.Add(-time.Hour) })
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := consume(t.Context(), pool, record(logs(`{"level":"error","error":{"type":"E"}}`), 1)); err != nil {
		t.Fatal(err)
	}
	if found := groupsOf(t, pool, "acme"); len(found) != 1 || found[0].Title != "E" {
		t.Errorf("%+v", found)
	}
}
