package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/rebuild"
	"github.com/weirlog/weir/ledger/internal/services"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Random histories: a rebuilt ledger has the same books, whatever tiers
// allowed meanwhile, of organizations that are tests too, and where the
// log begins later than the ledger. It knows no settings.
func TestARebuildIsTheBooks(t *testing.T) {
	random := testenv.Random(t, 1)
	var checkpoints int
	for round := range testenv.Rounds(t, 2, 100) {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			h := newHistory(t, random)
			for range 50 {
				h.step()
			}
			h.seal()
			for range 10 { // not sealed yet
				h.step()
			}
			h.cut() // an hour may wait for its links
			h.CheckSound(t)
			if h.log.cut(h.checkpoints()) {
				checkpoints++
			}
			h.compare()
		})
	}
	if checkpoints == 0 {
		t.Error("no rebuild began at a checkpoint")
	}
}

// A log that lost its beginning and a checkpoint that was changed are
// refused, with what is wrong.
func TestWhatCannotBeRebuilt(t *testing.T) {
	h := newHistory(t, testenv.Random(t, 2))
	for range 20 {
		h.step()
	}
	h.seal()
	h.charge(1)
	if !h.log.cut(h.checkpoints()[:1]) {
		t.Fatal("nothing to cut")
	}
	h.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE checkpoint_rows SET content = jsonb_set(content, '{0,suspended}', 'true') WHERE kind = 'organizations' AND organization = 'a'`)
		return err
	})
	if _, err := h.rebuild(); err == nil || !errors.Is(err, errLost) {
		t.Errorf("with a changed checkpoint: error %v", err)
	}
	h.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM checkpoints`)
		return err
	})
	if _, err := h.rebuild(); !errors.Is(err, errLost) {
		t.Errorf("without checkpoints: error %v", err)
	}
}

const partitions = 3

var topic = [16]byte{1}

// A history is a ledger, and the log of its charges.
type history struct {
	*ledgertest.Ledger
	t      *testing.T
	random *rand.Rand
	log    *memoryLog
	known  []string // organizations
	grants map[string][]string
	tests  map[string]bool
}

func newHistory(t *testing.T, random *rand.Rand) *history {
	h := &history{Ledger: ledgertest.New(t), t: t, random: random, grants: map[string][]string{}, tests: map[string]bool{}, log: &memoryLog{first: contract.Positions{}}}
	for partition := range partitions {
		h.SetPosition(t, partition, 0, topic, "")
	}
	h.charge(3) // of organizations that nobody has created yet
	for _, id := range []string{"a", "b", "c"} {
		h.create(id)
	}
	return h
}

func (h *history) create(id string) {
	h.t.Helper()
	h.As(h.t, func(ctx context.Context, tx pgx.Tx) error {
		now := h.Pass(time.Second)
		_, err := h.Plans.StartPlans(ctx, tx, now, []plans.Start{{Organization: id, Plan: ledger.Plan{From: now, Tier: h.tier()}}})
		return err
	})
	h.known = append(h.known, id)
}

func (h *history) tier() ledger.Tier {
	return []ledger.Tier{ledger.Indie, ledger.Scale}[h.random.IntN(2)]
}

func (h *history) organization() string {
	return []string{"a", "b", "c"}[h.random.IntN(3)]
}

// step lets time pass, and charges or decides.
func (h *history) step() {
	h.t.Helper()
	switch n := h.random.IntN(20); {
	case n < 12:
		h.Pass(time.Duration(1+h.random.IntN(3600)) * time.Second)
	case n < 18:
		h.Pass(time.Duration(1+h.random.IntN(96)) * time.Hour)
	default:
		h.Pass(time.Duration(10+h.random.IntN(20)) * 24 * time.Hour)
	}
	h.AdvanceAll(h.t) // all accepted before is booked
	switch n := h.random.IntN(11); {
	case n < 5:
		h.charge(1 + h.random.IntN(6))
	case n < 6:
		h.seal()
	case n < 7:
		h.changeTiers()
	case n < 8:
		h.refuse()
	default:
		h.decide()
	}
}

// charge books requests that were accepted since the clock stood still,
// by partition, and sometimes one of long ago.
func (h *history) charge(requests int) {
	h.t.Helper()
	from := h.Now()
	h.Pass(time.Duration(requests) * time.Second)
	charges := make([]ledger.Charge, requests)
	for i := range charges {
		at := from.Add(time.Duration(i+1) * time.Second)
		if i == 0 && h.random.IntN(5) == 0 {
			at = from.AddDate(0, 0, -h.random.IntN(40))
		}
		id := h.organization()
		if h.tests[id] {
			id = "d"
		}
		charges[i] = h.log.append(h.random.IntN(partitions), ledger.Charge{
			Organization: id, Bytes: 1 + h.random.Int64N(60), Entries: 1 + h.random.IntN(3), Environment: "prod",
			Cause: ledger.Cause{At: at, Project: "shop", Key: "key"},
		})
	}
	h.As(h.t, func(ctx context.Context, tx pgx.Tx) error {
		return ledgertest.Apply(ctx, tx, h.Services, h.Now(), charges)
	})
	for partition, next := range h.log.end() {
		h.SetPosition(h.t, partition, next, topic, "")
	}
}

// refuse has a request refused that exceeds an allowance or a budget.
func (h *history) refuse() {
	h.t.Helper()
	at, id := h.Pass(time.Second), h.organization()
	refusal := ledger.Refusal{
		Organization: id, Environment: "prod", Bytes: 1000, Quota: 1 + h.random.Int64N(300), PeriodStart: h.BalanceNow(h.t, id).Book.Period.Start,
		Exhausts: h.random.IntN(4) > 0, Requests: 1, Cause: ledger.Cause{Event: fmt.Sprint("req_", at.Unix()), At: at, Project: "shop", Key: "key", Source: ledger.FromOutcomes},
	}
	if h.random.IntN(2) == 0 {
		refusal.Reason, refusal.Spender.Project = contract.ReasonProjectBudget, "shop"
	}
	h.As(h.t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := h.Booking.Refuse(ctx, tx, at, []ledger.Refusal{refusal})
		return err
	})
}

// seal ends the hours so far.
func (h *history) seal() {
	h.t.Helper()
	h.Pass(2 * time.Hour)
	h.AdvanceAll(h.t)
	testenv.Must(h.t, integrity.Seal(h.t.Context(), h.Pool, h.Now().Truncate(time.Hour)))
}

// cut ends the next hour, whose links are written later.
func (h *history) cut() {
	h.t.Helper()
	h.As(h.t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := postgres.CutHour(ctx, tx, h.Now().Truncate(time.Hour))
		return err
	})
}

// changeTiers has a process start with other settings.
func (h *history) changeTiers() {
	h.t.Helper()
	h.SetTiers(h.t, ledger.Tiers{
		ledger.Indie: {Quota: 50 + h.random.Int64N(100), RequestsPerMinute: 1 + h.random.IntN(99), RetentionDays: 7},
		ledger.Scale: {Quota: 300 + h.random.Int64N(100), RequestsPerMinute: 1800, RetentionDays: 90},
	})
	if _, err := h.Plans.Follow(h.t.Context(), h.Pool); err != nil {
		h.t.Fatal(err)
	}
}

// decide decides something about an organization; that it may be
// refused is no fault.
func (h *history) decide() {
	h.t.Helper()
	ctx, by, id := h.t.Context(), unitofwork.Request{Actor: "billing"}, h.organization()
	var err error
	switch h.random.IntN(9) {
	case 0:
		plan := ledger.Plan{Tier: h.tier(), Quota: h.random.Int64N(3) * 150, Overage: h.random.IntN(2) == 0}
		_, err = h.Plans.Subscribe(ctx, id, by, ledger.Subscription{Plan: plan, Suspended: new(h.random.IntN(4) == 0)})
	case 1:
		_, err = h.Plans.Subscribe(ctx, id, by, ledger.Subscription{Plan: ledger.Plan{Tier: h.tier()}, AnchorDay: new(1 + h.random.IntN(31)), Effective: ledger.PeriodEnd})
	case 2, 3:
		spec := ledger.Grant{Amount: 1 + h.random.Int64N(200), Priority: h.random.IntN(200)}
		if h.random.IntN(2) == 0 {
			spec.RolloverCap = new(spec.Amount / 2)
		}
		if h.random.IntN(2) == 0 {
			spec.Expires = h.Now().Add(time.Duration(1+h.random.IntN(40*24)) * time.Hour)
		}
		var granted ledger.Grant
		if granted, err = h.Grants.Grant(ctx, id, by, spec); err == nil {
			h.grants[id] = append(h.grants[id], granted.ID)
		}
	case 4:
		if ids := h.grants[id]; len(ids) > 0 {
			_, err = h.Grants.Void(ctx, id, by, ids[h.random.IntN(len(ids))])
		}
	case 5:
		_, err = h.Grants.Adjust(ctx, id, by, h.random.Int64N(101)-50, "", time.Time{})
	case 6:
		_, err = h.Budgets.Set(ctx, id, by, ledger.BudgetSpec{Spender: ledger.Spender{Project: "shop"}, Bytes: 1 + h.random.Int64N(500)})
	case 7:
		_, err = h.Plans.SetThresholds(ctx, id, by, []ledger.Thresholds{nil, {10, 90}, {75}}[h.random.IntN(3)])
	case 8:
		err = h.useTest("trial", by)
	}
	if refused := (ledger.Invalid{}); err != nil && !errors.As(err, &refused) {
		h.t.Fatal(err)
	}
}

// useTest has a test's time pass, and uses something.
func (h *history) useTest(id string, by unitofwork.Request) error {
	ctx := h.t.Context()
	if !h.tests[id] {
		h.create(id)
		h.tests[id] = true
	}
	clock, err := h.TestClocks.Clock(ctx, id)
	if err == nil {
		_, err = h.TestClocks.Advance(ctx, id, by, calendar.Later(clock.At, h.Now()).Add(time.Duration(h.random.IntN(30*24))*time.Hour))
	}
	if err == nil {
		_, err = h.TestClocks.Use(ctx, id, by, ledger.TestUse{ID: fmt.Sprint("use", h.random.Int64()), Bytes: 1 + h.random.Int64N(90), Entries: 1, Project: "shop"})
	}
	return err
}

func (h *history) checkpoints() (found []ledger.Checkpoint) {
	h.t.Helper()
	h.As(h.t, func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = postgres.Checkpoints(ctx, tx)
		return err
	})
	return found
}

// rebuild rebuilds the ledger, in a schema that goes with the call.
func (h *history) rebuild() (rebuild.Report, error) {
	h.t.Helper()
	ctx, owner := h.t.Context(), postgrestest.Owner(h.Pool.Config().ConnString())
	target, err := pg.Open(ctx, owner, postgres.RebuildingSchema)
	testenv.Must(h.t, err)
	defer target.Close()
	testenv.Must(h.t, pg.Migrate(ctx, target, postgres.RebuildingSchema, postgres.Migrations()...))
	defer func() {
		if _, err := target.Exec(ctx, `DROP SCHEMA `+postgres.RebuildingSchema+` CASCADE`); err != nil {
			h.t.Error(err)
		}
	}()
	source, err := pg.Open(ctx, owner, postgres.Schema)
	testenv.Must(h.t, err)
	defer source.Close()
	of := services.New(services.Config{
		Reads:     services.Reads{Pool: target},
		Decisions: services.Decisions{Pool: target, Save: func(context.Context, pgx.Tx, []ledger.Event) error { return nil }},
		Kept:      ledger.DefaultRetention(), Clock: h.log.clock,
	})
	h.log.target, h.log.services = target, of
	work := rebuild.Rebuild{Source: source, Target: target, Log: h.log, Work: of.Work, Relay: "none", Tenants: "none", Outcomes: "none"}
	report, err := work.Run(ctx)
	if err == nil {
		h.verifyRefusals(target)
	}
	return report, err
}

// verifyRefusals checks what the rebuilt ledger has of refusals, and that it
// has exhausted what they say.
func (h *history) verifyRefusals(rebuilt *pgxpool.Pool) {
	h.t.Helper()
	err := pg.InTxAsSystem(h.t.Context(), rebuilt, func(tx pgx.Tx) error {
		for _, id := range h.known {
			found, err := postgres.CheckRefusals(h.t.Context(), tx, id, h.Now())
			if err != nil {
				return err
			}
			for _, violation := range found {
				h.t.Error(violation)
			}
		}
		return nil
	})
	if err != nil {
		h.t.Error(err)
	}
}

func (h *history) compare() {
	h.t.Helper()
	made, err := h.rebuild()
	testenv.Must(h.t, err)
	for _, difference := range made.Differences {
		h.t.Error(difference)
	}
	if began := len(h.log.first) > 0; began == made.From.IsZero() || made.Things < 20 {
		h.t.Errorf("the log began later: %t, from %s, %d things", began, made.From, made.Things)
	}
}

// A memoryLog is a log of charges, in the order of their appending.
type memoryLog struct {
	charges []ledger.Charge
	first   contract.Positions // offsets before are lost

	target   *pgxpool.Pool
	services *services.Services
	applied  contract.Positions
	now      time.Time
}

var errLost = errors.New("the log has lost its beginning")

func (l *memoryLog) clock() time.Time { return l.now }

// append appends a charge to a partition and returns it with its place.
func (l *memoryLog) append(partition int, c ledger.Charge) ledger.Charge {
	c.Cause.Partition, c.Cause.Offset = partition, l.end()[partition]
	c.Cause.Batch = fmt.Sprintf("batch%d", len(l.charges))
	c.Cause.Event = c.Cause.Batch + "/1"
	l.charges = append(l.charges, c)
	return c
}

func (l *memoryLog) end() contract.Positions {
	end := contract.Positions{}
	for _, c := range l.charges {
		end[c.Cause.Partition] = c.Cause.Offset + 1
	}
	return end
}

// cut loses what is before the middle one of checkpoints, if that has
// anything before it.
func (l *memoryLog) cut(checkpoints []ledger.Checkpoint) bool {
	if len(checkpoints) == 0 {
		return false
	}
	at := contract.Positions(checkpoints[len(checkpoints)/2].Positions)
	for partition, next := range at {
		if next > 0 {
			l.first[partition] = next
		}
	}
	return len(l.first) > 0
}

// Open implements rebuild.Log.
func (l *memoryLog) Open(_ context.Context, _ [16]byte, from, _ contract.Positions) error {
	for partition, first := range l.first {
		if from[partition] < first {
			return errLost
		}
	}
	l.applied, l.now = maps.Clone(from), time.Time{}
	if l.applied == nil {
		l.applied = contract.Positions{}
	}
	return nil
}

// Recall implements rebuild.Log: there are no copies.
func (l *memoryLog) Recall(context.Context, contract.Positions) error { return nil }

// Logs implements rebuild.Log. It books one charge after the other.
func (l *memoryLog) Logs(ctx context.Context, through contract.Positions) error {
	for _, c := range l.charges {
		partition, offset := c.Cause.Partition, c.Cause.Offset
		if offset < l.applied[partition] || offset >= through[partition] {
			continue
		}
		l.now = l.now.Add(time.Microsecond)
		if c.Cause.At.After(l.now) {
			l.now = c.Cause.At
		}
		err := pg.InTxAsSystem(ctx, l.target, func(tx pgx.Tx) error { return ledgertest.Apply(ctx, tx, l.services, l.now, []ledger.Charge{c}) })
		if err != nil {
			return err
		}
		l.applied[partition] = offset + 1
	}
	return nil
}
