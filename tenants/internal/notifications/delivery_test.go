package notifications_test

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func keyed(key string) unitofwork.Request {
	request := by("org_a")
	request.IdempotencyKey = key
	return request
}

func (r *room) switched(t *testing.T, request unitofwork.Request, of notifications.Ref, on bool) notifications.Listed {
	t.Helper()
	changed, err := r.service.Change(t.Context(), request, of, tenants.ChangeWebhook{On: &on})
	testenv.Must(t, err)
	return changed
}

// A repeated request is answered as before, whatever has happened
// since, and changes nothing; another one with its key is refused.
func TestChangesHappenOnce(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	hook, secret := r.create(t, "org_a", to.URL)
	first := r.switched(t, keyed("off"), hook.Ref(), false)
	r.switched(t, by("org_a"), hook.Ref(), true)
	if again := r.switched(t, keyed("off"), hook.Ref(), false); again.On() || !again.OffAt.Equal(first.OffAt) {
		t.Errorf("answered %+v, and before %+v", again, first)
	}
	if now, err := r.service.Webhook(t.Context(), caller("org_a"), hook.Ref()); err != nil || !now.On() {
		t.Errorf("it was switched off twice: %+v, %v", now, err)
	}
	if _, err := r.service.Delete(t.Context(), keyed("off"), hook.Ref()); !errors.Is(err, tenants.ErrReused) {
		t.Errorf("a deletion with the key of a change: %v", err)
	}
	_, fresh, err := r.service.Rotate(t.Context(), keyed("rotate"), hook.Ref())
	if err != nil || fresh == secret {
		t.Fatalf("rotated: %v, %v", fresh == secret, err)
	}
	r.pass(2 * tenants.WebhookOverlap)
	rotated, shown, err := r.service.Rotate(t.Context(), keyed("rotate"), hook.Ref())
	if !errors.Is(err, tenants.ErrShownOnce) || shown != "" || rotated.Secret.Generation != 2 {
		t.Errorf("rotated again: %+v, %v", rotated.Secret, err)
	}
	for range 2 {
		if deleted, err := r.service.Delete(t.Context(), keyed("delete"), hook.Ref()); err != nil || deleted.URL != to.URL {
			t.Errorf("deleted %+v, %v", deleted, err)
		}
	}
	if _, err := r.service.Delete(t.Context(), by("org_a"), hook.Ref()); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("deleted once more, without a key: %v", err)
	}
}

// A repeated request to send something has it sent once.
func TestWhatIsSentOnRequestIsSentOnce(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	stop := r.run(t)
	hook, _ := r.create(t, "org_a", to.URL)
	tested, err := r.deliveries.Test(t.Context(), keyed("test"), hook.Ref())
	testenv.Must(t, err)
	r.awaitDelivery(t, hook, func(d notifications.Delivery) bool { return d.State == notifications.Taken })
	if again, err := r.deliveries.Test(t.Context(), keyed("test"), hook.Ref()); err != nil || again.ID != tested.ID {
		t.Errorf("tested again: %+v, %v", again, err)
	}
	if replayed, err := r.deliveries.Replay(t.Context(), keyed("replay"), hook.Ref(), tested.ID); err != nil {
		t.Fatalf("replayed: %+v, %v", replayed, err)
	}
	to.await(t, 2)
	r.awaitDelivery(t, hook, func(d notifications.Delivery) bool { return d.State == notifications.Taken })
	stop()
	if replayed, err := r.deliveries.Replay(t.Context(), keyed("replay"), hook.Ref(), tested.ID); err != nil || replayed.State != notifications.Taken {
		t.Errorf("replayed again: %+v, %v", replayed, err)
	}
	if got := to.received(); len(got) != 2 {
		t.Errorf("sent %d times, want the test and the one replay", len(got))
	}
	r.asSystem(t, `UPDATE deliveries SET state = 'failed'`)
	for range 2 {
		if n, err := r.deliveries.ReplayFailed(t.Context(), keyed("failed"), hook.Ref(), time.Time{}); err != nil || n != 1 {
			t.Errorf("%d that failed are sent again, %v", n, err)
		}
		r.asSystem(t, `UPDATE deliveries SET state = 'failed'`)
	}
	if found := r.sent(t, hook); len(found) != 1 || found[0].State != notifications.Failed {
		t.Errorf("the deliveries are %+v", found)
	}
	if _, err := r.deliveries.ReplayFailed(t.Context(), keyed("failed"), hook.Ref(), r.clock()); !errors.Is(err, tenants.ErrReused) {
		t.Errorf("with another time: %v", err)
	}
}

// However many deliveries wait for a project that is to be
// deleted, which is hidden for days, a claim does not scan them.
func TestWhatIsHiddenIsNotLookedAt(t *testing.T) {
	pool, now := tenantstest.OpenOwned(t), tenantstest.Noon
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		for _, statement := range []string{
			`UPDATE projects SET deletion = 'deleting' WHERE id = 'prj_a'`,
			`INSERT INTO deliveries (organization, id, webhook, project, type, body, created_at, state, begun_at, next_at)
				SELECT 'org_a', 'msg_' || i, 'whk', CASE i WHEN 0 THEN '' ELSE 'prj_a' END, 'x', '{}', '2026-01-01', 'pending', '2026-01-01',
					timestamptz '2026-01-02' - i * interval '1 second' FROM generate_series(0, 20000) i`,
			`ANALYZE deliveries`,
		} {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		rows, err := tx.Query(t.Context(), `EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) `+notifications.ClaimQueryForTest(),
			now, 4, 32, now.Add(time.Minute), []string{"org_a"}, []int{0})
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan := strings.Join(lines, "\n")
		if looked := maxRows(t, plan); looked > 10 || !regexp.MustCompile(`Update on deliveries \w+ \(actual rows=1 `).MatchString(plan) {
			t.Errorf("%d rows are looked at:\n%s", looked, plan)
		}
		return err
	})
	testenv.Must(t, err)
}

// maxRows is the largest number of rows
// that any part of a plan found or skipped.
func maxRows(t *testing.T, plan string) (rows int) {
	t.Helper()
	for _, match := range regexp.MustCompile(`(?:actual rows=|Rows Removed by [^:]*: )(\d+)`).FindAllStringSubmatch(plan, -1) {
		n, err := strconv.Atoi(match[1])
		testenv.Must(t, err)
		rows = max(rows, n)
	}
	return rows
}

// The oldest deliveries of a webhook with too many are removed,
// a few in each transaction; those of other webhooks stay.
func TestCrowdedWebhooks(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	busy, _ := r.create(t, "org_a", to.URL)
	quiet, _ := r.create(t, "org_b", to.URL)
	for _, id := range []string{"evt_1", "evt_2", "evt_3", "evt_4", "evt_5", "evt_6", "evt_7"} {
		r.consume(t, r.exhausted(t, id, "org_a"))
		r.pass(time.Second)
	}
	r.consume(t, r.exhausted(t, "evt_b", "org_b"))
	newest := r.sent(t, busy)[:2]
	table := notifications.DeliveriesForTest(r.clock, 2, 3)
	for round, want := range []struct {
		removed int64
		more    bool
	}{{3, true}, {2, false}, {0, false}} {
		err := pg.InTx(t.Context(), r.pool, func(tx pgx.Tx) error {
			removed, more, err := table.Prune(t.Context(), tx)
			if removed != want.removed || more != want.more {
				t.Errorf("round %d removes %d, more: %t, want %+v", round, removed, more, want)
			}
			return err
		})
		testenv.Must(t, err)
	}
	left := r.sent(t, busy)
	if len(left) != 2 || left[0].ID != newest[0].ID || left[1].ID != newest[1].ID || len(r.sent(t, quiet)) != 1 {
		t.Errorf("left are %+v and %+v", left, r.sent(t, quiet))
	}
}
