package outcomes

import (
	"sync"
	"time"
)

// A counter identifies what is counted separately of an organization's requests.
type counter struct{ project, key, environment, outcome, reason string }

// An organization holds the unpublished counts of its requests.
type organization struct {
	id string

	mu       sync.Mutex
	counts   map[counter]*Count // bounded by maxOfOne, and the reasons there are
	keyed    int                // of counts: with a key
	since    time.Time          // of the first in counts
	refusals refusals
	dropped  bool // no longer published

	unsent *Counts // was perhaps published; nil: nothing. Of the goroutine that publishes
}

func newOrganization(id string) *organization {
	return &organization{id: id, counts: map[counter]*Count{}, refusals: refusals{byKey: map[string]*Refusal{}}}
}

func (o *organization) note(what counter, request Request, at time.Time) {
	if len(o.counts) == 0 {
		o.since = at
	}
	count := o.counts[what]
	if count == nil {
		count = &Count{
			Project: what.project, APIKey: what.key, Environment: what.environment, Outcome: what.outcome, Reason: what.reason,
		}
		o.counts[what] = count
	}
	count.Requests += request.Requests
	count.Entries += request.Entries
	count.Bytes += request.Bytes
	if request.KeyInBody {
		count.KeyInBody += request.Requests
	}
}

// take empties the counts. freed is how many counters with a key that were.
func (o *organization) take(now time.Time) (fact *Counts, freed int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.counts) == 0 {
		return nil, 0
	}
	fact = &Counts{Organization: o.id, From: o.since, To: now}
	for _, count := range o.counts {
		fact.Counts = append(fact.Counts, *count)
	}
	freed = int64(o.keyed)
	o.counts, o.keyed = map[counter]*Count{}, 0
	return fact, freed
}

// idle reports whether nothing is left to publish.
func (o *organization) idle() bool {
	r := &o.refusals
	return len(o.counts)+len(r.byKey)+len(r.first)+len(r.unsent) == 0 && o.unsent == nil
}

// refusals are those by quota that are not yet published.
type refusals struct {
	byKey  map[string]*Refusal // gathered meanwhile; Requests 0: none; bounded by maxRefusals
	first  []Refusal           // of their keys, and not yet taken
	unsent []Refusal           // was perhaps published; of the goroutine that publishes
}

// refuse adds a refusal and reports whether to publish it at once: the
// first of its key for a while, or the first that exhausts the quota.
func (o *organization) refuse(refused Refusal) (first bool) {
	refused.Requests = 1
	gathered, known := o.refusals.byKey[refused.APIKey]
	if !known && len(o.refusals.byKey) >= maxRefusals {
		refused.Project, refused.APIKey, refused.Environment = "", "", ""
		gathered, known = o.refusals.byKey[""]
	}
	if !known {
		o.refusals.first = append(o.refusals.first, refused)
		refused.Requests = 0
		o.refusals.byKey[refused.APIKey] = &refused
		return true
	}
	exhausted := gathered.Exhausts && sameAllowance(*gathered, refused)
	first = refused.Exhausts && !exhausted
	refused.Requests, refused.Exhausts = gathered.Requests+1, refused.Exhausts || exhausted
	if first {
		o.refusals.first = append(o.refusals.first, refused)
		refused.Requests = 0
	}
	*gathered = refused
	return first
}

// sameAllowance reports whether what one refusal exhausts, the other does: a
// suspended organization's allowance is not what refused it.
func sameAllowance(a, b Refusal) bool {
	return a.Quota == b.Quota && a.Since == b.Since && a.PeriodStart.Equal(b.PeriodStart) && a.Reason == b.Reason
}

// takeRefusals returns the refusals to publish now and those that
// failed before. With the gathered ones, idle keys are dropped: their
// next refusal is a first one.
func (o *organization) takeRefusals(all bool) []Refusal {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &o.refusals
	all = all && len(r.unsent) == 0 // without brokers at most one fact for each key is kept
	r.unsent, r.first = append(r.unsent, r.first...), nil
	if !all {
		return r.unsent
	}
	for key, gathered := range r.byKey {
		if gathered.Requests == 0 {
			delete(r.byKey, key)
			continue
		}
		r.unsent = append(r.unsent, *gathered)
		gathered.Requests = 0
	}
	return r.unsent
}
