package benchmark

import (
	"math/rand/v2"
	"regexp"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/measure/entries"
)

// begins is the day of all events, whatever the day is.
var begins = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// perSecond is the least rate of a day: if fewer come, it ends earlier. Slower
// ones become blocks of a request each, which are merged.
const perSecond = 100

// Sizes of what is stored together, about what a consumer takes in one
// transaction: requests of 100 entries.
const (
	entriesOfRequest = 100
	requestsOfChunk  = 250
)

// A day is the entries, in the order of their times. Several may take chunks.
type day struct {
	mu     sync.Mutex
	from   *entries.Generator
	many   int // entries in all
	length time.Duration
	sent   int
	took   time.Duration // to make the entries
	sample sample
}

func newDay(many int) *day {
	length := min(24*time.Hour, time.Duration(many)*time.Second/perSecond)
	return &day{from: entries.New(1), many: many, length: length, sample: sample{length: length}}
}

// A request is entries that were accepted together.
type request struct {
	at      time.Time // of its last entry
	lines   []byte
	entries int
}

// chunk makes the next requests; none at the end.
func (d *day) chunk() (requests []request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	begun := time.Now()
	for len(requests) < requestsOfChunk && d.sent < d.many {
		r := request{entries: min(entriesOfRequest, d.many-d.sent), lines: make([]byte, 0, entriesOfRequest*500)}
		for range r.entries {
			r.at = d.at(d.sent)
			from := len(r.lines)
			r.lines = append(d.from.Append(r.lines, r.at), '\n')
			d.sample.look(d.sent, r.lines[from:])
			d.sent++
		}
		requests = append(requests, r)
	}
	d.took += time.Since(begun)
	return requests
}

// at is the time of an entry: even, so that no two have the same.
func (d *day) at(entry int) time.Time {
	return begins.Add(time.Duration(float64(d.length) * float64(entry) / float64(d.many))).Truncate(time.Millisecond)
}

// A sample is what some entries of a day have that few others do.
type sample struct {
	length         time.Duration
	traces, orders []string
}

var (
	traceOf = regexp.MustCompile(`"trace_id":"([0-9a-f]+)"`)
	orderOf = regexp.MustCompile(`"message":"[^"]* order ([0-9]+)`)
)

// look takes an entry into the sample now and then.
func (s *sample) look(number int, entry []byte) {
	const every = 1009
	if number%every != 0 {
		return
	}
	s.traces = append(s.traces, string(traceOf.FindSubmatch(entry)[1]))
	if found := orderOf.FindSubmatch(entry); found != nil {
		s.orders = append(s.orders, string(found[1]))
	}
}

// within is a time of the day's second half.
func (s *sample) within(random *rand.Rand) time.Time { return s.moment(random, s.length/2, s.length) }

func (s *sample) early(random *rand.Rand) time.Time { return s.moment(random, 0, s.hour()) }

func (s *sample) late(random *rand.Rand) time.Time {
	return s.moment(random, s.length-s.hour(), s.length)
}

// hour is one of the day's 24.
func (s *sample) hour() time.Duration { return s.length / 24 }

func (*sample) moment(random *rand.Rand, from, to time.Duration) time.Time {
	return begins.Add(from + time.Duration(random.Int64N(int64(to-from)))).Truncate(time.Millisecond)
}

func pick(random *rand.Rand, of []string) string { return of[random.IntN(len(of))] }
