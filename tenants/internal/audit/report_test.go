package audit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// What another module reports is a line of the audit, once for each id, with the role of
// a member and the name of a key; nothing of projects that there are not.
func TestReports(t *testing.T) {
	pool := openWithProject(t)
	appendEvents(t, pool, "api-key", "key_x", 0, tenants.APIKeyIssued{APIKey: "key_x", Organization: "org_a", Project: "prj_x", Environment: tenants.Dev,
		Name: "deploy", Digest: tenants.SecretDigest{Hash: strings.Repeat("f", 64), First: "ab12", Last: "9f3e"}, At: tenantstest.Noon})
	keep := audit.NewReports(tenantstest.NewWriter(pool)).Keep
	consume := func(id, organization string, change contract.ChangeReported) error {
		value, err := json.Marshal(change)
		testenv.Must(t, err)
		record := weirbus.Record{Topic: contract.TopicGrouping, Value: value}
		for name, text := range (contract.Attributes{ID: id, Type: contract.TypeErrorsChangeReported, Time: change.At, Organization: organization}).Headers() {
			record.Headers = append(record.Headers, weirbus.Header{Key: name, Value: []byte(text)})
		}
		return pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
			err := bus.FactsConsumer{Report: keep, Deliver: func(context.Context, pgx.Tx, []tenants.Fact) error { return nil }}.
				Consume(t.Context(), tx, []weirbus.Record{record})
			var role string
			if err == nil && (tx.QueryRow(t.Context(), `SELECT current_setting('weir.organization')`).Scan(&role) != nil || role != "*") {
				t.Errorf("report %s leaves the transaction to %q", id, role)
			}
			return err
		})
	}
	change := contract.ChangeReported{
		Organization: "org_a", Project: "prj_x", Action: "error_rules.set", Target: contract.ReportedTarget{Kind: "project", ID: "prj_x"}, Actor: "mem_a",
		Request: "req_1", Address: "192.0.2.7", Client: "curl/8.5.0", Before: map[string]string{"version": "3"}, After: map[string]string{"version": "4", "added": "scrub email"},
		At: tenantstest.Noon.Add(time.Minute + 123),
	}
	byKey, unknown, foreign, bad, feigned := change, change, change, change, change
	byKey.Actor, byKey.Action, byKey.Address = "key_x", "error_group.resolved", "nowhere"
	unknown.Project = "prj_none"
	foreign.Organization = "org_b"
	bad.Action, feigned.Action = "no action", "member.removed"
	for _, c := range []struct {
		id     string
		change contract.ChangeReported
		parked bool
	}{{"1", change, false}, {"1", change, false}, {"2", byKey, false}, {"3", unknown, false}, {"4", foreign, true}, {"5", bad, true}, {"6", feigned, true}} {
		if err := consume(c.id, "org_a", c.change); (err != nil) != c.parked {
			t.Errorf("report %s: %v", c.id, err)
		}
	}
	keep = nil // as on the topics of other modules
	testenv.Must(t, consume("7", "org_a", change))
	lines, err := audit.NewStore(query.NewReader(pool)).Events(t.Context(), "org_a", tenants.AuditFilter{Organization: "org_a", Target: "prj_x", From: change.At.Add(-time.Second)}, 0, 10)
	testenv.Must(t, err)
	var got []string
	for _, l := range lines {
		got = append(got, strings.Join([]string{l.Action, string(l.Origin.Kind), l.ActorName, string(l.Origin.Role), l.Origin.Address, l.Origin.Client, l.Origin.Request, l.Before, l.After}, " "))
	}
	want := `error_group.resolved api_key deploy   curl/8.5.0 req_1 {"version":"3"} {"added":"scrub email","version":"4"}
error_rules.set member  admin 192.0.2.7 curl/8.5.0 req_1 {"version":"3"} {"added":"scrub email","version":"4"}`
	if strings.Join(got[:min(2, len(got))], "\n") != want {
		t.Errorf("the audit has\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if check := checkAudit(t, pool, "org_a"); check.Lines != perOrganization+6 || check.Faults != nil {
		t.Errorf("%d lines: %v", check.Lines, check.Faults)
	}
	appendEvents(t, pool, "project", "prj_x", 2, tenants.ProjectRenamed{Project: "prj_x", Name: "Again", At: tenantstest.Noon.AddDate(1, 0, 0)})
	pruneAudit(t, pool, tenantstest.Noon.AddDate(1, 11, 0))
	if n := count(t, pool, `SELECT count(*) FROM events WHERE stream LIKE 'report/%'`); n != 0 {
		t.Errorf("%d events are kept longer than their lines", n)
	}
}
