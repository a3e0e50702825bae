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
	Halted               string     // the reason; only a person resumes it
	Deferred             []Deferred `db:"-"` // records deferred at it
}

// Deferred are one organization's records that wait for their turn.
type Deferred struct {
	Next, Last, Records int64
}

// gone returns how many of them a log with a later start has lost, at least.
func (d Deferred) gone(start int64) int64 {
	left := max(0, d.Last+1-max(d.Next, start))
	return max(0, d.Records-left)
}

// A Log is the log of a partition.
type Log struct {
	cluster.Partition

	Filled bool // its last record is empty: a move was interrupted
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
	Moved bool  // it changes its place, or its topic
}

// A Step is what happens to one partition. If Move is set its log then
// begins at To, followed by its old records, unless Drop is set: then
// every consumer has applied them.
type Step struct {
	Topic     string
	Partition int
	ID        [16]byte // of the present topic
	Log       Log
	Compacted bool // its owner publishes all of it again
	Move      bool
	Drop      bool
	To        int64
	Outcomes  []Outcome
}

// Changed reports whether there is anything to do.
func (s Step) Changed() bool {
	return s.Move || slices.ContainsFunc(s.Outcomes, func(o Outcome) bool { return o.Moved })
}

var (
	errNoLeader = errors.New("it has no leader: check the brokers")
	errUnread   = errors.New("the end of its log is lost, and not all consumers have applied what is left: " +
		"let the consumers that can go on apply it while nobody publishes (for weir.logs.v1: not ingest, or where no client reaches it), and do this again. " +
		"What is left for a consumer that is halted can't be applied: bring the log back, or recreate the topic, and it is shown as lost")
	errHalted = errors.New("a position is halted though it lies in its log, where offsets may name other records than they did")
	errMixed  = errors.New("some consumers have applied records of the recreated topic, others still have positions of the old one: " +
		"neither can be moved. Let those that can apply what it has, and recreate the topic once more: what the others lack is then shown as lost")
)

// places summarizes the positions for a plan.
type places struct {
	furthest, furthestOther  int64
	replaced, beyond, unread bool // unread: what the log has
	mixed                    bool
}

// look summarizes them. A log that was filled up has nothing to read:
// it was emptied before.
func (s Step) look(positions []Position) (found places) {
	end := s.Log.End
	if s.Log.Filled {
		end = s.Log.Start
	}
	for _, at := range positions {
		found.furthest = max(found.furthest, at.Next)
		if isOther(at, s.ID) {
			found.replaced, found.furthestOther = true, max(found.furthestOther, at.Next)
			found.unread = found.unread || s.Log.Start < end
			continue
		}
		found.beyond = found.beyond || at.Next > s.Log.End
		found.unread = found.unread || s.Log.Start < end && at.lacks(s.Log.Start, end)
		found.mixed = found.mixed || at.Next > s.Log.Start
	}
	found.mixed = found.mixed && found.furthestOther > s.Log.Start
	found.beyond = found.beyond || s.Log.Filled && !found.replaced
	return found
}

// lacks reports whether a log has records that a consumer has not applied.
func (at Position) lacks(start, end int64) bool {
	return at.Next < end || slices.ContainsFunc(at.Deferred, func(d Deferred) bool { return d.Last >= start && d.Next < end })
}

// stuck reports whether the meaning of a position in its log is unknown:
// it was halted outside, and has been written over since, or was never
// read. At the start of a log no earlier record could be another one.
func (s Step) stuck(at Position) bool {
	if at.Halted == "" || isOther(at, s.ID) || s.Compacted || s.Log.Filled || at.Next < s.Log.Start || at.Next > s.Log.End {
		return false
	}
	return at.Next > s.Log.Start || strings.HasPrefix(at.Halted, bus.ErrNeverRead.Error())
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
	case found.beyond && found.unread:
		return s, errUnread
	case found.beyond:
		s.Move, s.Drop, s.To = true, true, max(found.furthest, log.End)
	case found.furthestOther > log.Start:
		s.Move, s.To = true, found.furthest
		if log.Start < log.End {
			s.To = max(s.To, log.End+1)
		}
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
	o := Outcome{Position: at, To: at.Next, Again: max(0, s.Log.End-at.Next)}
	if !s.Compacted {
		o.Lost = s.lost(at, found)
	}
	inLog := !isOther(at, s.ID) && !s.Move && at.Next >= s.Log.Start && at.Next <= s.Log.End && at.Halted == ""
	if inLog {
		return o
	}
	o.Moved, o.To, o.Again = true, s.To, s.Log.End-s.Log.Start
	if s.Drop {
		o.Again = 0
	}
	return o
}

// lost returns how many records a consumer lacks that others had, or
// that the log has lost.
func (s Step) lost(at Position, found places) int64 {
	upTo, start := s.Log.Start, s.Log.Start
	switch {
	case s.Move:
		upTo, start = found.furthest, math.MaxInt64
	case isOther(at, s.ID):
		upTo, start = min(found.furthest, max(s.Log.Start, found.furthestOther)), math.MaxInt64
	}
	lost := max(0, upTo-at.Next)
	for _, d := range at.Deferred {
		lost += d.gone(start)
	}
	return lost
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
