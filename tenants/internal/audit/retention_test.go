package audit_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// pruneAudit keeps a year of the audit, as of a time,
// and returns the streams whose facts are withdrawn.
func pruneAudit(t *testing.T, pool *pgxpool.Pool, now time.Time) (withdrawn []string) {
	t.Helper()
	withdraw := func(_ context.Context, _ pgx.Tx, gone []bus.Gone) error {
		for _, g := range gone {
			name := g.Stream.Name
			for _, version := range g.Versions {
				name += fmt.Sprint(" ", version)
			}
			withdrawn = append(withdrawn, name)
		}
		return nil
	}
	tables := func(clock func() time.Time) []prune.Table { return audit.Tables(clock, 365*24*time.Hour, withdraw) }
	err := prune.New(prune.Config{
		Pool: pool, Tables: tables, Clock: func() time.Time { return now }, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}).RunOnce(t.Context())
	testenv.Must(t, err)
	return withdrawn
}

func count(t *testing.T, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), query).Scan(&n)
	})
	testenv.Must(t, err)
	return n
}

// appendEvents appends events to a stream of org_a.
func appendEvents(t *testing.T, pool *pgxpool.Pool, noun, id string, version int64, events ...tenants.Event) {
	t.Helper()
	testenv.Must(t, projections.NewEvents(pool).Append(t.Context(), unitofwork.Stream("org_a", noun, id), version, nil, events...))
}

// openWithProject adds a project and a session to the
// seed, and renames the project half a year later.
func openWithProject(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, noon := tenantstest.OpenOwned(t), tenantstest.Noon
	appendEvents(t, pool, "session", "ses_x", 0, tenants.SessionStarted{
		Session: "ses_x", Organization: "org_a", Member: "mem_a", Role: tenants.Admin, At: noon, ExpiresAt: noon.Add(time.Hour),
		Digest: tenants.SecretDigest{Hash: strings.Repeat("e", 64), First: "ab12", Last: "9f3e"},
	})
	appendEvents(t, pool, "project", "prj_x", 0, tenants.ProjectCreated{Project: "prj_x", Organization: "org_a", Name: "X", At: noon})
	appendEvents(t, pool, "project", "prj_x", 1, tenants.ProjectRenamed{Project: "prj_x", Name: "Renamed", At: noon.AddDate(0, 6, 0)})
	return pool
}

// Old lines are removed and leave an anchor,
// from which the rest is checked as before.
func TestOldLinesGo(t *testing.T) {
	pool := openWithProject(t)
	pruneAudit(t, pool, tenantstest.Noon.AddDate(0, 11, 0))
	if check := checkAudit(t, pool, "org_a"); check.Gone != 0 || check.Lines != perOrganization+3 {
		t.Fatalf("within a year %d lines are gone and %d left", check.Gone, check.Lines)
	}
	if withdrawn := pruneAudit(t, pool, tenantstest.Noon.AddDate(0, 13, 0)); !slices.Equal(withdrawn, []string{"session/ses_x"}) {
		t.Errorf("the facts of %v are taken back", withdrawn)
	}
	if check := checkAudit(t, pool, "org_a"); check.Gone != perOrganization+2 || check.Lines != 1 || check.Faults != nil {
		t.Errorf("after a year: %+v", check)
	}
	if check := checkAudit(t, pool, "org_b"); check.Gone != perOrganization-1 || check.Lines != 1 || check.Faults != nil {
		t.Errorf("where nothing happened for a year: %+v, want the newest line", check)
	}
	for stream, want := range map[string]int{"session/ses_x": 0, "project/prj_x": 2} {
		if n := count(t, pool, `SELECT count(*) FROM events WHERE stream = '`+stream+`'`); n != want {
			t.Errorf("%d events of %s are left, want %d", n, stream, want)
		}
	}
	appendEvents(t, pool, "project", "prj_x", 2, tenants.ProjectRenamed{Project: "prj_x", Name: "Again", At: tenantstest.Noon.AddDate(1, 2, 0)})
	if check := checkAudit(t, pool, "org_a"); check.Lines != 2 || check.Faults != nil {
		t.Fatalf("after one more: %+v", check)
	}
}

// Of repeated events of a thing, only those of the audit's time
// and the newest before it are kept: after ten years a passkey
// has no more events than after one, and the same state.
func TestReplacedEventsGo(t *testing.T) {
	pool, noon := tenantstest.Open(t), tenantstest.Noon
	passkey := tenants.PublicCredential{ID: []byte("credential"), PublicKey: []byte("key")}
	appendEvents(t, pool, "passkey", "pky_x", 0, tenants.PasskeyRegistered{
		Passkey: "pky_x", Organization: "org_a", Member: "mem_a", Name: "Laptop", Credential: passkey, At: noon,
	})
	appendEvents(t, pool, "project", "prj_x", 0, tenants.ProjectCreated{Project: "prj_x", Organization: "org_a", Name: "X", At: noon})
	const months = 120
	for month := range months {
		at := noon.AddDate(0, month, 0)
		appendEvents(t, pool, "passkey", "pky_x", int64(month+1), tenants.PasskeyUsed{Passkey: "pky_x", Counter: uint32(month + 1), At: at})
		appendEvents(t, pool, "project", "prj_x", int64(month+1), tenants.ProjectRenamed{Project: "prj_x", Name: fmt.Sprint("X", month), At: at})
	}
	withdrawn := pruneAudit(t, pool, noon.AddDate(0, months, 0))
	if len(withdrawn) != 2 || !strings.HasPrefix(withdrawn[0], "passkey/pky_x 2 3 4 ") || !strings.HasPrefix(withdrawn[1], "project/prj_x 2 3 4 ") {
		t.Errorf("the facts of %q are taken back", withdrawn)
	}
	for stream, used := range map[string]string{"passkey/pky_x": "passkey_used", "project/prj_x": "project_renamed"} {
		left := count(t, pool, `SELECT count(*) FROM events WHERE stream = '`+stream+`' AND name LIKE '%`+used+`'`)
		if all := count(t, pool, `SELECT count(*) FROM events WHERE stream = '`+stream+`'`); left < 12 || left > 14 || all != left+1 {
			t.Errorf("%d events of %s are left, %d of them %s: want a year of these and the first", all, stream, left, used)
		}
	}
	if check := checkAudit(t, pool, "org_a"); check.Faults != nil || check.Lines < 20 {
		t.Errorf("the audit is %+v", check)
	}
	events := projections.NewEvents(pool)
	history, err := events.Read(t.Context(), unitofwork.Stream("org_a", "passkey", "pky_x"))
	testenv.Must(t, err)
	appendEvents(t, pool, "passkey", "pky_x", history[len(history)-1].Version, tenants.PasskeyUsed{Passkey: "pky_x", Counter: months + 1, At: noon.AddDate(0, months, 1)})
	if again := pruneAudit(t, pool, noon.AddDate(0, months, 2)); len(again) > 0 {
		t.Errorf("at once again the facts of %q are taken back", again)
	}
}

// Years of changed passwords and rotated secrets leave no more events
// than one year; a password set by a code stays until a later one is set.
func TestPasswordsAndSecretsOfBeforeGo(t *testing.T) {
	pool, noon := tenantstest.Open(t), tenantstest.Noon
	appendEvents(t, pool, "webhook", "whk_x", 0, tenants.WebhookCreated{
		Webhook: "whk_x", Organization: "org_a", URL: "https://hooks.example/x", Events: []string{"quota.exhausted"}, Format: tenants.StandardFormat,
		Secret: tenants.WebhookSecret{Key: "0a1b2c3d", Generation: 1}, At: noon,
	})
	appendEvents(t, pool, "member", "mem_x", 0, tenants.MemberAdded{
		Member: "mem_x", Organization: "org_a", Email: "x@example.com", Name: "X", Role: tenants.Viewer, At: noon,
	})
	const months = 36
	for month := range months {
		at := noon.AddDate(0, month, 0)
		appendEvents(t, pool, "member", "mem_x", int64(month+1), tenants.MemberPasswordChanged{Member: "mem_x", PasswordHash: "x", Reset: month == 3, At: at})
		secret := tenants.WebhookSecret{Key: "4e5f6071", Generation: month + 2}
		appendEvents(t, pool, "webhook", "whk_x", int64(month+1), tenants.WebhookRotated{Webhook: "whk_x", Secret: secret, PreviousEnds: at, At: at})
	}
	pruneAudit(t, pool, noon.AddDate(0, months, 0))
	for stream, want := range map[string]int{"member/mem_x": 12 + 3, "webhook/whk_x": 12 + 3} { // a year, the first, and two
		left := count(t, pool, `SELECT count(*) FROM events WHERE stream = '`+stream+`'`)
		if left < want-1 || left > want+1 {
			t.Errorf("%d events of %s are left, want about %d", left, stream, want)
		}
	}
	if n := count(t, pool, `SELECT count(*) FROM events WHERE stream = 'member/mem_x' AND data ->> 'reset' = 'true'`); n != 1 {
		t.Errorf("%d passwords that were set by a code are left", n)
	}
	if check := checkAudit(t, pool, "org_a"); check.Faults != nil {
		t.Errorf("the audit is %+v", check)
	}
}

// The name of an operator's token is kept while the audit of
// any organization has it, maybe in its newest line for years.
func TestOperatorsStayWhileLinesNameThem(t *testing.T) {
	pool, noon := tenantstest.Open(t), tenantstest.Noon
	events, operator := projections.NewEvents(pool), tenants.Origin{Actor: "tok_op", Kind: tenants.ServiceTokenActor}
	issued := func(id, hash string, at time.Time) tenants.Event {
		digest := tenants.SecretDigest{Hash: strings.Repeat(hash, 64), First: "ab12", Last: "9f3e"}
		return tenants.ServiceTokenIssued{ServiceToken: id, Organization: tenants.Installation, Name: "Operator", Scopes: []string{"x:y"}, Digest: digest, At: at}
	}
	decide := func(who tenants.Origin, organization, noun, id string, version int64, event tenants.Event) {
		t.Helper()
		testenv.Must(t, events.Append(t.Context(), unitofwork.Stream(organization, noun, id), version, who.Metadata(), event))
	}
	decide(operator, tenants.Installation, "service-token", "tok_op", 0, issued("tok_op", "e", noon))
	decide(operator, "org_b", "project", "prj_y", 0, tenants.ProjectCreated{Project: "prj_y", Organization: "org_b", Name: "Y", At: noon.AddDate(0, 1, 0)})
	decide(operator, tenants.Installation, "service-token", "tok_op", 1, tenants.ServiceTokenRevoked{ServiceToken: "tok_op", At: noon.AddDate(0, 2, 0)})
	decide(operator, tenants.Installation, "service-token", "tok_next", 0, issued("tok_next", "f", noon.AddDate(0, 20, 0)))
	testenv.Must(t, asSystem(t, pool, `DELETE FROM service_tokens WHERE id = 'tok_op'`))
	ofOperator := `SELECT count(*) FROM events WHERE stream = 'service-token/tok_op'`
	pruneAudit(t, pool, noon.AddDate(2, 0, 0))
	if check, n := checkAudit(t, pool, "org_b"), count(t, pool, ofOperator); check.Lines != 1 || check.Faults != nil || n != 2 {
		t.Errorf("the quiet organization's audit: %+v; %d events of the token are left", check, n)
	}
	decide(tenants.Origin{}, tenants.Installation, "service-token", "tok_next", 1, tenants.ServiceTokenRevoked{ServiceToken: "tok_next", At: noon.AddDate(2, 1, 0)})
	decide(tenants.Origin{}, "org_b", "project", "prj_y", 1, tenants.ProjectRenamed{Project: "prj_y", Name: "Z", At: noon.AddDate(2, 1, 0)})
	pruneAudit(t, pool, noon.AddDate(4, 0, 0))
	if n := count(t, pool, ofOperator); n != 0 {
		t.Errorf("%d events of the token are left when no line names it", n)
	}
}

// A key whose row is gone is named by the newest line of a quiet organization,
// and one of a deleted project by lines about others: neither is a fault.
func TestReportsOutliveTheirKeys(t *testing.T) {
	report := tenants.ChangeReported{Project: "prj_x", Action: "error_rules.set", TargetKind: "project", Target: "prj_x", At: tenantstest.Noon.AddDate(0, 1, 0)}
	decide := func(t *testing.T, pool *pgxpool.Pool, number string) {
		t.Helper()
		by := tenants.Origin{Actor: "key_x", Kind: tenants.APIKeyActor, Address: "192.0.2.7"}
		testenv.Must(t, projections.NewEvents(pool).Append(t.Context(), unitofwork.Stream("org_a", "report", "prj_x/"+number), 0, by.Metadata(), report))
	}
	keys := count // of events of the key
	const ofKey = `SELECT count(*) FROM events WHERE stream = 'api-key/key_x' AND name <> 'erased'`
	for name, end := range map[string]func(t *testing.T, pool *pgxpool.Pool){
		"its row is gone": func(t *testing.T, pool *pgxpool.Pool) {
			t.Helper()
			testenv.Must(t, asSystem(t, pool, `DELETE FROM api_keys WHERE id = 'key_x'`))
			pruneAudit(t, pool, tenantstest.Noon.AddDate(2, 0, 0))
			if n := keys(t, pool, ofKey); n != 1 {
				t.Errorf("%d events of the key are left", n)
			}
		},
		"its project is erased": func(t *testing.T, pool *pgxpool.Pool) {
			t.Helper()
			err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
				erased, err := eventstorepg.EraseTx(t.Context(), tx, "org_a", []string{"api-key/key_x"})
				if err != nil {
					return err
				}
				return audit.Reduce(t.Context(), tx, "org_a", "prj_a", erased)
			})
			testenv.Must(t, err)
			decided(t, pool, 0, tenants.DeletionRequested{Deletable: doomed, At: tenantstest.Noon}, tenants.DeletionBegun{Deletable: doomed, At: tenantstest.Noon})
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool := openWithProject(t)
			appendEvents(t, pool, "api-key", "key_x", 0, tenants.APIKeyIssued{APIKey: "key_x", Organization: "org_a", Project: "prj_a", Environment: tenants.Dev,
				Name: "deploy", Digest: tenants.SecretDigest{Hash: strings.Repeat("f", 64), First: "ab12", Last: "9f3e"}, At: tenantstest.Noon})
			decide(t, pool, "1")
			end(t, pool)
			decide(t, pool, "2") // late
			if check := checkAudit(t, pool, "org_a"); check.Faults != nil {
				t.Errorf("%v", check.Faults)
			}
		})
	}
}

// A change behind an anchor is found, and so is a false anchor.
func TestTamperingBehindAnAnchorIsFound(t *testing.T) {
	for name, test := range map[string]struct{ statement, want string }{
		"a line":           {`UPDATE audit_events SET actor = 'mem_x' WHERE organization = 'org_a'`, "was changed"},
		"the anchor":       {`UPDATE audit_anchors SET hash = repeat('0', 64) WHERE organization = 'org_a'`, "does not follow"},
		"the anchor gone":  {`DELETE FROM audit_anchors WHERE organization = 'org_a'`, "is missing"},
		"the anchor moved": {`UPDATE audit_anchors SET position = position - 1, sequence = sequence - 1 WHERE organization = 'org_a'`, "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := openWithProject(t)
			pruneAudit(t, pool, tenantstest.Noon.AddDate(0, 13, 0))
			disableTriggers(t, pool)
			for _, statement := range []string{`ALTER TABLE audit_anchors DISABLE TRIGGER USER`, test.statement} {
				testenv.Must(t, asSystem(t, pool, statement))
			}
			if check := checkAudit(t, pool, "org_a"); len(check.Faults) == 0 || !strings.Contains(check.Faults[0].String(), test.want) {
				t.Errorf("found %v", check.Faults)
			}
		})
	}
}

// Lines without an anchor stay, and an anchor never moves back.
func TestLinesGoBehindAnchorsAlone(t *testing.T) {
	pool := openWithProject(t)
	pruneAudit(t, pool, tenantstest.Noon.AddDate(0, 13, 0))
	for _, statement := range []string{
		`DELETE FROM audit_events`, `UPDATE audit_anchors SET sequence = 1`, `UPDATE audit_anchors SET hash = repeat('0', 64)`,
	} {
		if err := asSystem(t, pool, statement); !refused(err) {
			t.Errorf("%s: got %v", statement, err)
		}
	}
}

var doomed = tenants.Deletable{Organization: "org_a", Project: "prj_a"}

// decided appends events about the deletion of org_a's project.
func decided(t *testing.T, pool *pgxpool.Pool, before int64, events ...tenants.Event) {
	t.Helper()
	stream := eventstore.Stream{Organization: "org_a", Name: "deletion/prj_a"}
	testenv.Must(t, projections.NewEvents(pool).Append(t.Context(), stream, before, nil, events...))
}

// reduced erases the second stream of org_a,
// its project, and reduces its lines.
func reduced(t *testing.T, pool *pgxpool.Pool) (left tenants.Reduction) {
	t.Helper()
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		erased, err := eventstorepg.EraseTx(t.Context(), tx, "org_a", []string{"1"})
		if err != nil {
			return err
		}
		if err := audit.Reduce(t.Context(), tx, "org_a", "prj_a", erased); err != nil {
			return err
		}
		left, err = audit.Reduced(t.Context(), tx, "org_a", "prj_a")
		return err
	})
	testenv.Must(t, err)
	return left
}

// Lines of what is deleted keep who did what, and the chain
// holds: during the erasure, and after that by its last event.
func TestReducedLinesAreAttested(t *testing.T) {
	pool := tenantstest.OpenOwned(t)
	decided(t, pool, 0, tenants.DeletionRequested{Deletable: doomed, At: tenantstest.Noon}, tenants.DeletionBegun{Deletable: doomed, At: tenantstest.Noon})
	left := reduced(t, pool)
	if got := checkAudit(t, pool, "org_a"); got.Faults != nil || left.Lines != 1 {
		t.Errorf("while it is erased: %d lines are reduced, %v", left.Lines, got.Faults)
	}
	decided(t, pool, 2, tenants.DeletionFinished{Deletable: doomed, At: tenantstest.Noon, ReducedLines: left.Lines, ReducedHash: left.Hash()})
	if got := checkAudit(t, pool, "org_a"); got.Faults != nil || got.Lines != perOrganization+3 {
		t.Errorf("after that: %d lines, %v", got.Lines, got.Faults)
	}
	disableTriggers(t, pool)
	testenv.Must(t, asSystem(t, pool, `UPDATE audit_events SET actor = 'mem_x' WHERE reduced_by = 'prj_a'`))
	if got := checkAudit(t, pool, "org_a"); len(got.Faults) != 1 || !strings.Contains(got.Faults[0].Detail, "reduced") {
		t.Errorf("a reduced line that was changed: %v", got.Faults)
	}
}

// A line reduced without a deletion is found,
// and so is an event that was erased alone.
func TestOtherReductionsAreFound(t *testing.T) {
	for name, tamper := range map[string]func(pool *pgxpool.Pool) error{
		"reduced and erased": func(pool *pgxpool.Pool) error {
			reduced(t, pool)
			return nil
		},
		"reduced": func(pool *pgxpool.Pool) error {
			return asSystem(t, pool, `UPDATE audit_events SET address = '', client = '', request = '', reduced_by = 'prj_x' WHERE organization = 'org_a' AND sequence = 2`)
		},
		"erased": func(pool *pgxpool.Pool) error {
			return asSystem(t, pool, `UPDATE events SET name = 'erased', data = '{}' WHERE organization = 'org_a' AND stream = '1'`)
		},
	} {
		pool := tenantstest.Open(t)
		testenv.Must(t, tamper(pool))
		if got := checkAudit(t, pool, "org_a"); len(got.Faults) == 0 {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

// The database allows a reduction of a line once, and no other change.
func TestLinesAreOnlyReduced(t *testing.T) {
	pool := tenantstest.Open(t)
	for _, statement := range []string{
		`UPDATE audit_events SET target_name = 'another', reduced_by = 'prj_x'`, `UPDATE audit_events SET target_name = ''`,
		`UPDATE audit_events SET after = '{}', reduced_by = 'prj_x'`,
	} {
		if err := asSystem(t, pool, statement); !refused(err) {
			t.Errorf("%s: %v", statement, err)
		}
	}
	const reduce = `UPDATE audit_events SET target_name = '', address = '', client = '', request = '', reduced_by = 'prj_x'`
	if err := asSystem(t, pool, reduce); err != nil {
		t.Error(err)
	}
	if err := asSystem(t, pool, reduce); !refused(err) {
		t.Errorf("again: %v", err)
	}
}
