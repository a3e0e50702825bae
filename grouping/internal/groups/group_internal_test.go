package groups

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi/limitertest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Reads take turns by organization.
func TestReadsTakeTurns(t *testing.T) {
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	service := New(Config{Projects: identity.NewDirectory(), Reads: pool, Concurrency: 4, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	limitertest.Check(t, 4, 16, func(ctx context.Context, organization string, work func()) error {
		_, err := read(ctx, service.Groups.db, organization, func(pgx.Tx, pg.Organization) (any, error) {
			work()
			return nil, nil
		})
		return err
	})
}

// A page whose search timed out is incomplete and has a cursor.
func TestPagesHaveATime(t *testing.T) {
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO error_groups
				(organization, id, project, title, type, culprit, count, first_seen, last_seen, seen_minute, levels, environments, samples, similar_hash, why, expires, arrived)
			SELECT 'acme', 'grp_' || md5(n::text), 'shop', 'T', 'T', '', 1, at, at, date_trunc('minute', at), 8, '{}', 0, '\x00', '{}', '2027-01-01', at
			  FROM generate_series(1, 5000) AS n, LATERAL (SELECT timestamptz '2026-11-20' + n * interval '1 s') AS a (at)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		now = now.Add(time.Minute) // each look takes a minute
		return now
	}
	service := New(Config{Projects: identity.NewDirectory(), Reads: pool, Concurrency: 1, Clock: clock, Metrics: prometheus.NewRegistry()})
	query := postgres.GroupQuery{Project: "shop", Words: []string{"nothing"}, Limit: 100}
	for pages := 1; ; pages++ {
		page, err := service.Groups.List(t.Context(), "acme", query)
		if err != nil || len(page.Groups) != 0 || page.Incomplete != (page.Next != nil) {
			t.Fatalf("page %d: %+v, %v", pages, page, err)
		}
		if page.Next == nil {
			if pages != 3 {
				t.Errorf("the end is reached on page %d", pages)
			}
			break
		}
		query.After = *page.Next
	}
}

// candidate is a group whose sample has these calls of com.acme.Shop.
func candidate(id, message string, calls ...string) postgres.Candidate {
	e := grouping.Error{Type: "PaymentFailed", Message: message}
	for _, call := range calls {
		e.StackTrace = append(e.StackTrace, "at com.acme.Shop."+call+"(Shop.java:1)")
	}
	var g grouping.Grouper
	about := g.Fingerprint(e).Describe()
	return postgres.Candidate{Group: postgres.Group{ID: id}, Outline: grouping.OutlineOf(about.Language, about.Exceptions)}
}

// among is a project of these groups alone.
func among(of postgres.Candidate, others ...postgres.Candidate) postgres.Candidates {
	var calls [][]int32
	for _, other := range others {
		calls = append(calls, other.Outline.Calls())
	}
	return postgres.Candidates{Of: of, Others: others, Rarity: grouping.RarityAmong(calls)}
}

// Groups that share most of the trace and the message come
// first, with the calls that only one of the two has.
func TestRank(t *testing.T) {
	ranked := rank(among(candidate("of", "card was declined", "charge", "pay", "checkout", "main"),
		candidate("top alone", "no connection", "charge", "retry", "work"), // is not worth a look
		candidate("another caller", "card was declined", "charge", "pay", "renew", "main"),
		candidate("another message", "no connection", "charge", "pay", "checkout", "main"),
	))
	var order []string
	for _, s := range ranked {
		order = append(order, s.Group.ID)
		if s.Similarity < grouping.MinSimilarity || s.Similarity > 1 {
			t.Errorf("%s is alike by %v", s.Group.ID, s.Similarity)
		}
	}
	if got := strings.Join(order, ", "); got != "another message, another caller" {
		t.Errorf("ranked are %s", got)
	}
	if s := ranked[1]; !slices.Equal(s.OnlyHere, []string{"com.acme.Shop.checkout"}) || !slices.Equal(s.OnlyThere, []string{"com.acme.Shop.renew"}) {
		t.Errorf("differences: %v and %v", s.OnlyHere, s.OnlyThere)
	}
}
