package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
)

// A DecisionStore keeps decisions, one stream for each organization.
type DecisionStore = eventstorepg.Store[ledger.Decision]

// NewDecisionStore returns the store of a pool's schema.
func NewDecisionStore(pool *pgxpool.Pool) *DecisionStore {
	return eventstorepg.New(pool, eventstore.Codec[ledger.Decision]{Encode: encodeDecision, Decode: decodeDecision}, nil)
}

// Decisions returns the stream of an organization's decisions. Its name
// is stored.
func Decisions(organization string) eventstore.Stream {
	return eventstore.Stream{Organization: organization, Name: decisionStream}
}

const decisionStream = "decisions"

// Metadata of a decision: its time, the positions of the log that it
// follows, and its place in the chain.
const (
	DecidedAt    = "at"
	BookedBehind = "positions"
	ChainedBy    = "chained" // see Chained
)

// WhenDecided returns the time of a decision by its number; zero where
// it is gone.
func WhenDecided(ctx context.Context, tx pgx.Tx, organization string, number int64) (at time.Time, err error) {
	err = tx.QueryRow(ctx, `SELECT `+decidedAt+` FROM events e WHERE organization = $1 AND stream = $2 AND version = $3`,
		organization, decisionStream, number).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return at, err
}

// Names of decisions, as stored.
const (
	planStarted       = "ledger.v1.plan_started"
	planChanged       = "ledger.v1.plan_changed"
	termsChanged      = "ledger.v1.terms_changed"
	changeCancelled   = "ledger.v1.plan_change_cancelled"
	suspensionChanged = "ledger.v1.suspension_changed"
	granted           = "ledger.v1.granted"
	revoked           = "ledger.v1.grant_voided"
	adjusted          = "ledger.v1.adjusted"
	advanced          = "ledger.v1.advanced"
	budgetsChanged    = "ledger.v1.budgets_changed"
	anchorSet         = "ledger.v1.anchor_set"
	thresholdsSet     = "ledger.v1.thresholds_set"
	testBegun         = "ledger.v1.test_begun"
	clockAdvanced     = "ledger.v1.clock_advanced"
	testUsed          = "ledger.v1.test_used"
)

// grantRow is a grant as it was created.
type grantRow struct {
	ID          string     `json:"id"`
	Amount      int64      `json:"amount"`
	Priority    int        `json:"priority"`
	Starts      time.Time  `json:"starts_at"`
	Expires     *time.Time `json:"expires_at,omitempty"`
	RolloverCap *int64     `json:"rollover_cap,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Created     time.Time  `json:"created_at"`
}

func (r grantRow) grant() ledger.Grant {
	return ledger.Grant{
		ID: r.ID, Amount: r.Amount, Priority: r.Priority, Starts: r.Starts, Expires: timeOf(r.Expires), RolloverCap: r.RolloverCap,
		Source: ledger.FromBilling, Reason: r.Reason, Created: r.Created,
	}
}

type suspensionRow struct {
	Suspended bool `json:"suspended"`
}

type revokedRow struct {
	Grant string `json:"grant"`
}

type adjustedRow struct {
	ID     string     `json:"id"`
	Bytes  int64      `json:"bytes"`
	Reason string     `json:"reason,omitempty"`
	Of     *time.Time `json:"period_start,omitempty"`
}

type advancedRow struct {
	Through time.Time `json:"through"`
}

type budgetSetRow struct {
	Project string `json:"project,omitempty"`
	Key     string `json:"key,omitempty"`
	Bytes   int64  `json:"bytes"`
	Used    int64  `json:"used"`
}

type spenderRow struct {
	Project string `json:"project,omitempty"`
	Key     string `json:"key,omitempty"`
}

type budgetsChangedRow struct {
	Set     []budgetSetRow `json:"set,omitempty"`
	Removed []spenderRow   `json:"removed,omitempty"`
}

func newBudgetsChangedRow(d ledger.BudgetsChanged) budgetsChangedRow {
	return budgetsChangedRow{
		Set:     convertAll(d.Set, func(b ledger.BudgetSet) budgetSetRow { return budgetSetRow{b.Project, b.Key, b.Bytes, b.Used} }),
		Removed: convertAll(d.Removed, func(s ledger.Spender) spenderRow { return spenderRow(s) }),
	}
}

func (r budgetsChangedRow) decision() ledger.BudgetsChanged {
	return ledger.BudgetsChanged{
		Set: convertAll(r.Set, func(b budgetSetRow) ledger.BudgetSet {
			return ledger.BudgetSet{Spender: ledger.Spender{Project: b.Project, Key: b.Key}, Bytes: b.Bytes, Used: b.Used}
		}),
		Removed: convertAll(r.Removed, func(s spenderRow) ledger.Spender { return ledger.Spender(s) }),
	}
}

type planStartedRow struct {
	planRow
	Opened     time.Time `json:"opened_at"`
	Thresholds []int     `json:"thresholds"`
}

type termsChangedRow struct {
	Tiers      map[ledger.Tier]termsRow `json:"tiers"` // bounded by the tiers
	Thresholds []int                    `json:"thresholds"`
}

func newTermsChangedRow(d ledger.TermsChanged) termsChangedRow {
	row := termsChangedRow{Tiers: map[ledger.Tier]termsRow{}, Thresholds: d.Thresholds}
	for tier, terms := range d.Tiers {
		row.Tiers[tier] = termsRow(terms)
	}
	return row
}

func (r termsChangedRow) decision() ledger.TermsChanged {
	d := ledger.TermsChanged{Tiers: map[ledger.Tier]ledger.Terms{}, Thresholds: r.Thresholds}
	for tier, terms := range r.Tiers {
		d.Tiers[tier] = ledger.Terms(terms)
	}
	return d
}

type thresholdsSetRow struct {
	Percents []int `json:"percents"` // null: those of the installation
}

type clockAdvancedRow struct {
	To time.Time `json:"to"`
}

type testUseRow struct {
	ID          string `json:"id"`
	Bytes       int64  `json:"bytes"`
	Entries     int    `json:"entries"`
	Project     string `json:"project,omitempty"`
	Key         string `json:"key,omitempty"`
	Environment string `json:"environment,omitempty"`
}

func encodeDecision(decision ledger.Decision) (name string, data []byte, err error) {
	var row any
	switch d := decision.(type) {
	case ledger.PlanStarted:
		name, row = planStarted, planStartedRow{newPlanRow(d.Plan), d.Opened, d.Thresholds}
	case ledger.TermsChanged:
		name, row = termsChanged, newTermsChangedRow(d)
	case ledger.PlanChanged:
		name, row = planChanged, newPlanRow(d.Plan)
	case ledger.ChangeCancelled:
		name, row = changeCancelled, struct{}{}
	case ledger.SuspensionChanged:
		name, row = suspensionChanged, suspensionRow(d)
	case ledger.Granted:
		g := d.Grant
		name, row = granted, grantRow{g.ID, g.Amount, g.Priority, g.Starts, orNull(g.Expires), g.RolloverCap, g.Reason, g.Created}
	case ledger.Revoked:
		name, row = revoked, revokedRow(d)
	case ledger.Adjusted:
		name, row = adjusted, adjustedRow{d.ID, d.Bytes, d.Reason, orNull(d.Of)}
	case ledger.Advanced:
		name, row = advanced, advancedRow(d)
	case ledger.BudgetsChanged:
		name, row = budgetsChanged, newBudgetsChangedRow(d)
	case ledger.ThresholdsSet:
		name, row = thresholdsSet, thresholdsSetRow{d.Percents}
	case ledger.AnchorSet:
		name, row = anchorSet, anchorRow(d.Anchor)
	case ledger.TestBegun:
		name, row = testBegun, struct{}{}
	case ledger.ClockAdvanced:
		name, row = clockAdvanced, clockAdvancedRow(d)
	case ledger.TestUse:
		name, row = testUsed, testUseRow(d)
	default:
		return "", nil, fmt.Errorf("BUG: no stored form of %T", decision)
	}
	data, err = json.Marshal(row)
	return name, data, err
}

func decodeDecision(name string, data []byte) (ledger.Decision, error) {
	switch name {
	case planStarted:
		return decoded(data, func(row planStartedRow) ledger.Decision {
			return ledger.PlanStarted{Plan: row.plan(), Opened: row.Opened, Thresholds: row.Thresholds}
		})
	case termsChanged:
		return decoded(data, func(row termsChangedRow) ledger.Decision { return row.decision() })
	case planChanged:
		return decoded(data, func(row planRow) ledger.Decision { return ledger.PlanChanged{Plan: row.plan()} })
	case changeCancelled:
		return ledger.ChangeCancelled{}, nil
	case suspensionChanged:
		return decoded(data, func(row suspensionRow) ledger.Decision { return ledger.SuspensionChanged(row) })
	case granted:
		return decoded(data, func(row grantRow) ledger.Decision { return ledger.Granted{Grant: row.grant()} })
	case revoked:
		return decoded(data, func(row revokedRow) ledger.Decision { return ledger.Revoked(row) })
	case adjusted:
		return decoded(data, func(row adjustedRow) ledger.Decision {
			return ledger.Adjusted{ID: row.ID, Bytes: row.Bytes, Reason: row.Reason, Of: timeOf(row.Of)}
		})
	case advanced:
		return decoded(data, func(row advancedRow) ledger.Decision { return ledger.Advanced(row) })
	case budgetsChanged:
		return decoded(data, func(row budgetsChangedRow) ledger.Decision { return row.decision() })
	case thresholdsSet:
		return decoded(data, func(row thresholdsSetRow) ledger.Decision { return ledger.ThresholdsSet{Percents: row.Percents} })
	case anchorSet:
		return decoded(data, func(row anchorRow) ledger.Decision { return ledger.AnchorSet{Anchor: ledger.Anchor(row)} })
	case testBegun:
		return ledger.TestBegun{}, nil
	case clockAdvanced:
		return decoded(data, func(row clockAdvancedRow) ledger.Decision { return ledger.ClockAdvanced(row) })
	case testUsed:
		return decoded(data, func(row testUseRow) ledger.Decision { return ledger.TestUse(row) })
	}
	return nil, fmt.Errorf("cannot read a decision of the kind %q", name)
}

// decoded returns the decision of a stored row.
func decoded[Row any](data []byte, decision func(Row) ledger.Decision) (ledger.Decision, error) {
	var row Row
	err := json.Unmarshal(data, &row)
	return decision(row), err
}

// A Decided is a stored decision.
type Decided struct {
	Organization string
	Number       int64
	Decision     ledger.Decision
	At           time.Time          // time of recording
	Behind       contract.Positions // next offsets booked before it
	Chained      Chained
}

// decisionPageSize is how many decisions are read together.
const decisionPageSize = 1000

// NumbersOfDecisions returns how many decisions about each organization
// are in its books.
func NumbersOfDecisions(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	rows, _ := tx.Query(ctx, `SELECT organization, decisions FROM organizations`)
	numbers := map[string]int64{}
	var organization string
	var number int64
	_, err := pgx.ForEachRow(rows, []any{&organization, &number}, func() error {
		numbers[organization] = number
		return nil
	})
	return numbers, err
}

// AllDecided returns the decisions of all organizations in commit
// order, those after a position of the event store, without erased
// ones. It ends at the first error.
func AllDecided(ctx context.Context, tx pgx.Tx, store *DecisionStore, position int64) iter.Seq2[Decided, error] {
	return func(yield func(Decided, error) bool) {
		after := eventstore.Cursor(position)
		for {
			page, err := store.ReadAll(ctx, tx, after, decisionPageSize)
			if err != nil {
				yield(Decided{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, recorded := range page {
				if !yield(decidedOf(recorded)) {
					return
				}
			}
			after = page[len(page)-1].Cursor
		}
	}
}

// errUndated is the error for decisions from before 2026-11, stored
// without a time.
var errUndated = errors.New("it was stored without its time or its positions of the log")

func decidedOf(recorded eventstore.Recorded[ledger.Decision]) (d Decided, err error) {
	d = Decided{Organization: recorded.Stream.Organization, Number: recorded.Version, Decision: recorded.Event}
	at, positions := recorded.Metadata[DecidedAt], recorded.Metadata[BookedBehind]
	if at == "" || positions == "" {
		err = errUndated
	} else if d.At, err = time.Parse(time.RFC3339Nano, at); err == nil {
		err = errors.Join(json.Unmarshal([]byte(positions), &d.Behind), d.Chained.parse(recorded.Metadata[ChainedBy]))
	}
	if err != nil {
		return d, fmt.Errorf("cannot read decision %d about organization %q: %w", d.Number, d.Organization, err)
	}
	return d, nil
}
