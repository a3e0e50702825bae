package app_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/port"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/tenants/app"
)

// Two replicas, of which one publishes, decide as one.
func TestReplicas(t *testing.T) {
	w := newWorld(t)
	w.bounds = app.BoundsConfig{MaxProjects: 5}
	first, second := w.start(t, operatorToken), w.start(t, operatorToken)
	for name, test := range map[string]func(t *testing.T, first, second *process){
		"CredentialsCross": testCredentialsCross, "CodesWorkOnceAtTheSameMoment": testCodesWorkOnceAtTheSameMoment,
		"TheLastOwnerStays": testTheLastOwnerStays, "ProjectsAreLimited": testProjectsAreLimited,
	} {
		t.Run(name, func(t *testing.T) { test(t, first, second) })
	}
}

// The decision of a replica without the relay is in force in the other one,
// too, and a session at once. make bench-revocation measures how quickly.
func testCredentialsCross(t *testing.T, first, second *process) {
	acme := second.tenant(t, "Acme")
	b := first.signedIn(t, acme, "viewer")
	b.p = second
	if got := b.get(t, projectsPage); got.status != 200 {
		t.Errorf("the other replica does not let the member in: %d", got.status)
	}
	first.awaitStatus(t, acme.token, "/v1/projects", 200)
	second.must(t, 200, "POST", "/v1/service-tokens/"+acme.tokenID+"/revoke", "")
	first.awaitStatus(t, acme.token, "/v1/projects", 401)
}

// A code works once, even in two replicas at once.
func testCodesWorkOnceAtTheSameMoment(t *testing.T, first, second *process) {
	acme := first.tenant(t, "Acme")
	for round := range 3 {
		email := fmt.Sprintf("bob%d@example.com", round)
		code := first.must(t, 201, "POST", "/v1/invitations", text(invitation(acme.organization, email, "viewer"))).get("code")
		statuses := make([]int, 2)
		var group sync.WaitGroup
		for i, p := range []*process{first, second} {
			group.Go(func() {
				statuses[i] = p.browser("192.0.2.30").post(t, "/console/join", registration(code, email)).status
			})
		}
		group.Wait()
		if statuses[0]+statuses[1] != 303+422 {
			t.Errorf("round %d: %v", round, statuses)
		}
	}
}

// An organization keeps an owner, even if two
// replicas demote or remove two of them at once.
func testTheLastOwnerStays(t *testing.T, first, second *process) {
	ways := map[string]func(p *process, id string) answer{
		"demoted": func(p *process, id string) answer {
			return p.call(t, operatorToken, "PATCH", "/v1/members/"+id, `{"role":"viewer"}`)
		},
		"removed": func(p *process, id string) answer {
			return p.call(t, operatorToken, "POST", "/v1/members/"+id+"/remove", "")
		},
	}
	for name, way := range ways {
		acme := first.tenant(t, name)
		for round := range 4 {
			owners := []string{
				first.add(t, acme.organization, fmt.Sprintf("%s-a%d@example.com", name, round), "owner"),
				first.add(t, acme.organization, fmt.Sprintf("%s-b%d@example.com", name, round), "owner"),
			}
			if round > 0 { // one is left of before
				way(first, ownersOf(t, first, acme)[0])
			}
			results := make([]answer, 2)
			var group sync.WaitGroup
			for i, p := range []*process{first, second} {
				group.Go(func() { results[i] = way(p, owners[i]) })
			}
			group.Wait()
			if results[0].status+results[1].status != 200+409 || ownersOf(t, first, acme) == nil {
				t.Fatalf("%s, round %d: %d %s and %d %s", name, round, results[0].status, results[0].text, results[1].status, results[1].text)
			}
			for _, got := range results {
				if got.status == 409 && got.get("code") != "last_owner" {
					t.Errorf("refused with %s", got.text)
				}
			}
		}
	}
}

// An organization gets only so many projects, even from two
// processes at once. Repeated requests for existing ones are
// answered as before. Other organizations are unaffected.
func testProjectsAreLimited(t *testing.T, first, second *process) {
	acme, other := first.tenant(t, "Acme"), first.tenant(t, "Other") // which have one
	create := func(p *process, of tenant, name string, headers ...header) answer {
		return p.call(t, of.token, "POST", "/v1/projects", text(map[string]any{"organization": of.organization, "name": name}), headers...)
	}
	once := create(first, acme, "Once", header{"Idempotency-Key", "one"})
	var mu sync.Mutex
	var created, refused int
	var asking sync.WaitGroup
	for i := range 12 {
		asking.Go(func() {
			got := create([]*process{first, second}[i%2], acme, fmt.Sprint(i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case got.status == 201:
				created++
			case full(got, "projects", 5):
				refused++
			default:
				t.Errorf("project %d: %d %s", i, got.status, got.text)
			}
		})
	}
	asking.Wait()
	if created != 3 || refused != 9 {
		t.Errorf("%d were created, %d refused", created, refused)
	}
	if again := create(first, acme, "Once", header{"Idempotency-Key", "one"}); again.status != 201 || again.text != once.text {
		t.Errorf("the first again: %d %s", again.status, again.text)
	}
	if got := create(first, other, "Theirs"); got.status != 201 {
		t.Errorf("another organization: %d %s", got.status, got.text)
	}
}

const otherOperatorToken = "weirsvc_fedcba9876543210fedcba9876543210fedcba9876543210"

// A restart decides and publishes nothing new. It
// may publish the last record again, unchanged.
func TestRestartChangesNothing(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	p.must(t, 200, "POST", "/v1/api-keys/"+acme.key+"/revoke", "")
	testenv.Eventually(t, func() error { return w.published(t) })
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
			testenv.Eventually(t, func() error { // the revocation is published behind the token that readiness waits for
				if got := p.call(t, token, "GET", "/v1/organizations", ""); got.status != want {
					return fmt.Errorf("configured %s…, %s…: got %d %s, want %d", step.configured[:12], token[:12], got.status, got.text, want)
				}
				return nil
			})
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
	return pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
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
	for _, progress := range []string{"bus_relays", "bus_positions", "bus_read"} {
		delete(tables, progress)
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		all.WriteString(name + "\n" + tables[name] + "\n")
	}
	return all.String()
}

// During an outage of the broker, sessions that have ended change nothing.
// A key can be issued; its answer is late, and the key is in force after
// the outage.
func TestBrokerIsAway(t *testing.T) {
	directory := t.TempDir()
	number, err := port.Free()
	testenv.Must(t, err)
	broker := startBroker(t, directory, number)
	clock := &watch{}
	w := world{database: postgrestest.URL(t), brokers: []string{broker.Addr()}, log: &journal{}, inForceWait: 50 * time.Millisecond, clock: clock.now}
	p := w.start(t, operatorToken)
	before := p.tenant(t, "Before")
	p.add(t, before.organization, "olga@example.com", "owner")
	lost := testRoleLostBeforeThatIsConsumed(t, p, before)
	ended := testEndedBeforeThatIsConsumed(t, p, clock, before)
	testenv.Must(t, broker.Close())
	t.Run("RoleLost", lost)
	t.Run("Ended", ended)
	acme := p.tenant(t, "Acme")
	startBroker(t, directory, number)
	n := w.follow(t)
	testenv.Eventually(t, func() error {
		_, err := n.Lookup(acme.secret)
		return err
	})
}

func startBroker(t *testing.T, directory string, port int) *kafka.Broker {
	t.Helper()
	broker, err := kafka.Start(kafka.Config{Open: true, Dir: directory, Port: port, Logger: slog.New(slog.DiscardHandler)})
	testenv.Must(t, err)
	t.Cleanup(func() { _ = broker.Close() })
	return broker
}

// A bulk load of another module in the same
// database server does not delay a revocation.
func testRevocationWaitsForNobody(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	n.awaitLookup(t, acme.secret, nil)
	pool, err := pg.Open(t.Context(), postgrestest.Owner(p.world.database), "other")
	testenv.Must(t, err)
	defer pool.Close()
	testenv.Must(t, pg.Migrate(t.Context(), pool, "other"))
	err = pg.InTx(t.Context(), pool, func(load pgx.Tx) error {
		if _, err := load.Exec(t.Context(), `CREATE TABLE bulk AS SELECT generate_series(1, 1000)`); err != nil {
			return err
		}
		p.must(t, 200, "POST", "/v1/api-keys/"+acme.key+"/revoke", "")
		n.awaitLookup(t, acme.secret, identity.ErrRevoked)
		return nil
	})
	testenv.Must(t, err)
}
