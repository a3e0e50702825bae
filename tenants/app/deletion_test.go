package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/app"
	schema "github.com/weirlog/weir/tenants/internal"
)

// erased publishes the other modules' reports of their erasure.
func (i *ingestor) erased(of tenants.Deletable) {
	for _, module := range []string{"grouping", "ingest", "ledger"} {
		i.publish(contract.TopicErasures, contract.TypeErased, of.ID()+"/"+module, contract.Erased{
			Organization: of.Organization, Project: of.Project, Module: module, Removed: map[string]int64{"rows": 7}, ErasedAt: time.Now(),
		})
	}
}

// reported publishes that somebody resolved an error.
func (i *ingestor) reported(of contract.ChangeReported) {
	of.Action, of.Target, of.Actor, of.At = "error_group.resolved", contract.ReportedTarget{Kind: "error_group", ID: "grp_1", Name: "Canary-Error"}, "mem_1", time.Now()
	i.publishFor(of.Organization, contract.TopicGrouping, contract.TypeErrorsChangeReported, of.Organization, of)
}

// deletion waits until a deletion is in a state.
func (p *process) deletion(t *testing.T, of tenants.Deletable, state tenants.DeletionState) (found map[string]any) {
	t.Helper()
	testenv.Eventually(t, func() error {
		for _, found = range p.must(t, 200, "GET", "/v1/deletions?organization="+of.Organization, "").items(t) {
			if found["id"] == of.ID() && found["state"] == string(state) {
				return nil
			}
		}
		return fmt.Errorf("%w: %v", errNotYet, found)
	})
	return found
}

// What is deleted is hidden and refused on return, then gone from every
// table, and from the topics once they are compacted. The rest is whole, and
// so is the audit's chain. A process that ends in the middle changes nothing.
func TestDeletedIsGone(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, operatorToken)
	n, others := w.follow(t), w.ingestor(t)
	acme, kept := p.tenant(t, "Canary-Acme"), p.tenant(t, "Kept")
	doomed := p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": kept.organization, "name": "Canary-Project"})).get("id")
	key := p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": doomed, "environment": "dev", "name": "Canary-Key"}))
	p.must(t, 200, "POST", "/v1/api-keys/"+key.get("id")+"/revoke", `{"reason":"Canary-Reason"}`)
	p.must(t, 201, "POST", "/v1/members", text(map[string]any{"organization": acme.organization, "email": "canary@example.com", "name": "Canary-Member",
		"role": "owner", "password": "correct horse battery"}))
	p.browser("192.0.2.77").signIn(t, "canary@example.com", "correct horse battery")
	for _, of := range []contract.ChangeReported{{Organization: acme.organization, Project: acme.project}, {Organization: kept.organization, Project: doomed}} {
		others.reported(of)
		testenv.Eventually(t, func() error {
			if lines := p.auditOf(t, of.Organization, "&action=error_group.resolved"); len(lines) != 1 || !strings.Contains(text(lines), "Canary-Error") {
				return fmt.Errorf("%w: %v", errNotYet, lines)
			}
			return nil
		})
	}
	project, organization := tenants.Deletable{Organization: kept.organization, Project: doomed}, tenants.Deletable{Organization: acme.organization}

	p.must(t, 202, "DELETE", "/v1/projects/"+doomed, "")
	deleted := p.must(t, 202, "DELETE", "/v1/organizations/"+acme.organization, "")
	if deleted.get("id") != acme.organization || deleted.get("state") != "deleting" || deleted.get("gone_by") == "" {
		t.Errorf("answered %s", deleted.text)
	}
	if got := p.call(t, acme.token, "GET", "/v1/projects", ""); got.status != 401 {
		t.Errorf("its token: %d %s", got.status, got.text)
	}
	n.awaitLookup(t, acme.secret, identity.ErrRevoked)
	for path, want := range map[string]int{
		"/v1/organizations/" + acme.organization: 404, "/v1/projects?organization=" + acme.organization: 404, "/v1/api-keys?project=" + doomed: 404,
		"/v1/members?organization=" + acme.organization: 404, "/v1/organizations/" + kept.organization: 200,
	} {
		if got := p.call(t, operatorToken, "GET", path, ""); got.status != want {
			t.Errorf("%s: %d %s, want %d", path, got.status, got.text, want)
		}
	}
	p.must(t, 404, "POST", "/v1/projects", text(map[string]any{"organization": acme.organization, "name": "New"}))
	if page := p.browser("192.0.2.78").signIn(t, "canary@example.com", "correct horse battery"); page.status != 422 {
		t.Errorf("its owner signs in: %d", page.status)
	}

	p.stop() // in the middle: another one continues
	p = w.start(t, operatorToken)
	for _, of := range []tenants.Deletable{project, organization} {
		p.deletion(t, of, tenants.Erasing) // no module reports before it has begun
		others.erased(of)
	}
	for _, of := range []tenants.Deletable{project, organization} {
		removed := p.deletion(t, of, tenants.Gone)["removed"].(map[string]any)
		if len(removed) != len(contract.ErasingModules()) || removed["tenants"].(map[string]any)["events"] == 0.0 {
			t.Errorf("%s: removed %v", of.ID(), removed)
		}
	}
	n.awaitLookup(t, acme.secret, identity.ErrUnknown)
	n.awaitForgotten(t, `"state":"revoked"`)
	n.awaitLookup(t, kept.secret, nil)
	for table, rows := range w.rows(t) {
		if at := strings.Index(strings.ToLower(rows), "canary"); at >= 0 {
			t.Errorf("%s shows …%s…", table, rows[max(0, at-100):min(len(rows), at+100)])
		}
	}
	for key, record := range n.compacted() {
		if strings.Contains(strings.ToLower(record), "canary") {
			t.Errorf("%s shows %s", key, record)
		}
	}
	w.auditsAreIntact(t)
	if lines := p.auditOf(t, acme.organization, ""); len(lines) < 8 || lines[0]["action"] != "organization.deletion_finished" || strings.Contains(text(lines), "anary") {
		t.Errorf("what is left of its audit: %v", lines)
	}
	if got := p.must(t, 200, "GET", "/v1/projects?organization="+kept.organization, "").items(t); len(got) != 1 || got[0]["id"] != kept.project {
		t.Errorf("what is kept: %v", got)
	}
	if again := p.call(t, operatorToken, "DELETE", "/v1/projects/"+doomed, ""); again.status != 202 || again.get("state") != "gone" {
		t.Errorf("deleted again: %d %s", again.status, again.text)
	}
	if restored := p.call(t, operatorToken, "POST", "/v1/projects/"+doomed+"/restore", ""); restored.status != 409 {
		t.Errorf("restored: %d %s", restored.status, restored.text)
	}
}

// What was deleted is forgotten after 25 months: its ids
// are in no table and, after compaction, on no topic.
func TestDeletionsAreForgotten(t *testing.T) {
	clock := &watch{}
	w := newWorld(t)
	w.clock = clock.now
	p := w.start(t, operatorToken)
	n, others := w.follow(t), w.ingestor(t)
	acme, kept := p.tenant(t, "Acme"), p.tenant(t, "Kept")
	doomed := p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": kept.organization, "name": "Doomed"})).get("id")
	for _, wave := range [][]tenants.Deletable{
		{{Organization: kept.organization, Project: doomed}, {Organization: acme.organization, Project: acme.project}}, {{Organization: acme.organization}},
	} {
		for _, of := range wave {
			p.must(t, 202, "DELETE", "/v1/"+of.Kind()+"s/"+of.ID(), "")
		}
		for _, of := range wave {
			p.deletion(t, of, tenants.Erasing)
			others.erased(of)
		}
		for _, of := range wave {
			p.deletion(t, of, tenants.Gone)
		}
	}
	clock.pass(25 * 31 * 24 * time.Hour)
	p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": kept.organization, "name": "Later"})) // an audit's newest line stays
	testenv.Eventually(t, func() error {
		if err := p.Prune(t.Context()); err != nil {
			return err
		}
		return w.checkForgotten(t, n, acme.organization, acme.project, doomed)
	})
	w.auditsAreIntact(t)
	if got := p.must(t, 200, "GET", "/v1/projects?organization="+kept.organization, "").items(t); len(got) != 2 {
		t.Errorf("what is kept: %v", got)
	}
}

// What was deleted and restored still exists after
// 25 months: only its deletion is forgotten.
func TestRestoredIsKept(t *testing.T) {
	clock := &watch{}
	w := newWorld(t)
	w.clock, w.grace = clock.now, time.Hour
	p := w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	for _, path := range []string{"/v1/projects/" + acme.project, "/v1/organizations/" + acme.organization} {
		p.must(t, 202, "DELETE", path, "")
		p.must(t, 200, "POST", path+"/restore", "")
	}
	clock.pass(25 * 31 * 24 * time.Hour)
	if err := p.Prune(t.Context()); err != nil || strings.Contains(w.rows(t)["deletions"], acme.project) {
		t.Errorf("its deletion is not forgotten: %v", err)
	}
	p.must(t, 200, "PATCH", "/v1/organizations/"+acme.organization, `{"name":"Renamed"}`)
	if got := p.must(t, 200, "GET", "/v1/projects?organization="+acme.organization, "").items(t); len(got) != 1 || got[0]["id"] != acme.project {
		t.Errorf("its projects: %v", got)
	}
	w.auditsAreIntact(t)
}

// checkForgotten is nil if ids are in no table and in no record but tombstones.
func (w world) checkForgotten(t *testing.T, n *neighbour, ids ...string) error {
	t.Helper()
	newest := map[string]string{}
	for _, record := range n.kept() {
		newest["record "+string(record.Key)] = string(record.Value)
	}
	maps.Copy(newest, w.rows(t))
	for place, text := range newest {
		for _, id := range ids {
			if strings.Contains(text, id) {
				return fmt.Errorf("%s shows %s: %s", place, id, text)
			}
		}
	}
	return nil
}

// Facts about a key leave the topic with the key's events,
// which are the only way to find them, even if its organization
// is deleted later. So does a project's replaced name.
func TestFactsOfLongEndedKeysAreTakenBack(t *testing.T) {
	clock := &watch{}
	w := newWorld(t)
	w.clock = clock.now
	p := w.start(t, operatorToken)
	n, others := w.follow(t), w.ingestor(t)
	acme := p.tenant(t, "Acme")
	key := p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": acme.project, "environment": "dev", "name": "Canary-Key"}))
	p.must(t, 200, "POST", "/v1/api-keys/"+key.get("id")+"/revoke", `{"reason":"Canary-Reason"}`)
	for _, name := range []string{"Canary-Project", "Shop-by-now"} {
		p.must(t, 200, "PATCH", "/v1/projects/"+acme.project, text(map[string]any{"name": name}))
	}
	clock.pass(420 * 24 * time.Hour)
	p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": acme.organization, "name": "Later"})) // an audit's newest line stays
	testenv.Must(t, p.Prune(t.Context()))
	if events := w.rows(t)["events"]; strings.Contains(events, "Canary") {
		t.Fatal("the events of the key, or the project's name before, are kept")
	}
	n.awaitForgotten(t, "canary")
	if shown := text(n.compacted()); !strings.Contains(shown, "Shop-by-now") {
		t.Errorf("the project's name is taken back: %s", shown)
	}
	p.must(t, 200, "PATCH", "/v1/projects/"+acme.project, `{"name":"Shop-of-today"}`) // whose stream now begins with a gap
	n.awaitRecord(t, "shop-of-today")

	organization := tenants.Deletable{Organization: acme.organization}
	p.must(t, 202, "DELETE", "/v1/organizations/"+acme.organization, "")
	p.deletion(t, organization, tenants.Erasing)
	others.erased(organization)
	p.deletion(t, organization, tenants.Gone)
	n.awaitForgotten(t, "canary")
	testenv.Must(t, p.Prune(t.Context()))
	if left := w.rows(t)["withdrawals"]; left != "" {
		t.Errorf("what was taken back long ago is kept: %s", left)
	}
	w.auditsAreIntact(t)
}

// awaitRecord waits for a record that contains a mark.
func (n *neighbour) awaitRecord(t *testing.T, mark string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if shown := text(n.compacted()); !strings.Contains(strings.ToLower(shown), mark) {
			return fmt.Errorf("no record shows %q", mark)
		}
		return nil
	})
}

// awaitForgotten waits until compaction leaves nothing that contains a mark.
func (n *neighbour) awaitForgotten(t *testing.T, mark string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		for key, record := range n.compacted() {
			if strings.Contains(strings.ToLower(record), mark) {
				return fmt.Errorf("%s shows %s", key, record)
			}
		}
		return nil
	})
}

// During the grace, a deletion can be
// cancelled; then all is as before.
func testDeletionIsCancelled(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	for _, path := range []string{"/v1/projects/" + acme.project, "/v1/organizations/" + acme.organization, "/v1/projects/" + acme.project} {
		p.must(t, 202, "DELETE", path, "")
		n.awaitLookup(t, acme.secret, identity.ErrRevoked)
		if got := p.must(t, 202, "DELETE", path, ""); got.get("state") != "deleting" {
			t.Errorf("deleted again: %s", got.text)
		}
		if got := p.must(t, 200, "POST", path+"/restore", ""); got.get("state") != "cancelled" {
			t.Errorf("restored: %s", got.text)
		}
		n.awaitLookup(t, acme.secret, nil)
		p.awaitStatus(t, acme.token, "/v1/projects", 200)
	}
	if got := p.must(t, 200, "GET", "/v1/api-keys?project="+acme.project, "").items(t); len(got) != 1 {
		t.Errorf("its keys: %v", got)
	}
}

// rows are all rows of all tables, as sorted text.
func (w world) rows(t *testing.T) map[string]string {
	t.Helper()
	pool, err := pg.Open(t.Context(), w.database, schema.Name)
	testenv.Must(t, err)
	defer pool.Close()
	all := map[string]string{}
	err = pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		found, err := tx.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`)
		if err != nil {
			return err
		}
		tables, err := pgx.CollectRows(found, pgx.RowTo[string])
		if len(tables) < 10 {
			return errors.Join(err, fmt.Errorf("there are only the tables %q", tables))
		}
		for _, table := range tables {
			var text *string
			err = errors.Join(err, tx.QueryRow(t.Context(), `SELECT string_agg(r::text, E'\n' ORDER BY r::text) FROM `+table+` r`).Scan(&text))
			if text != nil {
				all[table] = *text
			}
		}
		return err
	})
	testenv.Must(t, err)
	return all
}

// compacted is what compaction leaves of a
// neighbour's records: the newest of each key.
func (n *neighbour) compacted() map[string]string {
	left := map[string]string{}
	for _, record := range n.kept() {
		headers, _ := json.Marshal(record.Headers)
		left[record.Topic+" "+string(record.Key)] = string(headers) + string(record.Value)
	}
	return left
}

func (w world) auditsAreIntact(t *testing.T) {
	t.Helper()
	err := app.CheckAudits(context.WithoutCancel(t.Context()), httpapi.Secret(w.database), "", func(organization string, check tenants.AuditCheck) {
		if len(check.Faults) > 0 {
			t.Errorf("the audit of %s: %v", organization, check.Faults)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
