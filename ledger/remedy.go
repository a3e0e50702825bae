package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A Remedy is what would have a refused request accepted before its period ends.
type Remedy struct {
	Grant int64  // the bytes of the least grant that covers it
	Tiers []Tier // whose allowance for the rest of the period covers it, the smallest first
}

// Remedy is what would end a refusal. An upgrade grants the
// difference for the rest of the period.
func (t Tiers) Remedy(r Refusal, period calendar.Period) Remedy {
	remedy := Remedy{Grant: max(1, r.Bytes-r.Remaining)}
	whole, rest := int64(period.End.Sub(period.Start)/time.Second), int64(period.End.Sub(r.Cause.At)/time.Second)
	for tier, terms := range t {
		if terms.Quota <= r.Quota {
			continue
		}
		if more, _ := mulDiv(terms.Quota-r.Quota, max(0, rest), whole); more >= remedy.Grant {
			remedy.Tiers = append(remedy.Tiers, tier)
		}
	}
	slices.SortFunc(remedy.Tiers, func(a, b Tier) int { return cmp.Or(cmp.Compare(t[a].Quota, t[b].Quota), cmp.Compare(a, b)) })
	return remedy
}
