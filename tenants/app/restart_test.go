package app_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

const otherOperatorToken = "weirsvc_fedcba9876543210fedcba9876543210fedcba9876543210"

// A restart decides and publishes nothing new. It
// may publish the last record again, unchanged.
func TestRestartChangesNothing(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	p.must(t, 200, "POST", "/v1/api-keys/"+acme.key+"/revoke", "")
	testenv.Eventually(t, timeout, func() error { return w.published(t) })
	p.stop()
	events, records := w.dump(t), w.follow(t).ids()
	p = w.start(t, operatorToken)
	if got := p.call(t, acme.token, "GET", "/v1/projects", ""); got.status != 200 || len(got.items(t)) != 1 {
		t.Errorf("after the restart: %d %s", got.status, got.text)
	}
	p.stop()
	if got := w.dump(t); got != events {
		t.Errorf("the tables changed from\n%s\nto\n%s", events, got)
	}
	if got := w.follow(t).ids(); !slices.Equal(got, records) {
		t.Errorf("the topics changed from %q to %q", records, got)
	}
	w.replaceOperator(t)
}

// replaceOperator restarts with another operator's token, which replaces
// the previous one; that stays revoked though it is configured again.
func (w world) replaceOperator(t *testing.T) {
	t.Helper()
	for _, step := range []struct {
		configured string
		works      map[string]int
	}{
		{otherOperatorToken, map[string]int{operatorToken: 401, otherOperatorToken: 200}}, {operatorToken, map[string]int{operatorToken: 401}},
	} {
		p := w.start(t, step.configured)
		for token, want := range step.works {
			if got := p.call(t, token, "GET", "/v1/organizations", ""); got.status != want {
				t.Errorf("configured %s…, %s…: got %d %s, want %d", step.configured[:12], token[:12], got.status, got.text, want)
			}
		}
		p.stop()
	}
	if !strings.Contains(w.log.String(), "configure another one") {
		t.Error("nobody is told why the operator's token is not in force")
	}
}

// ids returns the distinct ids of a neighbour's records, in order,
// without the markers that follow each comparison with the tables.
func (n *neighbour) ids() (ids []string) {
	for _, record := range n.kept() {
		if id := record.Header(contract.HeaderID); !strings.HasPrefix(id, contract.CredentialsComparedKey+"/") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// published fails until all events are published.
func (w world) published(t *testing.T) error {
	t.Helper()
	pool, err := pg.Open(t.Context(), w.database, "tenants")
	if err != nil {
		return err
	}
	defer pool.Close()
	return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		var behind int
		err := tx.QueryRow(t.Context(), `SELECT count(*) FROM events WHERE position > (SELECT position FROM bus_relays WHERE name = 'tenants')`).Scan(&behind)
		if err == nil && behind > 0 {
			err = fmt.Errorf("%d events are not published", behind)
		}
		return err
	})
}

// A secret is in the answer to its creation
// alone: in no table, no record, no log line.
func TestSecretsAreNowhere(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	p.call(t, acme.token, "GET", "/v1/projects?organization="+acme.secret, "")
	p.call(t, acme.secret, "GET", "/v1/projects", "")
	p.must(t, 200, "POST", "/v1/api-keys/"+acme.key+"/revoke", `{"reason":"leaked"}`)
	invited := p.must(t, 201, "POST", "/v1/invitations", text(invitation(acme.organization, "bob@example.com", "viewer"))).get("code")
	reset := p.must(t, 201, "POST", "/v1/members/"+p.add(t, acme.organization, "ada@example.com", "viewer")+"/reset-code", "").get("code")
	ada, chosen := p.browser("192.0.2.1"), "_battery staple horse"
	ada.post(t, "/console/join", registration(invited, "bob@example.com"))
	ada.post(t, "/console/reset", map[string]string{"code": reset, "password": chosen})
	ada.signIn(t, "ada@example.com", chosen)
	p.stop()
	places := map[string]string{"the tables": w.dump(t), "the log": w.log.String()}
	for _, record := range w.follow(t).kept() {
		places["the topic "+record.Topic] += string(record.Key) + string(record.Value) + text(record.Headers)
	}
	for _, topic := range []string{contract.TopicCredentials, contract.TopicTenants} {
		if places["the topic "+topic] == "" {
			t.Errorf("%s is empty: there was nothing to look through", topic)
		}
	}
	for _, secret := range []string{acme.secret, acme.token, operatorToken, invited, reset, chosen, ada.Session()} {
		_, digits, _ := strings.Cut(secret, "_")
		for place, content := range places {
			if strings.Contains(content, digits) || strings.Contains(content, digits[4:len(digits)-4]) {
				t.Errorf("a secret is in %s", place)
			}
		}
	}
}

// dump returns every row of every table of the schema
// as text, but for positions of relays and consumers.
func (w world) dump(t *testing.T) string {
	t.Helper()
	tables := w.rows(t)
	delete(tables, "bus_relays")
	delete(tables, "bus_positions")
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		all.WriteString(name + "\n" + tables[name] + "\n")
	}
	return all.String()
}
