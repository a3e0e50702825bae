//go:build replicas

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/deploy/prometheus/recording"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// maxTriesInEvents limits a post's tries: while nothing can be
// committed, the answers ask for another try each second.
const maxTriesInEvents = 20

// Two replicas of each service under load survive typical events.
// Nothing is lost or doubled, the right alerts fire, and outside of
// these events answers are fast.
func TestAvailable(t *testing.T) {
	a := &available{recordings: newRecordings(t), cluster: kafkatest.Faulty(t, 3), database: postgrestest.NewPair(t), programs: today(t)}
	a.replicated = replicate(t, a.programs, map[string]string{
		"WEIR_BROKERS": strings.Join(a.cluster.Brokers(), ","), "WEIR_DATABASE_URL": a.database.URL,
		"WEIR_LEDGER_CHECK_INTERVAL": "1s", // so that each phase has rounds
	})
	in := a.front()
	a.seen = in.watch()
	loaded, m, sent := in.tenant(t, t.Context(), "loaded", "scale"), &maker{mark: "loaded"}, &history{}
	asking := in.tenant(t, t.Context(), "asking", "scale")
	traffic(t, t.Context(), in, loaded, m, sent, func(ctx context.Context, underway <-chan struct{}) {
		a.happens(restarted, a.restart)
		a.happens(brokerLost, func(lasts func()) { a.loseBroker(ctx, underway, lasts) })
		a.happens(failedOver, a.failOver)
		a.happens(expired, a.expire)
		a.happens(brokersLost, func(lasts func()) { a.loseMajority(ctx, asking, lasts) })
		a.seen.calm(t)
	})
	a.quiet("WeirRecordsParked", "weir_bus_parked_records_total")
	a.quiet("WeirConsumerHalted", "weir_bus_halted_partitions")
	a.quiet("WeirBooksViolated", "weir_ledger_violations_total")
	a.seen.check(t, maxTriesInEvents)
	a.seen.fast(t, a.events)
	a.recordings.judge()
	verify(t, t.Context(), in, loaded, sent)
	a.stop()
	a.verify(a.programs)
}

// An available installation is one to which events happen.
type available struct {
	*replicated

	recordings *recordings
	programs   release
	cluster    *kafkatest.Cluster
	database   *postgrestest.Pair
	seen       *answers
	events     []event
}

// happens makes something happen after an undisturbed phase, and
// records both. What happens calls lasts when it is to be recorded.
func (a *available) happens(name string, what func(lasts func())) {
	a.t.Helper()
	a.seen.calm(a.t)
	f := a.recordings.begin(name, a.processes())
	begun := time.Now()
	what(func() { testenv.Must(a.t, f.Phase(a.t.Context(), recording.FaultMinutes, a.processes())) })
	a.events = append(a.events, event{begun, time.Now()})
	a.t.Logf("%s took %s", name, time.Since(begun).Round(time.Millisecond))
}

// restart restarts each replica in turn.
func (a *available) restart(lasts func()) {
	for number := range replicasEach {
		for _, s := range a.services {
			a.replace(s, number, a.programs)
		}
	}
	lasts()
}

// loseBroker kills one of three, and starts it once posts succeed without it.
func (a *available) loseBroker(ctx context.Context, underway <-chan struct{}, lasts func()) {
	const lacking = "weir_bus_under_replicated_partitions"
	a.quiet("WeirPartitionsUnderReplicated", lacking)
	aim(ctx, underway)
	a.cluster.Nodes[0].Kill(a.t)
	a.seen.calm(a.t)
	a.raises("WeirPartitionsUnderReplicated", lacking, func(now []float64) bool { return len(now) > 0 && slices.Max(now) > 0 })
	lasts()
	a.diagnose("broker", a.cluster.Nodes[0].Address())
	a.cluster.Nodes[0].Start(a.t)
	a.await(lacking, func(now []float64) bool { return sum(now) == 0 }) // they look once a minute
}

// loseMajority kills two of three, among them all leaders since the
// first was lost, and starts them. Meanwhile other clients send without
// waiting for answers.
func (a *available) loseMajority(ctx context.Context, others tenant, lasts func()) {
	defer a.front().ask(ctx, others)()
	for _, node := range a.cluster.Nodes[1:] {
		node.Kill(a.t)
	}
	a.grows("WeirPublishingFails", "weir_bus_publish_unknown_records_total")
	lasts()
	for _, node := range a.cluster.Nodes[1:] {
		node.Start(a.t)
	}
}

// diagnose checks that the doctor finds this fault, and no other.
func (a *available) diagnose(check, subject string) {
	a.t.Helper()
	doctor := programs.Launch(a.t, a.programs.program("deploy/cmd/weir"), a.given, "doctor", "--json")
	_ = doctor.Wait() // it fails because of its finding
	var report struct {
		Findings []struct{ Check, Subject, Level, Seen string }
	}
	if err := json.Unmarshal([]byte(doctor.Output.String()), &report); err != nil {
		a.t.Errorf("the doctor: %v: %s", err, doctor.Output)
	}
	found := false
	for _, f := range report.Findings {
		this := f.Check == check && f.Subject == subject
		if f.Level == "fail" && !this {
			a.t.Errorf("the doctor finds a fault with %s %s, too: %s", f.Check, f.Subject, f.Seen)
		}
		found = found || f.Level == "fail" && this
	}
	if !found {
		a.t.Errorf("the doctor finds no fault with %s %s", check, subject)
	}
}

// failOver kills the primary and promotes the standby.
func (a *available) failOver(lasts func()) {
	a.database.FailOver(a.t)
	a.awaitReady()
	lasts()
}

// expire gives all processes an expired certificate, which no
// connection outlives, and then a valid one.
func (a *available) expire(lasts func()) {
	a.certify(time.Now().Add(-lifetime - time.Hour))
	a.awaitRefused("certificate has expired")
	a.raises("WeirCertificateExpires", "weir_tls_certificate_expiry_timestamp_seconds", func(ends []float64) bool {
		return slices.Min(ends) < float64(time.Now().Unix())
	})
	for _, module := range a.services[:len(a.services)-1] { // clients keep their connections to the gateway
		module.reset()
	}
	lasts()
	a.certify(time.Now())
	a.awaitReady()
}

// lifetime is that of localca's certificates.
const lifetime = 397 * 24 * time.Hour

// certify replaces the certificate of all processes by one of that time.
func (r *replicated) certify(at time.Time) {
	r.t.Helper()
	testenv.Must(r.t, os.Remove(r.certificates.Server))
	_, err := localca.Ensure(r.folder, at)
	testenv.Must(r.t, err)
}

// awaitRefused waits until a new connection fails for a reason.
func (r *replicated) awaitRefused(reason string) {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		in := r.front()
		defer in.api.Close()
		if err := in.api.Ready(r.t.Context()); err == nil || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("a new connection: %w, want %q", orNothing(err), reason)
		}
		return nil
	})
}

// awaitReady waits until new connections find every module ready.
func (r *replicated) awaitReady() {
	r.t.Helper()
	testenv.Eventually(r.t, r.burst)
}
