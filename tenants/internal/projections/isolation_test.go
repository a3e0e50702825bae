package projections_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// A query without its WHERE shows nothing foreign, and
// a connection without an organization shows nothing.
func TestRowsOfOthersAreInvisible(t *testing.T) {
	pool := tenantstest.Open(t)
	for _, table := range []string{"organizations", "projects", "api_keys", "service_tokens", "members", "invitations", "sessions", "passkeys", "webhooks", "audit_events", "events"} {
		statement := "SELECT DISTINCT organization FROM " + table
		err := pg.ReadAs(t.Context(), pool, "org_a", func(tx pgx.Tx) error {
			rows, err := tx.Query(t.Context(), statement)
			if err != nil {
				return err
			}
			seen, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if !slices.Equal(seen, []string{"org_a"}) {
				t.Errorf("%s: org_a sees the rows of %q", table, seen)
			}
			return err
		})
		testenv.Must(t, err)
		if err := pool.QueryRow(t.Context(), statement).Scan(new(string)); !errors.Is(err, pgx.ErrNoRows) {
			t.Errorf("%s: nobody sees a row: %v", table, err)
		}
	}
}

// Queries name the organization themselves: without
// row level security they still show nothing foreign.
func TestQueriesNameTheOrganization(t *testing.T) {
	pool := tenantstest.OpenOwned(t)
	for _, table := range []string{"organizations", "projects", "api_keys", "service_tokens", "members", "invitations", "sessions", "passkeys", "webhooks", "audit_events"} {
		if _, err := pool.Exec(t.Context(), "ALTER TABLE "+table+" NO FORCE ROW LEVEL SECURITY"); err != nil { // does not bind its owner
			t.Fatal(err)
		}
	}
	for as, want := range map[string]int{"org_a": 0, "org_b": 1, tenants.Installation: 1} {
		for question, found := range asked(t, query.NewReader(pool), as) {
			if found != want {
				t.Errorf("%s: %s finds %d of org_b, want %d", question, as, found, want)
			}
		}
	}
}

// asked runs every query about org_b and returns how much of it each finds.
func asked(t *testing.T, reader *query.Reader, as string) map[string]int {
	t.Helper()
	found, start := make(map[string]int), query.Position{}
	one := func(question string, err error) {
		if err == nil {
			found[question] = 1
		} else if found[question] = 0; !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("%s: %v", question, err)
		}
	}
	many := func(question string, n int, err error) {
		if found[question] = n; err != nil {
			t.Errorf("%s: %v", question, err)
		}
	}
	_, err := registry.NewStore(reader).Organization(t.Context(), pg.Organization(as), "org_b")
	one("Organization", err)
	_, err = registry.NewStore(reader).Project(t.Context(), pg.Organization(as), "prj_b")
	one("Project", err)
	_, err = keys.NewStore(reader).Key(t.Context(), pg.Organization(as), "key_b")
	one("APIKey", err)
	_, err = registry.NewStore(reader).ServiceToken(t.Context(), pg.Organization(as), "tok_b")
	one("ServiceToken", err)
	_, err = people.NewStore(reader).Member(t.Context(), pg.Organization(as), "mem_b")
	one("Member", err)
	_, err = people.NewStore(reader).MemberEver(t.Context(), pg.Organization(as), "mem_gone_b")
	one("MemberEver", err)
	_, err = people.NewStore(reader).Invitation(t.Context(), pg.Organization(as), "inv_b")
	one("Invitation", err)
	organizations, err := registry.NewStore(reader).Organizations(t.Context(), pg.Organization(as), start, 10)
	many("Organizations", len(slices.DeleteFunc(organizations, func(o tenants.Organization) bool { return o.ID != "org_b" })), err)
	projects, err := registry.NewStore(reader).Projects(t.Context(), pg.Organization(as), "org_b", start, 10)
	many("Projects", len(projects), err)
	listed, err := keys.NewStore(reader).List(t.Context(), pg.Organization(as), tenants.Project{ID: "prj_b", Organization: "org_b"}, start, 10)
	many("APIKeys", len(listed), err)
	tokens, err := registry.NewStore(reader).ServiceTokens(t.Context(), pg.Organization(as), "org_b", start, 10)
	many("ServiceTokens", len(tokens), err)
	lines, err := audit.NewStore(reader).Events(t.Context(), pg.Organization(as), tenants.AuditFilter{Organization: "org_b", Action: "project.created"}, 0, 10)
	many("AuditEvents", len(lines), err)
	actions, err := audit.NewStore(reader).Actions(t.Context(), pg.Organization(as), "org_b")
	many("AuditedActions", min(len(actions), 1), err)
	actors, err := audit.NewStore(reader).Actors(t.Context(), pg.Organization(as), "org_b")
	many("Actors", len(actors), err)
	members, err := people.NewStore(reader).Members(t.Context(), pg.Organization(as), "org_b", start, 10)
	many("Members", len(members), err)
	invitations, err := people.NewStore(reader).Invitations(t.Context(), pg.Organization(as), "org_b", start, 10)
	many("Invitations", min(len(invitations), 1), err)
	sessions, err := signin.NewStore(reader).Sessions(t.Context(), pg.Organization(as), "mem_b", tenantstest.Noon)
	many("Sessions", len(sessions), err)
	sessions, err = signin.NewStore(reader).SessionsAfter(t.Context(), pg.Organization(as), "mem_b", tenantstest.Noon, start, 10)
	many("SessionsAfter", len(sessions), err)
	_, err = signin.NewStore(reader).Session(t.Context(), pg.Organization(as), "ses_b")
	one("Session", err)
	passkeys, err := signin.NewStore(reader).Passkeys(t.Context(), pg.Organization(as), "mem_b")
	many("Passkeys", len(passkeys), err)
	_, err = signin.NewStore(reader).Passkey(t.Context(), pg.Organization(as), "pky_b")
	one("Passkey", err)
	_, err = notifications.NewStore(reader).Webhook(t.Context(), pg.Organization(as), notifications.Ref{Organization: "org_b", ID: "whk_b"})
	one("Webhook", err)
	webhooks, err := notifications.NewStore(reader).Webhooks(t.Context(), pg.Organization(as), "org_b", start, 1)
	many("Webhooks", len(webhooks), err)
	return found
}

// No organization can write into another, and no key
// can belong to one and be for a project of the other.
func TestWritesStayAtHome(t *testing.T) {
	pool := tenantstest.Open(t)
	digest := tenants.SecretDigest{Hash: strings.Repeat("c", 64), First: "ab12", Last: "9f3e"}
	key := tenants.APIKeyIssued{APIKey: "key_c", Organization: "org_a", Project: "prj_b", Environment: tenants.Dev, Name: "n", Digest: digest, At: tenantstest.Noon}
	foreign := tenants.ProjectCreated{Project: "prj_c", Organization: "org_b", Name: "n", At: tenantstest.Noon}
	for _, event := range []tenants.Event{key, foreign} {
		stream := eventstore.Stream{Organization: "org_a", Name: "new"}
		if err := projections.NewEvents(pool).Append(t.Context(), stream, 0, nil, event); err == nil {
			t.Errorf("org_a wrote %+v", event)
		}
	}
}

// The tables can be rebuilt from the events, and are the same then.
func TestProjectionsCanBeRebuilt(t *testing.T) {
	pool := tenantstest.OpenOwned(t)
	before := contents(t, pool)
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `TRUNCATE organizations, service_tokens CASCADE`); err != nil {
			return err
		}
		events, err := projections.NewEvents(pool).ReadAll(t.Context(), tx, 0, 1000)
		if err != nil {
			return err
		}
		return projections.All().Apply(t.Context(), tx, events)
	})
	testenv.Must(t, err)
	if after := contents(t, pool); after != before || !strings.Contains(after, "leaked") {
		t.Errorf("rebuilt:\n%s\nbefore:\n%s", after, before)
	}
}

// contents returns what the views show to an operator.
func contents(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	reader, all, start := query.NewReader(pool), "", query.Position{}
	for _, name := range []string{"a", "b"} {
		of := tenants.Project{ID: "prj_" + name, Organization: "org_" + name}
		organizations, err1 := registry.NewStore(reader).Organizations(t.Context(), tenants.Installation, start, 10)
		projects, err2 := registry.NewStore(reader).Projects(t.Context(), tenants.Installation, pg.Organization(of.Organization), start, 10)
		listed, err3 := keys.NewStore(reader).List(t.Context(), tenants.Installation, of, start, 10)
		tokens, err4 := registry.NewStore(reader).ServiceTokens(t.Context(), tenants.Installation, pg.Organization(of.Organization), start, 10)
		members, err5 := people.NewStore(reader).Members(t.Context(), tenants.Installation, pg.Organization(of.Organization), start, 10)
		gone, err6 := people.NewStore(reader).MemberEver(t.Context(), pg.Organization(of.Organization), "mem_gone_"+name)
		invitations, err7 := people.NewStore(reader).Invitations(t.Context(), tenants.Installation, pg.Organization(of.Organization), start, 10)
		sessions, err8 := signin.NewStore(reader).Sessions(t.Context(), pg.Organization(of.Organization), "mem_"+name, tenantstest.Noon)
		passkeys, err9 := signin.NewStore(reader).Passkeys(t.Context(), pg.Organization(of.Organization), "mem_"+name)
		webhooks, err10 := notifications.NewStore(reader).Webhooks(t.Context(), tenants.Installation, of.Organization, start, 10)
		testenv.Must(t, errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10))
		if len(members) != 1 || gone.RemovedAt.IsZero() || len(invitations) != 2 || len(sessions) != 1 {
			t.Errorf("of %s: members %+v, gone %+v, invitations %+v, sessions %+v", name, members, gone, invitations, sessions)
		}
		all += fmt.Sprintln(organizations, projects, listed, tokens, members, gone, invitations, sessions, passkeys, webhooks)
	}
	return all
}
