package ingest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/contract/calendar"
)

// A world is a log of three partitions, a ledger that counts it at its
// own pace, and one process that admits requests.
type world struct {
	random *rand.Rand
	now    time.Time
	log    [3][]logged

	counted ingest.Positions // by the ledger, in its database
	account ingest.Account   // as published last
	marker  ingest.Positions // as published last

	quota    *ingest.Quota
	requests []request // admitted and not yet answered
	admitted int
	spent    map[time.Time]bool // periods with a correct refusal
	wrong    string             // a wrong refusal as exhausted
}

type logged struct {
	at     time.Time
	bytes  int64
	repeat bool // of a charged request: the ledger charges nothing
}

type request struct {
	r         ingest.Reservation
	bytes     int64
	repeat    bool
	landed    bool // it is in the log
	partition int
	offset    int64
}

// One process never admits a byte over a period's quota and never
// refuses one wrongly as exhausted, for any order of requests, repeats,
// acknowledgements, lost answers, failures, ledger progress, period
// ends and restarts.
func TestQuotaNeverOvershoots(t *testing.T) {
	admitted := 0
	for seed := range uint64(500) {
		w := newWorld(seed)
		for step := range 800 {
			w.step()
			if over := w.overshoot(); over != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, over)
			}
			if w.wrong != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, w.wrong)
			}
		}
		admitted += w.admitted
	}
	if admitted < 5000 {
		t.Fatalf("only %d requests were admitted: the test does not test much", admitted)
	}
}

func newWorld(seed uint64) *world {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 5)), now: november.Add(27 * 24 * time.Hour),
		counted: ingest.Positions{}, marker: ingest.Positions{}, account: account(1000, 0), spent: map[time.Time]bool{},
	}
	w.account.Counted = ingest.Positions{}
	w.quota = newQuota(w.account)
	return w
}

// overshoot names the period with more than its quota in the log.
func (w *world) overshoot() string {
	sums := map[time.Time]int64{}
	for _, partition := range w.log {
		for _, l := range partition {
			sums[calendar.PeriodAt(l.at, 1).Start] += l.charged()
		}
	}
	for start, sum := range sums {
		if sum > w.account.Limit {
			return fmt.Sprintf("the period from %v holds %d bytes of %d", start, sum, w.account.Limit)
		}
	}
	return ""
}

// charged is what the ledger charges.
func (l logged) charged() int64 {
	if l.repeat {
		return 0
	}
	return l.bytes
}

// charged returns what the ledger will charge of the log in an instant's period.
func (w *world) charged(at time.Time) (bytes int64) {
	period := calendar.PeriodAt(at, 1)
	for _, partition := range w.log {
		for _, l := range partition {
			if period.Contains(l.at) {
				bytes += l.charged()
			}
		}
	}
	return bytes
}

// send sends a request, sometimes one that may be a repeat.
func (w *world) send() {
	bytes, repeatable := 1+w.random.Int64N(60), w.random.IntN(3) == 0
	ask := w.quota.Reserve
	if repeatable {
		ask = w.quota.Try
	}
	switch r, verdict := ask(w.now, bytes); verdict {
	case ingest.Admitted:
		repeat := repeatable && w.random.IntN(2) == 0
		w.requests = append(w.requests, request{r: r, bytes: bytes, repeat: repeat, partition: w.random.IntN(len(w.log))})
		w.admitted++
	case ingest.Exhausted:
		w.judge(bytes, repeatable)
	}
}

// judge records a wrong refusal as exhausted. A correct one holds for
// the period, unless the request may be a repeat.
func (w *world) judge(bytes int64, repeatable bool) {
	start, charged := calendar.PeriodAt(w.now, 1).Start, w.charged(w.now)
	switch covered := charged+bytes <= w.account.Limit; {
	case covered && !w.spent[start]:
		w.wrong = fmt.Sprintf("%d bytes are refused as exhausted after %d of %d", bytes, charged, w.account.Limit)
	case !repeatable:
		w.spent[start] = true
	}
}

func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.random.IntN(int(20 * time.Minute))))
	switch w.random.IntN(12) {
	case 0, 1, 2:
		w.send()
	case 3, 4:
		w.land()
	case 5, 6:
		w.answer()
	case 7, 8:
		w.count()
	case 9:
		w.publish()
	case 10:
		w.resolve()
	default:
		if w.random.IntN(10) == 0 {
			w.restart()
		}
	}
}

func (w *world) pick() int {
	if len(w.requests) == 0 {
		return -1
	}
	return w.random.IntN(len(w.requests))
}

// land puts a request into the log.
func (w *world) land() {
	i := w.pick()
	if i < 0 || w.requests[i].landed {
		return
	}
	r := &w.requests[i]
	r.landed, r.offset = true, int64(len(w.log[r.partition]))
	w.log[r.partition] = append(w.log[r.partition], logged{r.r.At, r.bytes, r.repeat})
}

// answer reports a request's outcome to the process: its place, absent
// or unknown.
func (w *world) answer() {
	i := w.pick()
	if i < 0 {
		return
	}
	r := w.requests[i]
	w.requests = append(w.requests[:i:i], w.requests[i+1:]...)
	switch {
	case w.random.IntN(4) == 0:
		w.quota.Lost(r.r, w.now)
	case r.landed:
		w.quota.Published(r.r, r.partition, r.offset)
	default:
		w.quota.Release(r.r)
	}
}

// count is a transaction of the ledger.
func (w *world) count() {
	p := w.random.IntN(len(w.log))
	if left := int64(len(w.log[p])) - w.counted[p]; left > 0 {
		w.counted[p] += 1 + w.random.Int64N(left)
	}
}

// publish is a round of the ledger: the account from a snapshot, then
// perhaps the marker. The ledger opens a period when it counts
// something in it, by the clock, or later.
func (w *world) publish() {
	period, open := w.account.Period, w.random.IntN(4) > 0
	if w.random.IntN(2) == 0 && period.Start.Before(calendar.PeriodAt(w.now, 1).Start) {
		period = calendar.PeriodAt(w.now, 1)
	}
	used := int64(0)
	for p, partition := range w.log {
		for _, l := range partition[:w.counted[p]] {
			if open && !l.at.Before(period.End) {
				period, used = calendar.PeriodAt(l.at, 1), 0
			}
		}
	}
	for p, partition := range w.log {
		for _, l := range partition[:w.counted[p]] {
			if period.Contains(l.at) {
				used += l.charged()
			}
		}
	}
	w.account.Period, w.account.Used, w.account.Counted = period, used, maps.Clone(w.counted)
	w.account.Version++
	w.quota.Apply(w.account)
	if w.random.IntN(2) == 0 {
		w.marker = w.account.Counted
		w.quota.Mark(w.marker)
	}
}

// resolve reads the ends of the log for requests lost long enough ago.
func (w *world) resolve() {
	if before := w.now.Add(-time.Minute); w.quota.Incomplete(before) {
		w.quota.Resolve(before, w.ends())
	}
}

func (w *world) ends() ingest.Positions {
	ends := ingest.Positions{}
	for p := range w.log {
		ends[p] = int64(len(w.log[p]))
	}
	return ends
}

// restart keeps only what the ledger published; the new process reads
// the log from the marker on.
func (w *world) restart() {
	w.requests = nil
	w.quota = newQuota(w.account)
	w.quota.Mark(w.marker)
	for p, partition := range w.log {
		for offset := w.marker[p]; offset < int64(len(partition)); offset++ {
			w.quota.Found(partition[offset].at, partition[offset].bytes, p, offset)
		}
	}
}
