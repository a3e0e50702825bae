package notifications_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

var noPosition query.Position

func errNot(format string, args ...any) error { return fmt.Errorf(format, args...) }

// awaitDelivery waits until a delivery to a webhook is as expected.
func (r *room) awaitDelivery(t *testing.T, of notifications.Listed, ok func(notifications.Delivery) bool) notifications.Delivery {
	t.Helper()
	var last notifications.Delivery
	testenv.Eventually(t, func() error {
		found := r.sent(t, of)
		if len(found) != 1 || !ok(found[0]) {
			return errNot("the deliveries are %+v", found)
		}
		last = found[0]
		return nil
	})
	return last
}

// A fact goes to each subscribed webhook of its organization, once,
// however often it is published, with its data and a valid signature.
func TestAFactIsSent(t *testing.T) {
	to := newReceiver(t, 204)
	r := newRoom(t, to.Certificate())
	r.run(t)
	hook, secret := r.create(t, "org_a", to.URL+"/a")
	other, _ := r.create(t, "org_b", to.URL+"/b")
	fact := r.exhausted(t, "evt_1", "org_a")
	r.consume(t, fact, fact)
	r.consume(t, fact, r.record(t, "evt_2", "weir.ledger.v1.of_the_future", "org_a", map[string]string{}))
	got := to.await(t, 1)[0]
	verify(t, secret, got)
	taken := r.awaitDelivery(t, hook, func(d notifications.Delivery) bool { return d.State == notifications.Taken })
	if taken.Status != 204 || taken.Attempts != 1 || taken.ID != got.header.Get("webhook-id") || string(got.body) != taken.Body {
		t.Errorf("kept %+v of %v %s", taken, got.header, got.body)
	}
	for _, part := range []string{`{"type":"quota.exhausted","timestamp":"`, `"data":{"organization":"org_a"`, `"quota":5,"used":5`} {
		if !strings.Contains(taken.Body, part) {
			t.Errorf("%s lacks %s", taken.Body, part)
		}
	}
	if found := r.sent(t, other); len(found) != 0 || len(to.received()) != 1 {
		t.Errorf("org_b is sent %+v; %d messages in all", found, len(to.received()))
	}
	if now, err := r.service.Webhook(t.Context(), caller("org_a"), hook.Ref()); err != nil || now.TakenAt.IsZero() {
		t.Errorf("the webhook is %+v, %v", now, err)
	}
}

// What is not accepted is retried with the same id, later and later.
func TestFailuresComeAgain(t *testing.T) {
	to := newReceiver(t, 503)
	r := newRoom(t, to.Certificate())
	r.run(t)
	hook, secret := r.create(t, "org_a", to.URL)
	r.consume(t, r.exhausted(t, "evt_1", "org_a"))
	id := to.await(t, 1)[0].header.Get("webhook-id")
	for attempt := 1; attempt <= 2; attempt++ {
		failed := r.awaitDelivery(t, hook, func(d notifications.Delivery) bool {
			return d.Attempts == attempt && d.Status == 503 && !d.NextAt.Equal(d.AttemptedAt.Add(time.Minute))
		})
		pause, _ := webhook.RetryDelay(attempt, 0)
		if wait := failed.NextAt.Sub(failed.AttemptedAt); failed.State != notifications.Pending || wait > pause || wait < pause-pause/10 {
			t.Errorf("after %d failures it is %s for %v, want at most %v", attempt, failed.State, wait, pause)
		}
		if attempt == 2 {
			to.answers(200)
		}
		r.pass(pause)
		to.await(t, attempt+1)
	}
	taken := r.awaitDelivery(t, hook, func(d notifications.Delivery) bool { return d.State == notifications.Taken })
	for _, got := range to.received() {
		verify(t, secret, got)
		if got.header.Get("webhook-id") != id || taken.ID != id {
			t.Errorf("the id is %q, then %q", id, got.header.Get("webhook-id"))
		}
	}
}

// The claims of a sender that dies are taken over by others.
func TestAClaimRunsOut(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	hook, _ := r.create(t, "org_a", to.URL)
	r.consume(t, r.exhausted(t, "evt_1", "org_a"))
	if claimed, err := r.sender.ClaimForTest(t.Context()); err != nil || claimed != 1 {
		t.Fatalf("claimed %d, %v", claimed, err)
	}
	if again, err := r.sender.ClaimForTest(t.Context()); err != nil || again != 0 {
		t.Fatalf("claimed %d more, %v", again, err)
	}
	r.pass(time.Minute)
	r.run(t)
	if taken := r.awaitDelivery(t, hook, func(d notifications.Delivery) bool { return d.State == notifications.Taken }); taken.Attempts != 2 {
		t.Errorf("it was %+v", taken)
	}
}

// flood queues more for org_a than may be
// under way, and later something for org_b.
func (r *room) flood(t *testing.T, url string) (busy, quiet notifications.Listed) {
	t.Helper()
	busy, _ = r.create(t, "org_a", url)
	quiet, _ = r.create(t, "org_b", url)
	var flood []bus.Record
	for i := range 50 {
		flood = append(flood, r.exhausted(t, fmt.Sprint("evt_", i), "org_a"))
	}
	r.consume(t, flood...)
	r.pass(time.Second)
	r.consume(t, r.exhausted(t, "evt_quiet", "org_b"))
	return busy, quiet
}

// begun is how many deliveries to a webhook were claimed.
func (r *room) begun(t *testing.T, of notifications.Listed) (n int) {
	t.Helper()
	for _, d := range r.sent(t, of) {
		n += d.Attempts
	}
	return n
}

// Another organization's deliveries are claimed beside those
// of a flood, and no organization ever exceeds its share.
func TestOrganizationsComeInTurn(t *testing.T) {
	for underWay, most := range map[int]int{0: 4, 3: 1, 4: 0} {
		to := newReceiver(t, 200)
		r := newRoom(t, to.Certificate())
		busy, quiet := r.flood(t, to.URL)
		r.sender.BeginForTest("org_a", underWay)
		for range 2 {
			if _, err := r.sender.ClaimForTest(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := r.begun(t, busy), r.begun(t, quiet); a != most || b != 1 {
			t.Errorf("with %d under way, %d more are claimed, and %d of org_b, want %d and 1", underWay, a, b, most)
		}
	}
}

// A free worker takes a delivery of anyone who has
// fewest under way, not of the older backlog.
func TestNewcomersComeFirst(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	busy, quiet := r.flood(t, to.URL)
	r.sender.BeginForTest("org_a", 3)
	r.sender.BeginForTest("org_c", 28) // one of 32 is free
	if claimed, err := r.sender.ClaimForTest(t.Context()); err != nil || claimed != 1 || r.begun(t, quiet) != 1 {
		t.Errorf("claimed %d, %v: %d of org_a, %d of org_b", claimed, err, r.begun(t, busy), r.begun(t, quiet))
	}
}

// Three days without success switch a webhook off, and the audit has it. What
// is queued then has failed, until somebody switches it on and replays it.
func TestAWebhookThatFailsIsSwitchedOff(t *testing.T) {
	to := newReceiver(t, 500)
	r := newRoom(t, to.Certificate())
	r.run(t)
	hook, _ := r.create(t, "org_a", to.URL)
	r.consume(t, r.exhausted(t, "evt_1", "org_a"))
	for attempt := 1; attempt <= webhook.Attempts; attempt++ {
		to.await(t, attempt)
		r.awaitDelivery(t, hook, func(d notifications.Delivery) bool {
			return d.Attempts == attempt && d.Status == 500 && !d.NextAt.Equal(d.AttemptedAt.Add(time.Minute))
		})
		pause, _ := webhook.RetryDelay(attempt, 0)
		r.pass(pause)
	}
	off, err := r.service.Webhook(t.Context(), caller("org_a"), hook.Ref())
	if err != nil || off.On() || off.OffReason == "" {
		t.Fatalf("it is %+v, %v", off, err)
	}
	lines, err := audit.NewStore(query.NewReader(r.pool)).Events(t.Context(), "org_a", tenants.AuditFilter{Organization: "org_a", Action: "webhook.switched", Target: hook.ID}, 0, 10)
	if err != nil || len(lines) != 1 || lines[0].Origin.Kind != tenants.SystemActor {
		t.Errorf("the audit has %+v, %v", lines, err)
	}
	r.consume(t, r.exhausted(t, "evt_2", "org_a"))
	for _, d := range r.sent(t, hook) {
		if d.State != notifications.Failed {
			t.Errorf("while it is off: %+v", d)
		}
	}
	if _, err := r.deliveries.Test(t.Context(), by("org_a"), hook.Ref()); !errors.Is(err, tenants.ErrWebhookOff) {
		t.Errorf("a test of what is off: %v", err)
	}
	on := true
	to.answers(200)
	if _, err := r.service.Change(t.Context(), by("org_a"), hook.Ref(), tenants.ChangeWebhook{On: &on}); err != nil {
		t.Fatal(err)
	}
	if n, err := r.deliveries.ReplayFailed(t.Context(), by("org_a"), hook.Ref(), time.Time{}); err != nil || n != 2 {
		t.Fatalf("%d are sent again, %v", n, err)
	}
	to.await(t, webhook.Attempts+2)
}

// A webhook that accepts something meanwhile stays on, whatever
// the fate of a single message; 410 switches it off at once.
func TestWhatSwitchesOff(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	r.run(t)
	hook, _ := r.create(t, "org_a", to.URL)
	r.consume(t, r.exhausted(t, "evt_1", "org_a"))
	r.awaitDelivery(t, hook, func(d notifications.Delivery) bool { return d.State == notifications.Taken })
	to.answers(http.StatusGone)
	if _, err := r.deliveries.Replay(t.Context(), by("org_a"), hook.Ref(), r.sent(t, hook)[0].ID); err != nil {
		t.Fatal(err)
	}
	r.awaitDelivery(t, hook, func(d notifications.Delivery) bool { return d.State == notifications.Failed && d.Status == 410 })
	testenv.Eventually(t, func() error {
		if off, err := r.service.Webhook(t.Context(), caller("org_a"), hook.Ref()); err != nil || off.On() {
			return errNot("it is %+v, %v", off, err)
		}
		return nil
	})
}

// After a rotation both secrets sign, and each is shown once.
func TestRotation(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	r.run(t)
	hook, old := r.create(t, "org_a", to.URL)
	_, fresh, err := r.service.Rotate(t.Context(), by("org_a"), hook.Ref())
	if err != nil || fresh == old {
		t.Fatalf("rotated: %v, %v", fresh == old, err)
	}
	if _, _, err := r.service.Rotate(t.Context(), by("org_a"), hook.Ref()); !errors.Is(err, tenants.ErrWebhookRotated) {
		t.Errorf("again: %v", err)
	}
	if _, err := r.deliveries.Test(t.Context(), by("org_a"), hook.Ref()); err != nil {
		t.Fatal(err)
	}
	got := to.await(t, 1)[0]
	verify(t, old, got)
	verify(t, fresh, got)
}

// createBefore creates a webhook of org_a whose secret
// is derived from a key that is no longer configured.
func (r *room) createBefore(t *testing.T, url string) notifications.Listed {
	t.Helper()
	created := tenants.WebhookCreated{
		Webhook: "whk_before", Organization: "org_a", URL: url, Events: []string{"quota.exhausted"}, Format: tenants.StandardFormat,
		Secret: tenants.WebhookSecret{Key: "gone", Generation: 1}, At: r.clock(),
	}
	testenv.Must(t, r.work.Events.Append(t.Context(), eventstore.Stream{Organization: "org_a", Name: "webhook/whk_before"}, 0, nil, created))
	return notifications.Listed{Webhook: tenants.Webhook{Organization: "org_a", ID: "whk_before"}}
}

// asSystem runs statements as the system.
func (r *room) asSystem(t *testing.T, statements string) {
	t.Helper()
	if _, err := r.pool.Exec(t.Context(), `SET weir.organization = '*'; `+statements+`; RESET weir.organization`); err != nil {
		t.Fatal(err)
	}
}

// A webhook whose key is gone sends again after
// a rotation, and is not switched off for it.
func TestAKeyThatIsGone(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	hook := r.createBefore(t, to.URL)
	r.consume(t, r.exhausted(t, "evt_1", "org_a"))
	r.asSystem(t, fmt.Sprintf(`UPDATE deliveries SET attempts = %d`, webhook.Attempts-1))
	r.run(t)
	failed := r.awaitDelivery(t, hook, func(d notifications.Delivery) bool { return d.State == notifications.Failed })
	if now, err := r.service.Webhook(t.Context(), caller("org_a"), hook.Ref()); err != nil || !now.On() || failed.Failure == "" {
		t.Fatalf("after %+v it is %+v, %v", failed, now, err)
	}
	_, secret, err := r.service.Rotate(t.Context(), by("org_a"), hook.Ref())
	testenv.Must(t, err)
	if _, err := r.deliveries.Replay(t.Context(), by("org_a"), hook.Ref(), failed.ID); err != nil {
		t.Fatal(err)
	}
	verify(t, secret, to.await(t, 1)[0])
}

// A refused delivery shows no address of the network.
func TestFailuresShowNoAddress(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	hook, _ := r.create(t, "org_a", to.URL)
	to.Close()
	r.consume(t, r.exhausted(t, "evt_1", "org_a"))
	r.run(t)
	failed := r.awaitDelivery(t, hook, func(d notifications.Delivery) bool { return d.Failure != "" })
	if failed.Failure != "The endpoint takes no connection." {
		t.Errorf("it shows %q", failed.Failure)
	}
}

// Nothing is sent of what is to be deleted, nor of a fact that
// is older than the webhook, and an unreadable record is parked.
func TestWhatIsNotSent(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	before := r.exhausted(t, "evt_0", "org_a")
	r.pass(time.Second)
	hook, _ := r.create(t, "org_a", to.URL)
	foreign := r.exhausted(t, "evt_1", "org_b")
	foreign.Headers = r.exhausted(t, "evt_1", "org_a").Headers
	if err := r.tryConsume(t, foreign); !bus.IsPermanent(err) {
		t.Errorf("of another organization than its header says: %v", err)
	}
	r.asSystem(t, `UPDATE projects SET deletion = 'deleting' WHERE id = 'prj_a'`)
	r.consume(t, before, r.record(t, "evt_2", contract.TypeErrorGroupCreated, "org_a", contract.ErrorGroupCreated{ErrorGroup: contract.ErrorGroup{Organization: "org_a", Project: "prj_a"}}))
	if found := r.sent(t, hook); len(found) != 0 {
		t.Errorf("there are %+v", found)
	}
}

// A fact counts by when it was published, to the millisecond, and not by
// when it happened.
func TestFactsCountByTheirPublication(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	r.mu.Lock()
	r.now = r.now.Truncate(time.Millisecond).Add(999 * time.Microsecond)
	r.mu.Unlock()
	hook, _ := r.create(t, "org_a", to.URL)
	published := r.clock().Truncate(time.Millisecond)
	for i, fact := range []struct {
		happened, published time.Duration // after the webhook was created, nearly
		sent                bool
	}{{0, 0, true}, {-time.Hour, 0, true}, {time.Hour, time.Millisecond, true}, {time.Hour, -time.Millisecond, false}} {
		id := fmt.Sprint("evt_", i)
		r.pass(fact.happened)
		record := r.exhausted(t, id, "org_a")
		r.pass(-fact.happened)
		record.Time = published.Add(fact.published)
		before := len(r.sent(t, hook))
		r.consume(t, record)
		if sent := len(r.sent(t, hook)) > before; sent != fact.sent {
			t.Errorf("happened %v, published %v after the creation: sent: %t", fact.happened, fact.published, sent)
		}
	}
}

// Members of other organizations, and private addresses, are refused.
func TestWhoAndWhere(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	hook, _ := r.create(t, "org_a", to.URL)
	if _, err := r.service.Webhook(t.Context(), caller("org_b"), hook.Ref()); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("by org_b: %v", err)
	}
	var invalid tenants.Invalid
	for _, url := range []string{"https://10.0.0.1/", "http://169.254.169.254/", "gopher://hooks.example"} {
		_, _, err := r.service.Create(t.Context(), by("org_a"), notifications.NewWebhook{Organization: "org_a", URL: url, Events: []string{"quota.exhausted"}})
		if !errors.As(err, &invalid) || invalid[0].Field != "url" {
			t.Errorf("%s: %v", url, err)
		}
		if _, err := r.service.Change(t.Context(), by("org_a"), hook.Ref(), tenants.ChangeWebhook{URL: &url}); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Attempts are counted by outcome, and lateness is measured.
func TestMetrics(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	hook, _ := r.create(t, "org_a", to.URL)
	r.consume(t, r.exhausted(t, "evt_1", "org_a"))
	r.pass(90 * time.Second)
	testenv.Must(t, r.sender.MeasureForTest(t.Context()))
	want := `
# HELP weir_tenants_deliveries_late_seconds How long the oldest due delivery has been due; 0: none is.
# TYPE weir_tenants_deliveries_late_seconds gauge
weir_tenants_deliveries_late_seconds 90
# HELP weir_tenants_webhooks_off Webhooks that are switched off, by people or because they failed.
# TYPE weir_tenants_webhooks_off gauge
weir_tenants_webhooks_off 2
`
	if err := testutil.GatherAndCompare(r.metrics, strings.NewReader(want), "weir_tenants_deliveries_late_seconds", "weir_tenants_webhooks_off"); err != nil {
		t.Error(err)
	}
	r.run(t)
	r.awaitDelivery(t, hook, func(d notifications.Delivery) bool { return d.State == notifications.Taken })
	testenv.Eventually(t, func() error {
		return testutil.GatherAndCompare(r.metrics, strings.NewReader(`
# HELP weir_tenants_deliveries_total Attempts to send something to a webhook, by what the delivery is after it: taken, pending (it is tried again) or failed (it is not).
# TYPE weir_tenants_deliveries_total counter
weir_tenants_deliveries_total{state="taken"} 1
`), "weir_tenants_deliveries_total")
	})
}
