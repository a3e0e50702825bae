package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// owning is the configuration of a program whose role owns the schema,
// without the settings of tiers that the ledger has.
func (r *rig) owning() app.Config {
	config := r.config
	config.RulesConfig = app.RulesConfig{}
	config.DatabaseURL = httpapi.Secret(postgrestest.Owner(config.DatabaseURL.Reveal()))
	return config
}

// grant lets a rebuilt ledger be served, as weir migrate does.
func (r *rig) grant() {
	r.t.Helper()
	pool, serving := r.open(), postgrestest.Serving(r.owning().DatabaseURL.Reveal())
	defer pool.Close()
	role, err := url.Parse(serving)
	if err == nil {
		err = pg.Grant(r.t.Context(), pool, app.Schema(), role.User.Username())
	}
	testenv.Must(r.t, err)
}

// rebuild rebuilds the ledger and fails the test if the result differs.
func (r *rig) rebuild() app.Rebuilt {
	r.t.Helper()
	made, err := app.Rebuild(r.t.Context(), r.owning(), testenv.Logger(r.t))
	testenv.Must(r.t, err)
	for _, difference := range made.Differences {
		r.t.Error(difference)
	}
	return made
}

// asSystem runs statements in the ledger's database.
func (r *rig) asSystem(statements ...string) {
	r.t.Helper()
	r.inDatabase(func(ctx context.Context, tx pgx.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

// open connects to the ledger's database as the role that owns the schema.
func (r *rig) open() *pgxpool.Pool {
	r.t.Helper()
	pool, err := pg.Open(r.t.Context(), r.owning().DatabaseURL.Reveal(), postgres.Schema)
	testenv.Must(r.t, err)
	return pool
}

func (r *rig) inDatabase(fn func(ctx context.Context, tx pgx.Tx) error) {
	r.t.Helper()
	ctx, pool := r.t.Context(), r.open()
	defer pool.Close()
	testenv.Must(r.t, pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error { return fn(ctx, tx) }))
}

// A history is a ledger with every kind of decision, between charges
// and at the same instants.
type history struct {
	*rig
	ledger *app.App
	bearer string
	ahead  atomic.Int64
	frozen atomic.Pointer[time.Time] // the clock's time; nil: it runs
}

func (h *history) clock() time.Time {
	if at := h.frozen.Load(); at != nil {
		return *at
	}
	return time.Now().Add(time.Duration(h.ahead.Load()))
}

// freeze stops the clock until thaw.
func (h *history) freeze() (thaw func()) {
	at := h.clock()
	h.frozen.Store(&at)
	return func() { h.frozen.Store(nil) }
}

// charge has acme send something at an instant and waits until it is booked.
func (h *history) charge(at time.Time, bytes int64) {
	h.t.Helper()
	l := logs("acme", bytes)
	l.Time = at
	h.Accept(l)
	h.booked()
}

// booked waits by the database, as the clock may be frozen.
func (h *history) booked() {
	h.t.Helper()
	testenv.Eventually(h.t, func() (err error) {
		h.inDatabase(func(ctx context.Context, tx pgx.Tx) error {
			booked, failed := postgres.Positions(ctx, tx)
			for partition, end := range h.End() {
				if booked[partition] < end {
					err = fmt.Errorf("partition %d is booked to %d of %d", partition, booked[partition], end)
				}
			}
			return failed
		})
		return err
	})
}

func (h *history) decide(method, path, body string) map[string]any {
	h.t.Helper()
	return h.decideAbout("acme", h.bearer, method, path, body)
}

func (h *history) decideAbout(organization, token, method, path, body string) map[string]any {
	h.t.Helper()
	status, answer := send(h.t, h.ledger, token, method, organization+"/"+path, "", body)
	if status/100 != 2 {
		h.t.Fatalf("%s %s %s: %d %v", method, path, body, status, answer)
	}
	return answer
}

// close ends the running period and returns it.
func (h *history) close(statements int) calendar.Period {
	h.t.Helper()
	period := calendar.PeriodAt(h.clock(), 1)
	h.ahead.Store(int64(time.Until(period.End.Add(2 * time.Minute))))
	testenv.Eventually(h.t, func() error {
		_, found := get(h.t, h.ledger, h.bearer, "/v1/organizations/acme/statements")
		if items, _ := found["items"].([]any); len(items) < statements {
			return fmt.Errorf("%d statements of %d", len(items), statements)
		}
		return nil
	})
	return period
}

// twoPeriods runs two periods: grants that are used, voided and expire,
// plans that go up and down, an adjustment of the closed period, late
// charges, a suspension, budgets, thresholds.
func (h *history) twoPeriods() {
	thaw := h.freeze()
	h.charge(h.clock(), 300)
	h.decide("POST", "grants", `{"amount":500,"reason":"first","priority":1,"rollover_cap":100}`)
	void := h.decide("POST", "grants", `{"amount":500,"reason":"mistake"}`)
	h.charge(h.clock(), 450)
	h.decide("POST", fmt.Sprintf("grants/%s/void", void["id"]), "")
	h.decide("PUT", "budgets", `[{"key":"key","bytes":4000},{"key":"other","bytes":1}]`)
	h.charge(h.clock(), 900) // 300 of it are overage, until the plan is larger
	h.decide("PUT", "subscription", `{"tier":"indie","quota":5000}`)
	h.decide("PUT", "subscription", `{"tier":"indie","quota":700,"on_exhausted":"overage","overage_cap":900}`) // with the next period
	thaw()
	h.decide("PUT", "thresholds", `{"percents":[30,90]}`)
	h.charge(h.clock(), 40)
	h.decide("PUT", "subscription", `{"tier":"indie","quota":700,"on_exhausted":"overage","overage_cap":900,"suspended":true}`)
	h.decide("PUT", "subscription", `{"tier":"indie","quota":700,"on_exhausted":"overage","overage_cap":900,"suspended":false}`)
	closed := h.close(1)
	h.charge(closed.End.Add(-time.Hour), 33) // late
	h.charge(h.clock(), 77)
	h.decide("POST", "adjustments", fmt.Sprintf(`{"amount":250,"reason":"sent twice","period":%q}`, closed.Start.Format(time.RFC3339)))
	h.decide("POST", "adjustments", `{"amount":-20,"reason":"forgotten"}`)
	h.decide("POST", "grants", fmt.Sprintf(`{"amount":90,"reason":"to expire","expires_at":%q}`, h.clock().Add(48*time.Hour).Format(time.RFC3339)))
	h.charge(h.clock(), 800)
	h.decide("PUT", "budgets", `[]`)
	h.close(2)
	h.charge(h.clock(), 5)
}

// seal ends the hours so far and links them.
func (h *history) seal() {
	h.t.Helper()
	h.ahead.Add(int64(2 * time.Hour))
	pool := h.open()
	defer pool.Close()
	testenv.Must(h.t, integrity.Seal(h.t.Context(), pool, h.clock().Truncate(time.Hour)))
}

func (h *history) balance() string {
	h.t.Helper()
	return h.balanceOf("wait=true")
}

func (h *history) balanceOf(query string) string {
	h.t.Helper()
	_, balance := get(h.t, h.ledger, h.bearer, "/v1/organizations/acme/balance?"+query)
	delete(balance, "as_of")
	delete(balance, "lag_ms")
	delete(balance, "verified_through")
	return fmt.Sprint(balance)
}

// awaitToken waits until a token is accepted for an organization.
func (h *history) awaitToken(organization, token string) {
	h.t.Helper()
	testenv.Eventually(h.t, func() error {
		status, body := get(h.t, h.ledger, token, "/v1/organizations/"+organization+"/subscription")
		if status != http.StatusOK {
			return fmt.Errorf("%d %v", status, body)
		}
		return nil
	})
}

// useTest runs three periods of a test organization.
func (h *history) useTest() {
	h.t.Helper()
	h.create("trial", "indie")
	h.awaitAccount("trial")
	token := h.token("trial", "billing:read", "billing:write")
	decide := func(method, path, body string) {
		h.t.Helper()
		h.decideAbout("trial", token, method, path, body)
	}
	h.awaitToken("trial", token)
	decide("PUT", "test-clock", `{}`)
	decide("POST", "test-clock/use", `{"bytes":900,"key":"key_0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"}`)
	decide("POST", "grants", `{"amount":400,"rollover_cap":50}`)
	decide("POST", "test-clock/use", `{"bytes":200}`)
	decide("POST", "test-clock/use", `{"bytes":5000}`) // refused
	decide("PUT", "test-clock", fmt.Sprintf(`{"at":%q}`, h.clock().AddDate(0, 2, 0).Format(time.RFC3339)))
	decide("POST", "test-clock/use", `{"bytes":1020}`)
}

func newHistory(t *testing.T) *history {
	h := &history{}
	h.rig, h.ledger, h.bearer = billedBy(t, h.clock)
	return h
}

// A rebuilt ledger has the same balances, grants, budgets, statements
// and chains. It replaces the first and continues: no fact is published
// again, no decision repeated, and the next charge is booked.
func TestRebuilt(t *testing.T) {
	h := newHistory(t)
	h.useTest()
	h.twoPeriods()
	h.seal()
	if made := h.rebuild(); made.Decisions < 24 || made.Things < 40 {
		t.Errorf("of %d decisions %d things were made", made.Decisions, made.Things)
	}
	before := h.balance()
	facts := h.awaitEvents(1)

	h.replace()
	h.ledger, h.stop = h.start()
	awaitReady(t, h.ledger)
	if after := h.balance(); after != before {
		t.Errorf("rebuilt %s, before %s", after, before)
	}
	if again := h.decide("POST", "grants", `{"amount":1}`); again["amount"] != 1.0 {
		t.Errorf("a further grant: %v", again)
	}
	h.charge(h.clock(), 7)
	verify(h.t, h.config)
	if now := h.awaitEvents(1); len(now) != len(facts) {
		t.Errorf("published again: %v", now[len(facts):])
	}
}

// replace puts the rebuilt ledger in the other's place.
func (h *history) replace() {
	h.t.Helper()
	h.stop()
	h.asSystem(`ALTER SCHEMA ledger RENAME TO ledger_before`, `ALTER SCHEMA ledger_rebuilt RENAME TO ledger`)
	h.grant()
}

// balancesAt returns an organization's balances at instants.
func (h *history) balancesAt(instants []time.Time) (balances []string) {
	h.t.Helper()
	for _, at := range instants {
		balances = append(balances, h.balanceOf("at="+at.UTC().Format(time.RFC3339)))
	}
	return balances
}

// Entries of several days are booked on their days, so that the balance
// of each day is the same.
func TestRebuiltOfDays(t *testing.T) {
	h := newHistory(t)
	h.charge(h.clock(), 1)
	h.close(1)
	h.decide("POST", "grants", `{"amount":5000}`)
	var instants []time.Time
	for _, days := range []int{0, 0, 1, 1, 1} {
		h.ahead.Add(int64(days) * int64(24*time.Hour))
		h.charge(h.clock(), 600)
		instants = append(instants, h.clock().Add(2*time.Minute))
	}
	h.ahead.Add(int64(time.Hour))
	before := h.balancesAt(instants)
	h.rebuild()
	h.replace()
	h.ledger, h.stop = h.start()
	awaitReady(t, h.ledger)
	if after := h.balancesAt(instants); !slices.Equal(after, before) {
		t.Errorf("rebuilt %s, before %s", after, before)
	}
}

// A different ledger is reported and doesn't get the name ledger_rebuilt.
func TestRebuiltIsAnother(t *testing.T) {
	h := newHistory(t)
	h.charge(h.clock(), 300)
	h.asSystem(`UPDATE ranges SET booked_at = booked_at - interval '1 hour'`)
	made, err := app.Rebuild(t.Context(), h.owning(), testenv.Logger(t))
	if err != nil || len(made.Differences) != 1 || made.Differences[0].Of != "range" {
		t.Errorf("%+v, error %v", made, err)
	}
	h.asSystem(`DROP SCHEMA ledger_rebuilding CASCADE`)
}

// Where the log has lost its beginning, a rebuild begins at a checkpoint
// within it: what is used of a request's parts and grants before it, and
// decided and charged since, comes to the same books.
func TestRebuiltFromACheckpoint(t *testing.T) {
	h := newHistory(t)
	h.useTest()
	h.twoPeriods()
	h.decide("POST", "grants", `{"amount":700,"priority":1,"rollover_cap":100}`)
	h.charge(h.clock(), 120)
	half := logs("acme", 11)
	half.Parts, half.Time = 2, h.clock()
	h.Accept(half)
	h.booked()
	h.seal()
	before := h.End()
	rest := half
	rest.Part = 2
	h.Accept(rest, half)
	h.charge(h.clock(), 300)
	h.decide("PUT", "subscription", `{"tier":"indie","quota":9000}`)
	h.decide("POST", "adjustments", `{"amount":-7,"reason":"since"}`)
	h.seal()
	h.cut(before)
	first := h.rebuild()
	if first.From.IsZero() || first.Decisions != 2 || first.Things < 40 {
		t.Errorf("from %s, of %d decisions %d things were made", first.From, first.Decisions, first.Things)
	}
	h.asSystem(`DROP SCHEMA ledger_rebuilt CASCADE`)
	h.close(3)
	h.charge(h.clock(), 10)
	h.seal()
	h.decide("POST", "grants", `{"amount":3}`)
	if second := h.rebuild(); !second.From.After(first.From) || second.Decisions == 0 {
		t.Errorf("from %s, then from %s, of %d decisions", first.From, second.From, second.Decisions)
	}
	balance := h.balance()
	h.replace()
	h.ledger, h.stop = h.start()
	awaitReady(t, h.ledger)
	if after := h.balance(); after != balance {
		t.Errorf("rebuilt %s, before %s", after, balance)
	}
	h.charge(h.clock(), 7)
	verify(h.t, h.config)
}

// cut takes the log before offsets away.
func (h *history) cut(offsets map[int]int64) {
	h.t.Helper()
	for partition, offset := range offsets {
		bustest.CutPartition(h.t, h.config.Brokers, contract.TopicLogs, partition, offset)
	}
}

// Many organizations are rebuilt in parallel, with requests in parts,
// copies and records that can't be applied.
func TestManyAreRebuilt(t *testing.T) {
	h := newHistory(t)
	h.config.RebuildShares, h.config.RebuildBatch = 4, 100
	impossible := logs("acme", 1)
	impossible.Time = time.Date(ledger.FirstYear-1, 1, 1, 0, 0, 0, 0, time.UTC)
	sent := []contract.LogsAccepted{impossible}
	for i := range 300 {
		whole := logs(fmt.Sprint("org", i%30), int64(1+i))
		first, second := whole, whole
		first.Parts, second.Part, second.Parts = 2, 2, 2
		first.Batch = uuid.NewString()
		second.Batch = first.Batch
		sent = append(sent, whole, first, second, whole)
	}
	conflicting := sent[len(sent)-1]
	conflicting.Bytes++
	h.Accept(append(sent, conflicting)...)
	h.booked()
	if made := h.rebuild(); made.Skipped != 2 || made.Things < 90 {
		t.Errorf("%d records can't be applied, %d things were made", made.Skipped, made.Things)
	}
	h.replace()
	verify(h.t, h.config)
}

// What was booked and is gone is an error that names it, and nothing is
// left behind. Another rebuild's result stays.
func TestWhatIsGoneIsNotRebuilt(t *testing.T) {
	r, ledger, token := billed(t)
	for r.End()[0] == 0 { // the partition with a loss
		r.Accept(logs("acme", 1))
	}
	for range 2 {
		if status, made := send(t, ledger, token, "POST", "acme/adjustments", "", `{"amount":1,"reason":"a test"}`); status != http.StatusCreated {
			t.Fatalf("%d %v", status, made)
		}
	}
	get(t, ledger, token, "/v1/organizations/acme/balance?wait=true")
	r.stop()
	refused := func(part string) {
		t.Helper()
		if made, err := app.Rebuild(t.Context(), r.owning(), testenv.Logger(t)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("made %+v, error %v, want one of %q", made, err, part)
		}
	}
	for _, schema := range []string{"ledger_rebuilding", "ledger_rebuilt"} {
		r.asSystem(`CREATE SCHEMA ` + schema)
		refused(schema + " exists already")
		r.asSystem(`DROP SCHEMA ` + schema)
	}
	r.asSystem(`DELETE FROM events WHERE stream = 'decisions' AND version = (SELECT min(version) FROM events)`)
	refused("decisions are gone")
	bustest.CutLog(t, r.config.Brokers, contract.TopicLogs, 1)
	refused("has lost records")
}
