package resume

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
)

// A Position is a consumer's position in a partition.
type Position struct {
	Module, Group, Topic string
	Partition            int
	Next                 int64
	TopicID              *[16]byte  // of its topic; nil: the present one
	Halted               string     // the reason; only this command resumes it
	Last                 *bus.Mark  `db:"-"` // the last record applied; nil: unknown
	Differs              bool       `db:"-"` // the log has another record there
	Since                int64      `db:"-"` // the first offset of the log written since, or not long before; where it Differs
	Deferred             []Deferred `db:"-"` // records deferred at it
}

// Deferred are one organization's records that wait for their turn.
type Deferred struct {
	Next, Last, Records int64
	Halted              bool
}

// gone returns how many of them a log with other bounds has lost, at least.
func (d Deferred) gone(start, end int64) int64 {
	left := max(0, min(d.Last+1, end)-max(d.Next, start))
	return max(0, d.Records-left)
}

// A Log is the log of a partition.
type Log struct {
	cluster.Partition

	Filled bool // its last record is a filler
}

// A place is a partition of a topic.
type place struct {
	topic     string
	partition int
}

// An Outcome is where a position continues.
type Outcome struct {
	Position

	To    int64
	Again int64 // records that are applied now
	Lost  int64 // at least so many are in no log: those that another consumer had, or that were deferred

	LostFrom, LostTo int64 // of those the offsets that others had

	Moved bool // it changes its place or its topic, or is no longer stopped
}

// A Step is what happens to one partition. With Move its log then begins
// at To, followed by its old records. With Fill fillers follow its
// records up to To.
type Step struct {
	Topic     string
	Partition int
	ID        [16]byte // of the present topic
	Log       Log
	Compacted bool // its owner publishes all of it again
	Move      bool
	Fill      bool
	To        int64
	Outcomes  []Outcome
}

// Changed reports whether there is anything to do.
func (s Step) Changed() bool {
	return s.Move || s.Fill || slices.ContainsFunc(s.Outcomes, func(o Outcome) bool { return o.Moved })
}

var (
	errNoLeader = errors.New("it has no leader: check the brokers")
	errHalted   = errors.New("a position is halted though it lies in its log, where offsets may name other records than they did: " +
		"recreate the topic, and it is shown as lost")
	errMixed = errors.New("some consumers have applied records of the recreated topic, others still have positions of the old one: " +
		"neither can be moved. Let those that can apply what it has, and recreate the topic once more: what the others lack is then shown as lost")
)

// places summarizes the positions for a plan.
type places struct {
	furthest, furthestOther int64
	beyond                  bool
	mixed                   bool
}

// look summarizes them.
func (s Step) look(positions []Position) (found places) {
	for _, at := range positions {
		found.furthest = max(found.furthest, at.Next)
		if isOther(at, s.ID) {
			found.furthestOther = max(found.furthestOther, at.Next)
			continue
		}
		found.beyond = found.beyond || at.Next > s.Log.End
		found.mixed = found.mixed || at.Next > s.Log.Start
	}
	found.mixed = found.mixed && found.furthestOther > s.Log.Start
	return found
}

// stuck reports whether nobody can tell where a position in its log
// continues: it was stopped, and it is not known whether the log has
// changed under it since, or the ledger, which goes by offsets, has
// applied others there. At the start of a log no earlier record could
// be another one.
func (s Step) stuck(at Position) bool {
	if isOther(at, s.ID) || s.Compacted || at.Next < s.Log.Start || at.Next > s.Log.End {
		return false
	}
	if strings.HasPrefix(at.Halted, bus.ErrNeverRead.Error()) {
		return true
	}
	unknown := at.Halted != "" && at.Last == nil && !s.Log.Filled && at.Next > s.Log.Start
	return unknown || at.Differs && at.Group == contract.GroupLedger
}

// plan decides about one partition, by its positions and its log.
func plan(topic contract.Topic, id [16]byte, partition int, log Log, positions []Position) (Step, error) {
	s := Step{Topic: topic.Name, Partition: partition, ID: id, Log: log, To: log.Start, Compacted: topic.Config["cleanup.policy"] == "compact"}
	if !log.Led {
		return s, errNoLeader
	}
	if i := slices.IndexFunc(positions, s.stuck); i >= 0 {
		return s, fmt.Errorf("%w: %s at %d: %s", errHalted, positions[i].Group, positions[i].Next, positions[i].Halted)
	}
	found := s.look(positions)
	switch {
	case s.Compacted:
	case found.mixed:
		return s, errMixed
	case found.furthestOther > log.Start:
		s.Move, s.To = true, found.furthest
		if log.Start < log.End {
			s.To = max(s.To, log.End+1)
		}
	case found.beyond:
		s.Fill, s.To = true, found.furthest
	}
	for _, at := range positions {
		s.Outcomes = append(s.Outcomes, s.outcome(at, found))
	}
	return s, nil
}

func isOther(at Position, id [16]byte) bool { return at.TopicID != nil && *at.TopicID != id }

// outcome returns where one consumer continues. It reads a compacted
// topic from its beginning: the topic's owner publishes all of it
// again, and what was applied before has no effect.
func (s Step) outcome(at Position, found places) Outcome {
	o := Outcome{Position: at, To: max(at.Next, s.Log.Start)}
	outside := at.Next < s.Log.Start || at.Next > s.Log.End
	switch {
	case s.Compacted && (isOther(at, s.ID) || outside || at.Halted != "" || at.Differs):
		o.To = s.Log.Start
	case s.Move || isOther(at, s.ID):
		o.To = s.To
	case at.Differs:
		o.To = min(at.Next, max(at.Since, s.Log.Start))
	}
	o.Moved = s.Move || isOther(at, s.ID) || o.To != at.Next || at.Halted != "" ||
		slices.ContainsFunc(at.Deferred, func(d Deferred) bool { return d.Halted })
	o.Again = max(0, s.Log.End-o.To)
	if s.Move {
		o.Again = s.Log.End - s.Log.Start
	}
	if !s.Compacted {
		s.lose(&o, found)
	}
	return o
}

// lose notes what a consumer lacks that others had, or that the log has
// lost.
func (s Step) lose(o *Outcome, found places) {
	start, end := s.Log.Start, s.Log.End
	switch {
	case s.Move:
		o.LostTo, start = found.furthest, math.MaxInt64
	case isOther(o.Position, s.ID):
		o.LostTo, start = min(found.furthest, max(s.Log.Start, found.furthestOther)), math.MaxInt64
	case s.Fill:
		o.LostFrom, o.LostTo = max(o.Next, s.Log.End), found.furthest
		o.Lost = max(0, s.Log.Start-o.Next)
	default:
		o.LostTo = s.Log.Start
	}
	o.LostFrom = max(o.LostFrom, o.Next)
	o.Lost += max(0, o.LostTo-o.LostFrom)
	for _, d := range o.Deferred {
		o.Lost += d.gone(start, end)
	}
}

// plans decides about every partition with positions.
func plans(topics []contract.Topic, seen cluster.Cluster, filled map[place]bool, positions []Position) (steps []Step, err error) {
	for _, topic := range topics {
		of := slices.DeleteFunc(slices.Clone(positions), func(at Position) bool { return at.Topic != topic.Name })
		if len(of) == 0 {
			continue
		}
		found := seen.Topics[topic.Name]
		if found.Err != nil {
			return nil, fmt.Errorf("%s: %w: make what is missing with weir topics", topic.Name, found.Err)
		}
		byPartition := map[int][]Position{}
		for _, at := range of {
			byPartition[at.Partition] = append(byPartition[at.Partition], at)
		}
		for p := range max(len(found.Partitions), slices.MaxFunc(of, func(a, b Position) int { return a.Partition - b.Partition }).Partition+1) {
			if len(byPartition[p]) == 0 {
				continue
			}
			if p >= len(found.Partitions) {
				return nil, fmt.Errorf("%s has %d partitions, and positions are kept in partition %d: add partitions (kafka-topics.sh --alter --partitions)",
					topic.Name, len(found.Partitions), p)
			}
			step, err := plan(topic, found.ID, p, Log{found.Partitions[p], filled[place{topic.Name, p}]}, byPartition[p])
			if err != nil {
				return nil, fmt.Errorf("partition %d of %s: %w", p, topic.Name, err)
			}
			steps = append(steps, step)
		}
	}
	return steps, nil
}
