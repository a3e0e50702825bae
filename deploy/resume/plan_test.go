package resume

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// Where consumers continue, given positions and the log.
func TestPlan(t *testing.T) {
	now, before := [16]byte{1}, [16]byte{2}
	at := func(id [16]byte, next ...int64) (all []Position) {
		for i, n := range next {
			all = append(all, Position{Group: fmt.Sprint(i), Next: n, TopicID: &id})
		}
		return all
	}
	deferring := func(id [16]byte, d Deferred, next ...int64) []Position {
		all := at(id, next...)
		all[len(all)-1].Deferred = []Deferred{d}
		return all
	}
	halted := func(why string, next ...int64) []Position {
		all := at(now, next...)
		all[len(all)-1].Halted = why
		return all
	}
	const outside = "position outside the log: at 100, log from 0 to 90"
	facts, state := map[string]string{"cleanup.policy": "delete"}, map[string]string{"cleanup.policy": "compact"}
	tests := map[string]struct {
		config     map[string]string
		start, end int64
		positions  []Position
		err        error
		move       bool
		to         []int64
		again      []int64
		lost       []int64
	}{
		"the log reaches back":                   {facts, 10, 100, at(now, 40, 100), nil, false, []int64{40, 100}, []int64{60, 0}, []int64{0, 0}},
		"the log begins later":                   {facts, 50, 100, at(now, 40, 100), nil, false, []int64{50, 100}, []int64{50, 0}, []int64{10, 0}},
		"an empty log, recreated":                {facts, 0, 0, at(before, 80, 100), nil, true, []int64{100, 100}, []int64{0, 0}, []int64{20, 0}},
		"with deferred records":                  {facts, 0, 0, deferring(before, Deferred{Next: 3, Last: 70, Records: 7}, 100, 80), nil, true, []int64{100, 100}, []int64{0, 0}, []int64{0, 27}},
		"a log recreated that has records":       {facts, 0, 30, at(before, 80, 100), nil, true, []int64{100, 100}, []int64{30, 30}, []int64{20, 0}},
		"a log recreated that is longer":         {facts, 0, 300, at(before, 80, 100), nil, true, []int64{301, 301}, []int64{300, 300}, []int64{20, 0}},
		"nothing was ever applied":               {facts, 0, 5, at(before, 0), nil, false, []int64{0}, []int64{5}, []int64{0}},
		"moved already, one module is not set":   {facts, 100, 120, append(at(before, 80), at(now, 100)...), nil, false, []int64{100, 100}, []int64{20, 20}, []int64{20, 0}},
		"a topic whose id is not known":          {facts, 0, 100, []Position{{Next: 40}}, nil, false, []int64{40}, []int64{60}, []int64{0}},
		"the log lost its end":                   {facts, 0, 90, at(now, 90, 100), nil, false, []int64{90, 100}, []int64{0, 0}, []int64{10, 0}},
		"the log lost its end, some is deferred": {facts, 0, 90, deferring(now, Deferred{Next: 20, Last: 60, Records: 7}, 90, 100), nil, false, []int64{90, 100}, []int64{0, 0}, []int64{10, 0}},
		"the end was deferred":                   {facts, 0, 90, deferring(now, Deferred{Next: 88, Last: 95, Records: 8}, 90, 100), nil, false, []int64{90, 100}, []int64{0, 0}, []int64{10, 6}},
		"what is deferred is in no log":          {facts, 90, 90, deferring(now, Deferred{Next: 20, Last: 60, Records: 7}, 90, 100), nil, false, []int64{90, 100}, []int64{0, 0}, []int64{10, 7}},
		"a log that begins behind deferred ones": {facts, 50, 100, deferring(now, Deferred{Next: 20, Last: 59, Records: 13}, 90), nil, false, []int64{90}, []int64{10}, []int64{3}},
		"halted, written over since":             {facts, 0, 120, halted(outside, 120, 100), errHalted, false, nil, nil, nil},
		"halted, moved, and not set":             {facts, 100, 100, halted(outside, 100, 100), nil, false, []int64{100, 100}, []int64{0, 0}, []int64{0, 0}},
		"never read":                             {facts, 50, 100, halted("records are gone that were never read: 0 to 49", 50), errHalted, false, nil, nil, nil},
		"some have begun with the new topic":     {facts, 0, 30, append(at(before, 100), at(now, 5)...), errMixed, false, nil, nil, nil},
		"moved, run, and one module is not set":  {facts, 100, 120, append(at(before, 80), at(now, 105)...), nil, false, []int64{100, 105}, []int64{20, 15}, []int64{20, 0}},
		"the log lost its end, one has not read": {facts, 0, 90, at(now, 80, 95, 100), nil, false, []int64{80, 95, 100}, []int64{10, 0, 0}, []int64{10, 5, 0}},
		"it lost its start as well":              {facts, 50, 90, at(now, 40, 100), nil, false, []int64{50, 100}, []int64{40, 0}, []int64{20, 0}},
		"a compacted topic, recreated":           {state, 0, 3, at(before, 80, 100), nil, false, []int64{0, 0}, []int64{3, 3}, []int64{0, 0}},
		"a compacted topic that lost its end":    {state, 0, 3, at(now, 100, 2), nil, false, []int64{0, 2}, []int64{3, 1}, []int64{0, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := plan(contract.Topic{Config: test.config}, now, 0,
				Log{Partition: cluster.Partition{Led: true, Start: test.start, End: test.end}}, test.positions)
			if !errors.Is(err, test.err) || s.Move != test.move {
				t.Fatalf("%+v, %v", s, err)
			}
			for i := range test.to {
				o := s.Outcomes[i]
				if o.To != test.to[i] || o.Again != test.again[i] || o.Lost != test.lost[i] {
					t.Errorf("%s goes on at %d, reads %d, lost %d; want %d, %d, %d", o.Group, o.To, o.Again, o.Lost, test.to[i], test.again[i], test.lost[i])
				}
			}
		})
	}
}

// Filling that was interrupted is completed, and clears who was stopped.
func TestPlanResumes(t *testing.T) {
	id := [16]byte{1}
	positions := []Position{{Group: "behind", Next: 90, TopicID: &id}, {Group: "furthest", Next: 100, TopicID: &id, Halted: "position outside the log"}}
	for _, end := range []int64{95, 100} {
		s, err := plan(contract.Topic{}, id, 0, Log{cluster.Partition{Led: true, End: end}, true}, positions)
		if err != nil || s.Fill != (end < 100) || s.Outcomes[0].Moved || !s.Outcomes[1].Moved || s.Outcomes[1].To != 100 {
			t.Errorf("filled up to %d: %+v, %v", end, s, err)
		}
	}
}

// Whose last record the log still has goes on; whose it doesn't reads
// again what was written since, unless it is the ledger, which goes by
// offsets.
func TestPlanOfALogThatHasGrown(t *testing.T) {
	id, last := [16]byte{1}, &bus.Mark{Offset: 99}
	stopped := func(group string, differs bool) Position {
		return Position{Group: group, Next: 100, TopicID: &id, Halted: "position outside the log", Last: last, Differs: differs, Since: 70}
	}
	log := Log{Partition: cluster.Partition{Led: true, End: 120}}
	for name, c := range map[string]struct {
		at  Position
		err error
		to  int64
	}{
		"its record came back":     {stopped("grouping.clusters", false), nil, 100},
		"another record":           {stopped("grouping.clusters", true), nil, 70},
		"another under the ledger": {stopped(contract.GroupLedger, true), errHalted, 0},
	} {
		s, err := plan(contract.Topic{}, id, 0, log, []Position{c.at})
		if !errors.Is(err, c.err) || err == nil && (s.Outcomes[0].To != c.to || !s.Outcomes[0].Moved || s.Fill || s.Move) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// The table does not claim completeness if anything is lost.
func TestTableOfLost(t *testing.T) {
	var out strings.Builder
	if err := table(&out, []Step{{Outcomes: []Outcome{{Lost: 3}}}}); err != nil || strings.Contains(out.String(), "Every position") {
		t.Errorf("%s, %v", out.String(), err)
	}
}

// Ingest publishes without a lease: only its groups show that a process runs.
func TestAlone(t *testing.T) {
	i, steps := &installation{brokers: kafkatest.Brokers(t)}, []Step{{Outcomes: []Outcome{{Position: Position{Group: contract.GroupLogStore}}}}}
	if err := i.refuseOthers(t.Context(), steps); err != nil {
		t.Errorf("nobody runs: %v", err)
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{ID: contract.GroupLogStore, Brokers: i.brokers, Topics: []string{contract.TopicLogs}})
	testenv.Must(t, err)
	defer group.Close()
	if _, err := group.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.refuseOthers(t.Context(), steps); !errors.Is(err, errConsuming) {
		t.Errorf("a process runs: %v", err)
	}
}

// A mistyped directory is refused, and nothing is made in it.
func TestNoDataDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := Run(t.Context(), Config{Source: backup.Source{DataDir: dir}}, io.Discard); err == nil {
		t.Error("a directory that no weir run has used is resumed")
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("it holds %v, %v", made, err)
	}
}
