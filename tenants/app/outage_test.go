package app_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/port"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// During an outage of the broker, sessions that have ended change nothing.
// A key can be issued; its answer is late, and the key is in force after
// the outage.
func TestBrokerIsAway(t *testing.T) {
	directory := t.TempDir()
	number, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	broker := startBroker(t, directory, number)
	clock := &watch{}
	w := world{database: postgrestest.URL(t), brokers: []string{broker.Addr()}, log: &journal{}, inForceWait: 50 * time.Millisecond, clock: clock.now}
	p := w.start(t, operatorToken)
	before := p.tenant(t, "Before")
	p.add(t, before.organization, "olga@example.com", "owner")
	lost := testRoleLostBeforeThatIsConsumed(t, p, before)
	ended := testEndedBeforeThatIsConsumed(t, p, clock, before)
	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("RoleLost", lost)
	t.Run("Ended", ended)
	acme := p.tenant(t, "Acme")
	startBroker(t, directory, number)
	n := w.follow(t)
	testenv.Eventually(t, timeout, func() error {
		_, err := n.Lookup(acme.secret)
		return err
	})
}

func startBroker(t *testing.T, directory string, port int) *kafka.Broker {
	t.Helper()
	broker, err := kafka.Start(kafka.Config{Open: true, Dir: directory, Port: port, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pg.Migrate(t.Context(), pool, "other"); err != nil {
		t.Fatal(err)
	}
	err = pg.InTx(t.Context(), pool, func(load pgx.Tx) error {
		if _, err := load.Exec(t.Context(), `CREATE TABLE bulk AS SELECT generate_series(1, 1000)`); err != nil {
			return err
		}
		p.must(t, 200, "POST", "/v1/api-keys/"+acme.key+"/revoke", "")
		n.awaitLookup(t, acme.secret, identity.ErrRevoked)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
