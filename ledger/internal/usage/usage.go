package usage

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// A Service lists requests by outcome.
type Service struct {
	Reads *snapshot.Reader
	Tiers ledger.Tiers // upgrades to propose
}

// List lists an organization's requests by outcome, the latest first.
func (s *Service) List(ctx context.Context, organization string, query postgres.UsageQuery) ([]ledger.Use, error) {
	return snapshot.Of(ctx, s.Reads, organization, func(tx pgx.Tx, organization pg.Organization) ([]ledger.Use, error) {
		return postgres.Usages(ctx, tx, organization, query)
	})
}

// An ExplainedRefusal is a refusal with its reason.
type ExplainedRefusal struct {
	ledger.Refusal
	Crossed    *Crossing // nil: refused by a suspension or a budget, or it is gone
	EndsAt     time.Time // when the next period begins; zero: the organization was suspended
	Resolution ledger.Resolution
	Budget     int64 // the least that would have covered it; 0: no budget refused it
}

// A Crossing exhausted an allowance: the request that used its last
// bytes, one that needed more than was left, or an expiry, void or
// adjustment of its last bytes.
type Crossing struct {
	At           time.Time
	Batch        string // of the last accepted request; empty: none exhausted it
	Request      string // refused first; empty: the allowance was used up
	Reason       string // expired, voided or adjusted; empty: a request exhausted it
	Grant        string // of its bytes; empty: the plan's
	Project, Key string
	Bytes        int64
	UsedBy       []postgres.Share // by then
}

// Refusals lists requests that the quota refused, the latest first, with reasons.
func (s *Service) Refusals(ctx context.Context, organization string, query postgres.RefusalQuery) (found []ExplainedRefusal, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		o, _, err := s.Reads.OrganizationNow(ctx, tx, organization)
		if err != nil {
			return err
		}
		refusals, err := postgres.Refusals(ctx, tx, organization, query)
		if err != nil {
			return err
		}
		found, err = s.explain(ctx, tx, o, refusals)
		return err
	})
	return found, err
}

// A limit is an allowance of a period, used up or not.
type limit struct {
	period calendar.Period
	quota  int64
	usedUp bool
}

// explain finds the crossing of each limit once.
func (s *Service) explain(ctx context.Context, tx pgx.Tx, o ledger.Organization, refusals []ledger.Refusal) ([]ExplainedRefusal, error) {
	crossings, explained := map[limit]*Crossing{}, make([]ExplainedRefusal, len(refusals))
	for i, r := range refusals {
		explained[i].Refusal = r
		switch r.Reason {
		case "":
		case contract.ReasonProjectBudget, contract.ReasonKeyBudget:
			explained[i].EndsAt = o.PeriodAt(r.Cause.At).End
			explained[i].Budget = r.Quota - r.Remaining + r.Bytes
			continue
		default:
			continue
		}
		at := limit{o.PeriodAt(r.Cause.At), r.Quota, r.Remaining == 0}
		explained[i].EndsAt, explained[i].Resolution = at.period.End, s.Tiers.Resolution(o, r)
		crossing, known := crossings[at]
		if !known {
			var err error
			if crossing, err = crossingOf(ctx, tx, pg.Organization(o.ID), at, r); err != nil {
				return nil, err
			}
			crossings[at] = crossing
		}
		explained[i].Crossed = crossing
	}
	return explained, nil
}

// crossingOf returns the crossing of a refusal's limit; nil where it is unknown.
func crossingOf(ctx context.Context, tx pgx.Tx, organization pg.Organization, at limit, r ledger.Refusal) (*Crossing, error) {
	var crossing *Crossing
	if at.usedUp {
		last, found, err := postgres.LastUse(ctx, tx, organization, at.period, r.Cause.At)
		if err != nil || !found {
			return nil, err
		}
		crossing = usedUpBy(last)
	} else {
		first, found, err := postgres.FirstRefusal(ctx, tx, organization, at.period, at.quota)
		if err != nil || !found {
			return nil, err
		}
		crossing = &Crossing{At: first.Cause.At, Request: first.Cause.Event, Project: first.Cause.Project, Key: first.Cause.Key, Bytes: first.Bytes}
	}
	shares, err := postgres.Shares(ctx, tx, organization, at.period.Start, crossing.At)
	if err != nil {
		return nil, err
	}
	adjusted, err := postgres.AdjustmentShares(ctx, tx, organization, at.period.Start, crossing.At)
	crossing.UsedBy = append(shares, adjusted...)
	return crossing, err
}

// usedUpBy is a crossing by the transfer of the last bytes.
func usedUpBy(last ledger.Transfer) *Crossing {
	crossing := &Crossing{At: last.Cause.At, Bytes: last.Amount}
	if last.Reason == ledger.Charged || last.Reason == ledger.Late {
		crossing.Batch, crossing.Project, crossing.Key = last.Cause.BatchOfEvent(), last.Cause.Project, last.Cause.Key
	} else {
		crossing.Reason, crossing.Grant = last.Reason.String(), last.Grant
	}
	return crossing
}
