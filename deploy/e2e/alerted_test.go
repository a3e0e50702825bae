//go:build replicas

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/deploy/prometheus/recording"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Each fault, planted in two replicas of each service under load,
// raises the alerts that the page of runbooks names, and no others;
// before each, none fires. Nothing is lost or doubled.
func TestAlerted(t *testing.T) {
	a := &alerted{recordings: newRecordings(t), broker: kafkatest.Faulty(t, 1).Nodes[0], database: postgrestest.Faulty(t), programs: today(t)}
	a.replicated = replicate(t, a.programs, map[string]string{
		"WEIR_BROKERS": a.broker.Address(), "WEIR_DATABASE_URL": a.database.URL + "&pool_max_conns=5",
		"WEIR_INGEST_PUBLISH_TIMEOUT": "2s", "WEIR_LEDGER_CHECK_INTERVAL": "1s", // so that each phase sees some
	})
	in := a.front()
	a.seen = in.watch()
	loaded, m, sent := in.tenant(t, t.Context(), "loaded", "scale"), &maker{mark: "loaded"}, &history{}
	asking := in.tenant(t, t.Context(), "asking", "scale")
	traffic(t, t.Context(), in, loaded, m, sent, func(ctx context.Context, _ <-chan struct{}) {
		defer a.front().ask(ctx, asking)()
		for _, p := range plan {
			a.plant(p)
		}
	})
	a.recordings.judge()
	verify(t, t.Context(), in, loaded, sent)
	a.stop()
	a.verify(a.programs)
}

// An alerted installation is one to plant faults in.
type alerted struct {
	*replicated

	recordings *recordings
	programs   release
	broker     *fault.Server
	database   *postgrestest.Database
	seen       *answers
}

// A planted fault is done so many times, each recorded.
type planted struct {
	fault string
	times int
	do    func(*alerted) (heal func())
}

// plan are the faults in their order: after the last ones, the ledger
// has more to catch up.
var plan = []planted{
	{killed, 1, (*alerted).killOne},
	{againAndAgain, 4, (*alerted).killOne}, // one more than deployments cause
	{processGone, 1, (*alerted).loseOne},
	{brokerKilled, 1, (*alerted).killBroker},
	{brokerGone, 1, (*alerted).pauseBroker},
	{databaseBack, 1, (*alerted).killDatabase},
	{databaseGone, 1, (*alerted).cutDatabase},
	{expiring, 1, (*alerted).nearlyExpire},
	{inapplicable, 1, (*alerted).publishUnreadable},
	{endLost, 1, (*alerted).loseEnd},
	{booksChanged, 1, (*alerted).changeBooks},
}

// plant records an undisturbed phase, and then a fault.
func (a *alerted) plant(p planted) {
	a.settle()
	begun := time.Now()
	f := a.recordings.begin(p.fault, a.processes())
	for range p.times {
		heal := p.do(a)
		testenv.Must(a.t, f.Phase(a.t.Context(), recording.FaultMinutes/p.times, a.processes()))
		heal()
	}
	a.t.Logf("%s: recorded in %s", p.fault, time.Since(begun).Round(time.Second))
}

// settle waits until an earlier fault has no more effect, and then for
// posts that are applied after all late ones.
func (a *alerted) settle() {
	a.awaitReady()
	for metric, most := range map[string]float64{
		"weir_bus_lag_records": 100, "weir_bus_relay_lag_seconds": 1, "weir_bus_state_age_seconds": 5, "weir_bus_halted_partitions": 0,
	} {
		a.await(metric, func(now []float64) bool { return len(now) > 0 && slices.Max(now) <= most })
	}
	a.seen.calm(a.t)
}

// ask runs clients that post without waiting for answers, and read from
// every module, ignoring the answers, until stop.
func (in installation) ask(ctx context.Context, who tenant) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for m := (&maker{mark: "asking"}); ctx.Err() == nil; time.Sleep(disturbedPause) { // a pace, not a wait
			entry := m.plain()
			work.Go(func() { _, _ = in.api.Post(ctx, who.key, plainly(body(entry.text))) })
		}
	})
	work.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(disturbedPause) { // a pace, not a wait
			_, _ = in.api.Balance(ctx, who.billing, who.organization)
			_, _ = in.api.ErrorGroups(ctx, who.key, who.project)
			_, _ = in.api.Subscription(ctx, in.operator, who.organization)
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

func healed() {}

func (a *alerted) killOne() func() {
	a.loseOne()()
	return healed
}

func (a *alerted) loseOne() func() {
	s := a.service("GROUPING")
	s.remove(s.replicas[0].address)
	s.replicas[0].running.Kill()
	return func() { a.begin(s, s.replicas[0], a.programs) }
}

func (a *alerted) killBroker() func() {
	a.broker.Restart(a.t)
	return healed
}

func (a *alerted) pauseBroker() func() {
	a.broker.Pause(a.t)
	a.grows("WeirPublishingFails", "weir_bus_publish_unknown_records_total")
	return func() { a.broker.Resume(a.t) }
}

func (a *alerted) killDatabase() func() {
	a.database.Restart(a.t)
	return healed
}

func (a *alerted) cutDatabase() func() {
	a.database.Cut()
	a.grows("WeirTransactionsFail", "weir_bus_failed_transactions_total")
	return func() { testenv.Must(a.t, a.database.Network.Heal()) }
}

// nearlyExpire gives all processes a certificate that expires tomorrow.
func (a *alerted) nearlyExpire() func() {
	const day = 24 * time.Hour
	a.certify(time.Now().Add(day - lifetime))
	inTwoDays := float64(time.Now().Add(2 * day).Unix())
	a.raises("WeirCertificateExpires", "weir_tls_certificate_expiry_timestamp_seconds", func(ends []float64) bool { return slices.Max(ends) < inTwoDays })
	return func() { a.certify(time.Now()) }
}

func (a *alerted) publishUnreadable() func() {
	log := &kafka.Writer{Addr: kafka.TCP(a.broker.Address()), Topic: contract.TopicLogs}
	testenv.Must(a.t, log.WriteMessages(a.t.Context(), kafka.Message{
		Key: []byte("nobody"), Value: []byte("no header of ours"), Headers: []kafka.Header{{Key: "ce_type", Value: []byte(contract.TypeLogsAccepted)}},
	}))
	testenv.Must(a.t, log.Close())
	a.raises("WeirRecordsParked", "weir_bus_parked_records_total", func(now []float64) bool { return sum(now) == float64(len(consumers)) })
	return healed
}

// loseEnd puts the ledger's position in a partition beyond the log.
func (a *alerted) loseEnd() func() {
	const change = `UPDATE ledger.bus_positions SET next = next %s 1000000, halted = NULL WHERE group_name = 'ledger.quota' AND partition = 0`
	s := a.service("LEDGER")
	a.withoutReplicas(s, fmt.Sprintf(change, "+"))
	for _, one := range s.replicas {
		a.start(s, one, a.programs)
		s.add(one.address) // one is not ready, so the other answers readers
	}
	a.raises("WeirConsumerHalted", "weir_bus_halted_partitions", func(now []float64) bool { return sum(now) == 1 })
	a.raises("WeirLogLostEnd", "weir_ingest_log_lost_end", func(now []float64) bool { return sum(now) > 0 })
	return func() { a.whileStopped(s, fmt.Sprintf(change, "-")) }
}

// changeBooks moves a byte from the remaining to the used ones.
func (a *alerted) changeBooks() func() {
	const change = `UPDATE ledger.books SET grant_left = grant_left %s 1, consumed = consumed %s 1 WHERE consumed > 0`
	a.sql(fmt.Sprintf(change, "-", "+"))
	a.raises("WeirBooksViolated", "weir_ledger_violations_total", func(now []float64) bool { return sum(now) > 0 })
	return func() { a.whileStopped(a.service("LEDGER"), fmt.Sprintf(change, "+", "-")) } // a process caches books until it ends
}

// whileStopped changes the database while no replica of a service runs.
func (a *alerted) whileStopped(s *service, statement string) {
	a.withoutReplicas(s, statement)
	for _, one := range s.replicas {
		a.begin(s, one, a.programs)
	}
}

// withoutReplicas changes the database once no replica of a service runs.
func (a *alerted) withoutReplicas(s *service, statement string) {
	for _, one := range s.replicas {
		a.end(s, one)
	}
	a.sql(statement)
}

func (a *alerted) sql(statement string) {
	conn, err := pgx.Connect(a.t.Context(), a.database.URL)
	testenv.Must(a.t, err)
	defer conn.Close(context.WithoutCancel(a.t.Context()))
	_, err = conn.Exec(a.t.Context(), `SELECT set_config('weir.organization', '*', false); `+statement)
	testenv.Must(a.t, err)
}
