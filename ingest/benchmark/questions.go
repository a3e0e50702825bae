package benchmark

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A question is asked of every store, with the values of a search or a count
// in the languages of both.
type question struct {
	name string
	goal time.Duration // at most, of p95
	ask  func(random *rand.Rand, s *sample) ask
}

// An ask is a question with values. Without a count it asks for a page of the newest.
type ask struct {
	from, to time.Time
	query    string // in Weir's language
	logsQL   string // in VictoriaLogs'
	page     int    // from 0
	count    *count
}

// A count asks for numbers instead of entries.
type count struct {
	every time.Duration // 0: no buckets
	by    string        // a field; "": by none
}

const pageSize = 100

// Goals of p95.
const (
	goalAny  = 200 * time.Millisecond
	goalRare = 30 * time.Millisecond
	goalPeer = 2.0 // times what VictoriaLogs takes
)

// phrases have no word that may be the id of a user, as in usr_took: for Weir that is two words, for
// VictoriaLogs one.
var phrases = []string{
	"did not answer", "cache miss for product", "handed over at depot", "slow query", "out of memory", "cannot be routed", "expired in the middle",
	"insufficient funds", "query", "bank did not confirm the payment", "route computed", "deprecated function called",
}

var questions = []question{
	{"newest page", goalAny, func(random *rand.Rand, s *sample) ask { return ask{to: s.within(random)} }},
	{"page 100", goalAny, func(random *rand.Rand, s *sample) ask { return ask{to: s.within(random), page: 99} }},
	{"page 100 of level info", goalAny, func(random *rand.Rand, s *sample) ask {
		return ask{to: s.within(random), page: 99, query: "level:info", logsQL: "level:=info"}
	}},
	{"level", goalAny, func(random *rand.Rand, s *sample) ask {
		level := pick(random, []string{"error", "warn", "fatal", "debug"})
		return ask{to: s.within(random), query: "level:" + level, logsQL: "level:=" + level}
	}},
	{"phrase", goalAny, func(random *rand.Rand, s *sample) ask {
		phrase := fmt.Sprintf("%q", pick(random, phrases))
		return ask{to: s.within(random), query: phrase, logsQL: phrase}
	}},
	{"rare word", goalRare, func(random *rand.Rand, s *sample) ask {
		order := pick(random, s.orders)
		return ask{query: order, logsQL: order}
	}},
	{"absent word", goalRare, func(random *rand.Rand, _ *sample) ask {
		word := fmt.Sprintf("zq%d", random.Uint64())
		return ask{query: word, logsQL: word}
	}},
	{"trace id", goalRare, func(random *rand.Rand, s *sample) ask {
		trace := pick(random, s.traces)
		return ask{query: "metadata.trace_id:" + trace, logsQL: `"metadata.trace_id":=` + trace}
	}},
	{"absent trace id", goalRare, func(random *rand.Rand, _ *sample) ask {
		trace := fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64())
		return ask{query: "metadata.trace_id:" + trace, logsQL: `"metadata.trace_id":=` + trace}
	}},
	{"count over the day", goalAny, func(random *rand.Rand, s *sample) ask {
		return ask{from: s.early(random), to: s.late(random), count: new(count)}
	}},
	{"histogram by level", goalAny, func(random *rand.Rand, s *sample) ask {
		return ask{from: s.early(random), to: s.late(random), count: &count{every: max(time.Second, (s.hour() / 4).Truncate(time.Second))}}
	}},
	{"count of a phrase", goalAny, func(random *rand.Rand, s *sample) ask {
		phrase := fmt.Sprintf("%q", pick(random, phrases))
		return ask{from: s.early(random), to: s.late(random), query: phrase, logsQL: phrase, count: new(count)}
	}},
	{"facet of an hour", goalAny, func(random *rand.Rand, s *sample) ask {
		to := s.within(random)
		return ask{from: to.Add(-s.hour()), to: to, count: &count{by: pick(random, fields)}}
	}},
	{"facet over the day", goalAny, func(random *rand.Rand, s *sample) ask {
		return ask{from: s.early(random), to: s.late(random), count: &count{by: pick(random, fields)}}
	}},
}

// fields have few values, of which a store need not guess the most frequent.
var fields = []string{"metadata.service", "metadata.host", "metadata.status", "metadata.region"}

// An answer is comparable: times of entries, which no two have in common, or
// numbers by what was counted.
type answer struct {
	times  []int64          // Unix milliseconds, newest first
	counts map[string]int64 // bounded by buckets and values
}
