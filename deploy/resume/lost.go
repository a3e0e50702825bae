package resume

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A loss is what one consumer of weir.logs.v1 lacks, as far as the
// ledger knows it.
type loss struct {
	charged map[string]ledger.Charged // by organization
	unknown int64                     // offsets that the ledger has not applied either
}

// explainLost says whose records are lost, and of when, as far as
// anything knows.
func (i *installation) explainLost(ctx context.Context, out io.Writer, steps []Step) error {
	losses := map[string]*loss{}
	err := pg.InTxAsSystem(ctx, i.pools["ledger"], func(tx pgx.Tx) error {
		for _, step := range steps {
			if err := step.addLosses(ctx, tx, losses); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ledger: cannot read whose records are lost: %w", err)
	}
	for _, group := range slices.Sorted(maps.Keys(losses)) {
		if err := losses[group].write(out, group); err != nil {
			return err
		}
	}
	return uncounted(out, steps)
}

// addLosses adds what consumers lack of a partition of weir.logs.v1.
func (s Step) addLosses(ctx context.Context, tx pgx.Tx, losses map[string]*loss) error {
	if s.Topic != contract.TopicLogs {
		return nil
	}
	known := int64(0)
	for _, o := range s.Outcomes {
		if o.Group == contract.GroupLedger {
			known = o.Next
		}
	}
	for _, o := range s.Outcomes {
		if o.LostTo <= o.LostFrom {
			continue
		}
		l := losses[o.Group]
		if l == nil {
			l = &loss{charged: map[string]ledger.Charged{}}
			losses[o.Group] = l
		}
		l.unknown += o.LostTo - max(o.LostFrom, min(known, o.LostTo))
		found, err := ledger.ChargedIn(ctx, tx, s.Partition, o.LostFrom, min(known, o.LostTo))
		if err != nil {
			return err
		}
		for _, c := range found {
			l.add(c)
		}
	}
	return nil
}

func (l *loss) add(c ledger.Charged) {
	was, known := l.charged[c.Organization]
	if known {
		c.Requests, c.Bytes = c.Requests+was.Requests, c.Bytes+was.Bytes
		if was.First.Before(c.First) {
			c.First = was.First
		}
		if was.Last.After(c.Last) {
			c.Last = was.Last
		}
	}
	l.charged[c.Organization] = c
}

func (l *loss) write(out io.Writer, group string) error {
	fmt.Fprintf(out, "\n%s lacks, as the ledger has charged it:\n", group)
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ORGANIZATION\tREQUESTS\tBYTES\tACCEPTED FROM\tTO")
	for _, organization := range slices.Sorted(maps.Keys(l.charged)) {
		c := l.charged[organization]
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\n", organization, c.Requests, c.Bytes, stamp(c.First), stamp(c.Last))
	}
	if l.unknown > 0 {
		fmt.Fprintf(t, "unknown\t%d records at most\tunknown\tunknown\tunknown\n", l.unknown)
	}
	return t.Flush()
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// uncounted says since when records may be lost that no consumer had
// applied: of those nothing is known. The zero time: at any time.
func uncounted(out io.Writer, steps []Step) error {
	since := map[string]time.Time{}
	for _, step := range steps {
		if !step.Fill {
			continue
		}
		var last time.Time
		for _, o := range step.Outcomes {
			if o.Last != nil && o.Last.Time.After(last) {
				last = o.Last.Time
			}
		}
		if was, known := since[step.Topic]; !known || last.Before(was) {
			since[step.Topic] = last
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(since)) {
		after := ""
		if !since[topic].IsZero() {
			after = " after " + stamp(since[topic])
		}
		_, err := fmt.Fprintf(out, "uncounted: what was written to %s%s, and no consumer had applied, may be lost too. Nothing knows how much that is.\n",
			topic, after)
		if err != nil {
			return err
		}
	}
	return nil
}
