package integrity_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// logged is a charge of an organization by a record of the log.
func logged(organization string, partition int, offset int64, at time.Time) ledger.Charge {
	return ledger.Charge{Organization: organization, Bytes: 10 + offset%7, Entries: 1, Cause: ledger.Cause{
		Event: fmt.Sprintf("%d-%d/1", partition, offset), Partition: partition, Offset: offset, At: at, Project: "project", Key: "key",
	}}
}

// aLog returns partitions of records accepted over some hours, slightly
// out of order; one partition ends early.
func aLog(random *rand.Rand) (log [][]ledger.Charge) {
	for partition := range 3 {
		at, records := ledgertest.November, []ledger.Charge{}
		for offset := range 40 - 15*partition {
			at = at.Add(time.Duration(random.IntN(10)) * time.Minute)
			shuffled := at.Add(-time.Duration(random.IntN(300)) * time.Second)
			records = append(records, logged(fmt.Sprint("organization-", random.IntN(3)), partition, int64(offset), shuffled))
		}
		log = append(log, records)
	}
	return log
}

// applyAll applies a log in transactions of random sizes.
func applyAll(t *testing.T, l *ledgertest.Ledger, log [][]ledger.Charge, random *rand.Rand) {
	t.Helper()
	left := append([][]ledger.Charge{}, log...)
	for len(left) > 0 {
		var charges []ledger.Charge
		for i := range left {
			n := random.IntN(min(len(left[i]), 6) + 1)
			charges, left[i] = append(charges, left[i][:n]...), left[i][n:]
		}
		if len(charges) > 0 {
			l.Apply(t, charges...)
			l.Pass(time.Second)
		}
		kept := left[:0]
		for _, records := range left {
			if len(records) > 0 {
				kept = append(kept, records)
			}
		}
		left = kept
	}
}

func seal(t *testing.T, l *ledgertest.Ledger, by time.Time) {
	t.Helper()
	testenv.Must(t, integrity.Seal(t.Context(), l.Pool, by))
}

// chains returns all heads and roots as text.
func chains(t *testing.T, l *ledgertest.Ledger) (found string) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT concat((SELECT string_agg(concat(organization, sequence, hash), ' ' ORDER BY organization) FROM chains),
			(SELECT string_agg(concat(hour, root), ' ' ORDER BY hour) FROM seals WHERE EXISTS (SELECT FROM links WHERE links.hour = seals.hour)))`).Scan(&found)
	})
	return found
}

// The same log and decisions give the same chains and roots, whatever
// the transactions.
func TestTheSameLogMakesTheSameChain(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	log := aLog(rand.New(rand.NewPCG(seed, 0)))
	var first string
	for round := range uint64(3) {
		l := ledgertest.New(t)
		l.Start(t, "organization-0", ledger.Scale)
		l.SetClock(ledgertest.November.Add(8 * time.Hour))
		suspend(t, l, "organization-0")
		applyAll(t, l, log, rand.New(rand.NewPCG(seed, round)))
		seal(t, l, ledgertest.November.Add(12*time.Hour))
		l.CheckSound(t)
		found := chains(t, l)
		if first == "" {
			first = found
		}
		if found == "" || found != first {
			t.Errorf("round %d made\n%s, the first\n%s", round, found, first)
		}
	}
}

// An hour is sealed once: a parked record of it that is booked later is
// in the next link.
func TestReplaysAreInTheNextLink(t *testing.T) {
	l, noon := ledgertest.New(t), ledgertest.November
	l.Apply(t, logged("acme", 0, 0, noon))
	l.Apply(t, logged("acme", 0, 2, l.Pass(time.Minute)))
	l.Apply(t, logged("acme", 0, 3, noon.Add(time.Hour)))
	seal(t, l, noon.Add(time.Hour))
	l.SetClock(noon.Add(2 * time.Hour))
	l.Apply(t, logged("acme", 0, 1, noon.Add(time.Minute)))
	l.Apply(t, logged("acme", 0, 4, noon.Add(2*time.Hour)))
	seal(t, l, noon.Add(3*time.Hour))
	var charges []int64
	for _, link := range links(t, l, "acme") {
		charges = append(charges, link.Charges)
	}
	if fmt.Sprint(charges) != "[1 2 2]" {
		t.Errorf("links of %v charges, the latest first", charges)
	}
	l.CheckSound(t)
}

func links(t *testing.T, l *ledgertest.Ledger, organization string) (found []ledger.Link) {
	t.Helper()
	l.Read(t, organization, func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = postgres.Links(ctx, tx, pg.Organization(organization), postgres.LinkQuery{To: l.Now().AddDate(1, 0, 0), Limit: 100})
		return err
	})
	return found
}

// A grant's use is compared with its transfers.
func TestVerifyFindsGrants(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	if _, err := l.Grants.Grant(t.Context(), "acme", unitofwork.Request{}, ledger.Grant{Amount: 50, Priority: 1, Starts: l.Now(), Reason: "gift"}); err != nil {
		t.Fatal(err)
	}
	l.Book(t, l.NewCharge("acme", 30))
	l.CheckSound(t)
	for _, tamper := range []string{`UPDATE grants SET consumed = consumed + 1, remaining = remaining - 1`, `UPDATE organizations SET pool = pool + 1`} {
		err := l.Try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, tamper); err != nil {
				return err
			}
			violations, err := postgres.Verify(ctx, tx, l.Balances.Kept, l.Now())
			if len(violations) == 0 || violations[0].Invariant != ledger.GrantIsTransfers {
				t.Errorf("%s: found %v", tamper, violations)
			}
			return errors.Join(err, pgx.ErrTxClosed) // nothing is kept
		})
		if !errors.Is(err, pgx.ErrTxClosed) {
			t.Error(err)
		}
	}
}

// Nothing is sealed before its hour ends. After a crash between cut and
// links the next replica links it.
func TestSealGoesOn(t *testing.T) {
	l, noon := ledgertest.New(t), ledgertest.November
	l.Start(t, "acme", ledger.Scale)
	l.Apply(t, logged("acme", 0, 0, noon))
	seal(t, l, noon.Add(time.Hour-1))
	if n := len(links(t, l, "acme")); n != 1 { // of its creation
		t.Errorf("%d links, and an hour goes on", n)
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		cut, err := postgres.CutHour(ctx, tx, noon.Add(time.Hour))
		if err == nil && !cut {
			t.Error("the hour was not cut")
		}
		return err
	})
	seal(t, l, noon.Add(time.Hour))
	seal(t, l, noon.Add(9*time.Hour))
	if found := links(t, l, "acme"); len(found) != 2 || !found[0].Hour.Equal(noon) || found[0].Bytes != 10 {
		t.Errorf("links %+v", found)
	}
	l.CheckSound(t)
}

// A replica that starts while another links an hour does not put that
// hour's decisions into the next.
func TestAnEmptyHourIsNotCut(t *testing.T) {
	l, noon := ledgertest.Acme(t), ledgertest.November
	suspend(t, l, "acme")
	for _, want := range []bool{true, false} {
		l.As(t, func(ctx context.Context, tx pgx.Tx) error {
			cut, err := postgres.CutHour(ctx, tx, noon.Add(9*time.Hour))
			if cut != want {
				t.Errorf("an hour was cut: %t, want %t", cut, want)
			}
			return err
		})
	}
	seal(t, l, noon.Add(9*time.Hour))
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		var seals, empty int
		err := tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE NOT EXISTS (SELECT FROM links WHERE links.hour = seals.hour)) FROM seals`).Scan(&seals, &empty)
		if seals == 0 || empty > 0 {
			t.Errorf("%d hours are sealed, %d of them empty", seals, empty)
		}
		return err
	})
	l.CheckSound(t)
}

// A decision of a sealed hour that commits later is in the next link,
// even without charges.
func TestADecisionThatComesLateIsInTheNextLink(t *testing.T) {
	l := ledgertest.Acme(t)
	for range 2 {
		l.GrantAcme(t, ledgertest.GrantOf(1))
		seal(t, l, ledgertest.November.Add(9*time.Hour))
	}
	if found := links(t, l, "acme"); len(found) != 3 || !found[0].Hour.After(found[1].Hour) {
		t.Errorf("links %+v", found)
	}
	l.CheckSound(t)
}

// A change to a chain, to its content or to the roots is found.
func TestChainsFindWhatWasChanged(t *testing.T) {
	for tamper, invariant := range map[string]string{
		`UPDATE links SET bytes = bytes + 1 WHERE sequence = 1`:                                   ledger.ChainHolds,
		`DELETE FROM links WHERE sequence = 2`:                                                    ledger.ChainHolds,
		`DELETE FROM links WHERE sequence = 3`:                                                    ledger.ChainHolds,
		`UPDATE chains SET sequence = sequence + 1`:                                               ledger.ChainHolds,
		`UPDATE transfers SET key = 'another' WHERE "offset" = 1`:                                 ledger.ChainIsCharges,
		`UPDATE transfers SET event = 'another/1' WHERE "offset" = 0`:                             ledger.ChainIsCharges,
		`UPDATE transfers SET amount = amount + 1 WHERE "offset" = 1`:                             ledger.ChainIsCharges,
		`DELETE FROM transfers WHERE "offset" = 2`:                                                ledger.ChainIsCharges,
		`UPDATE events SET data = '{"suspended": false}'`:                                         ledger.ChainIsCharges,
		`UPDATE events SET metadata = replace(metadata::text, 'someone', 'anyone')::json`:         ledger.ChainIsCharges,
		`UPDATE seals SET root = sha256(root)`:                                                    ledger.RootIsChains,
		`DELETE FROM links WHERE organization = 'b'; DELETE FROM chains WHERE organization = 'b'`: ledger.RootIsChains,
		`INSERT INTO transfers (organization, effective_at, source, partition, "offset", line, period_start, from_account, to_account,
			amount, entries, reason, project, key, event, booked_at)
			SELECT organization, effective_at, source, partition, "offset", 9, period_start, from_account, to_account, amount, 0, reason, project,
			'', event, booked_at FROM transfers WHERE "offset" = 1`: ledger.ChainIsCharges,
	} {
		t.Run(tamper, func(t *testing.T) {
			l := sealed(t)
			l.CheckSound(t)
			l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
				if _, err := tx.Conn().PgConn().Exec(ctx, tamper).ReadAll(); err != nil {
					return err
				}
				violations, err := postgres.VerifyChains(ctx, tx, time.Time{})
				for _, v := range violations {
					if v.Invariant == invariant {
						return err
					}
				}
				t.Errorf("found %v", violations)
				return err
			})
		})
	}
}

// A chain without its beginning still verifies and is compared with its charges.
func TestTheRestOfAChainHolds(t *testing.T) {
	l := sealed(t)
	forget := func(ctx context.Context, tx pgx.Tx) error {
		for _, table := range []string{"links", "cuts"} {
			if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE hour <= $1`, ledgertest.November); err != nil {
				return err
			}
		}
		return nil
	}
	l.As(t, forget)
	l.SetClock(ledgertest.November.AddDate(0, l.Balances.Kept.Hours, 0)) // when they go
	l.CheckSound(t)
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE transfers SET key = 'another' WHERE "offset" = 2`); err != nil {
			return err
		}
		violations, err := postgres.VerifyChains(ctx, tx, time.Time{})
		if len(violations) != 1 || violations[0].Invariant != ledger.ChainIsCharges {
			t.Errorf("found %v", violations)
		}
		return err
	})
}

// sealed is a ledger with three links of one organization and one of another.
func sealed(t *testing.T) *ledgertest.Ledger {
	t.Helper()
	l, noon := ledgertest.New(t), ledgertest.November
	l.Start(t, "acme", ledger.Scale)
	l.Apply(t, logged("acme", 0, 0, noon), logged("b", 1, 0, noon))
	suspend(t, l, "acme")
	for offset := range int64(3) {
		l.SetClock(noon.Add(time.Duration(offset+1) * time.Hour))
		l.Apply(t, logged("acme", 0, offset+1, l.Now()))
	}
	seal(t, l, l.Now())
	return l
}

func suspend(t *testing.T, l *ledgertest.Ledger, organization string) {
	t.Helper()
	suspended := true
	wanted := ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Scale}, Suspended: &suspended}
	if _, err := l.Plans.Subscribe(t.Context(), organization, unitofwork.Request{Actor: "someone", ID: "request"}, wanted); err != nil {
		t.Fatal(err)
	}
}

// A charge parked for days is in the link of the hour of its replay,
// even in a check of the latest links.
func TestChecksFindWhatWasParkedForDays(t *testing.T) {
	l, noon := ledgertest.New(t), ledgertest.November
	l.Start(t, "acme", ledger.Scale)
	l.Apply(t, logged("acme", 0, 0, noon))
	l.SetClock(noon.Add(5 * 24 * time.Hour))
	l.Apply(t, logged("acme", 0, 2, l.Now()))
	seal(t, l, l.Now())
	l.Apply(t, logged("acme", 0, 1, noon.Add(time.Minute)))
	l.Apply(t, logged("acme", 0, 3, l.Pass(time.Hour)))
	seal(t, l, l.Pass(2*time.Hour))
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		violations, err := postgres.CheckChain(ctx, tx, "acme", l.Now().Add(-24*time.Hour))
		if len(violations) != 0 {
			t.Errorf("found %v", violations)
		}
		return err
	})
	l.CheckSound(t)
}

// Refusals are sealed where nothing else happens, those that come later by
// a later root.
func TestRefusalsAreSealed(t *testing.T) {
	l := ledgertest.Acme(t)
	seal(t, l, l.Pass(2*time.Hour).Truncate(time.Hour))
	for i := range 2 {
		refusal := ledger.Refusal{
			Organization: "acme", Bytes: 9, Quota: 5, PeriodStart: l.BalanceNow(t, "acme").Book.Period.Start, Exhausts: true, Requests: 1,
			Cause: ledger.Cause{Event: fmt.Sprint("req_", i), At: l.Now()},
		}
		l.As(t, func(ctx context.Context, tx pgx.Tx) error {
			_, err := l.Booking.Refuse(ctx, tx, l.Now(), []ledger.Refusal{refusal, refusal})
			return err
		})
		seal(t, l, l.Now())
		seal(t, l, l.Pass(2*time.Hour).Truncate(time.Hour))
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		var sealed, sums int
		err := tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM seals WHERE refused IS NOT NULL), (SELECT count(*) FROM refusal_days WHERE refusals = 1)`).Scan(&sealed, &sums)
		if sealed != 2 || sums != 2 {
			t.Errorf("%d roots have %d sums of refusals, want 2 of 2", sealed, sums)
		}
		return err
	})
	l.CheckSound(t)
}

// Empty hours count as sealed, except while the log holds unbooked
// records. The log's end is read once an hour.
func TestQuietHoursAreNotBehind(t *testing.T) {
	l, noon := ledgertest.New(t), ledgertest.November.Truncate(time.Hour)
	l.SetClock(noon)
	l.Apply(t, logged("acme", 0, 0, noon))
	var log snapshot.End
	asked := 0
	sealer := &integrity.Sealer{
		Pool: l.Pool, Sealed: integrity.NewSealed(prometheus.NewRegistry()), Checkpoint: integrity.NewCheckpoint(prometheus.NewRegistry()),
		Time: func(context.Context, pgx.Tx) (time.Time, error) { return l.Now(), nil },
		End: func(context.Context) (snapshot.End, error) {
			asked++
			return log, nil
		},
	}
	check := func(want time.Time) {
		t.Helper()
		testenv.Must(t, sealer.RunOnce(t.Context()))
		if got := time.Unix(int64(testutil.ToFloat64(sealer.Sealed)), 0).UTC(); !got.Equal(want) {
			t.Errorf("at %s sealed through %s, want %s", l.Now(), got, want)
		}
	}
	l.SetClock(noon.Add(time.Hour + snapshot.Settling))
	check(noon.Add(time.Hour))
	l.SetClock(noon.Add(5*time.Hour + snapshot.Settling))
	check(noon.Add(5 * time.Hour))
	for before := asked; l.Now().Before(noon.Add(6*time.Hour + snapshot.Settling)); l.Pass(5 * time.Minute) {
		check(noon.Add(5 * time.Hour))
		if asked > before {
			t.Fatal("the brokers are asked where the log ends, though no hour is over that is not sealed")
		}
	}
	log.Next = contract.Positions{0: 2}
	l.SetClock(noon.Add(9 * time.Hour))
	check(noon.Add(5 * time.Hour))
	if links := links(t, l, "acme"); len(links) != 1 || links[0].Charges != 1 {
		t.Errorf("links %+v", links)
	}
}

// The charges of an hour are found by their booking, without reading
// the whole day, even after an outage of days.
func TestChargesOfAnHourAreFoundByBooking(t *testing.T) {
	for name, pauses := range map[string]int{"each day": 1, "after an outage": 3} {
		t.Run(name, func(t *testing.T) {
			l := ledgertest.New(t)
			l.Start(t, "acme", ledger.Scale)
			sealer := &integrity.Sealer{
				Pool: l.Pool, Sealed: integrity.NewSealed(prometheus.NewRegistry()), Checkpoint: integrity.NewCheckpoint(prometheus.NewRegistry()),
				Time: func(context.Context, pgx.Tx) (time.Time, error) { return l.Now(), nil },
				End:  func(context.Context) (snapshot.End, error) { return snapshot.End{}, nil },
			}
			const days, perDay = 3, 3000 // more than the index has of an empty day
			for day := range days {
				charges := make([]ledger.Charge, perDay)
				for i := range charges {
					charges[i] = logged("acme", 0, int64(day*perDay+i), l.Now())
				}
				l.Apply(t, charges...)
				l.Pass(24 * time.Hour)
				if (day+1)%pauses > 0 {
					continue
				}
				testenv.Must(t, sealer.RunOnce(t.Context()))
			}
			wantSummarized(t, l, days)
		})
	}
}

// wantSummarized counts the unindexed stretches of some days.
func wantSummarized(t *testing.T, l *ledgertest.Ledger, days int) {
	t.Helper()
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		var left, indexes int
		err := tx.QueryRow(ctx, `SELECT coalesce(sum(brin_summarize_new_values(i.indexrelid)), 0), count(*) FROM pg_inherits JOIN pg_index i ON indrelid = inhrelid
			JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
			WHERE inhparent = 'transfers'::regclass AND amname = 'brin' AND pg_relation_size(indrelid) > 32 * 8192
				AND indrelid::regclass::text >= 'transfers_20261120'`).Scan(&left, &indexes)
		if err == nil && (left != 0 || indexes < days) {
			t.Errorf("of %d days %d stretches are read whole", indexes, left)
		}
		return err
	})
}
