package ledger

import (
	"cmp"
	"slices"
)

// A Resolution would have a refused request accepted in its period.
type Resolution struct {
	Grant int64  // bytes of the least grant that covers it
	Tiers []Tier // the upgrades that cover it, the smallest first
}

// Resolution returns what would end a refusal under the plan of its
// instant, whose other terms stay.
func (t Tiers) Resolution(o Organization, r Refusal) Resolution {
	resolution, plan := Resolution{Grant: max(1, r.Bytes-r.Remaining)}, o.Plans.At(r.Cause.At)
	for tier, terms := range t {
		if tier != plan.Tier && o.prorated(plan, Plan{TierTerms: terms}, r.Cause.At) >= resolution.Grant {
			resolution.Tiers = append(resolution.Tiers, tier)
		}
	}
	slices.SortFunc(resolution.Tiers, func(a, b Tier) int { return cmp.Or(cmp.Compare(t[a].Quota, t[b].Quota), cmp.Compare(a, b)) })
	return resolution
}
