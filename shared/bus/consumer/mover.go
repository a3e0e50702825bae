package consumer

import (
	"maps"
	"slices"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/consumer/internal/transaction"
)

func (a *assignment) moverOf(w lanes.Work) transaction.Mover {
	ends := w.Ends()
	if w.Lane != nil {
		from := a.backlogs[*w.Lane]
		to := from.Advanced(w.Records, ends[w.Lane.Partition])
		return &catchUp{a, positions.CatchUp{Store: a.consumer.store, From: from, To: to, Epoch: a.claims[w.Lane.Partition].Epoch}}
	}
	m := &advance{a, positions.Advance{Store: a.consumer.store, Deferring: a.backlogs.Extended(a.topic, w.Deferred), Known: a.backlogs}}
	marks := w.Marks()
	for _, p := range slices.Sorted(maps.Keys(ends)) {
		m.Last = append(m.Last, marks[p])
		m.Partitions = append(m.Partitions, p)
		m.Since = append(m.Since, a.claims[p].Next)
		m.Until = append(m.Until, ends[p])
		m.Epochs = append(m.Epochs, a.claims[p].Epoch)
	}
	return m
}

// advance moves the positions of partitions, and defers records.
type advance struct {
	a *assignment
	positions.Advance
}

func (m *advance) Committed() {
	until := make(map[int]int64, len(m.Partitions))
	for i, p := range m.Partitions {
		m.a.claims[p].Next = m.Until[i]
		until[p] = m.Until[i]
	}
	for _, b := range m.Deferring {
		m.a.keep(b)
	}
	m.a.consumer.status.Reach.Applied(until)
	m.a.report(m.Partitions...)
}

// catchUp moves a lane's position in one partition.
type catchUp struct {
	a *assignment
	positions.CatchUp
}

func (m *catchUp) Committed() {
	if m.To.Over() {
		m.a.finish(m.To.Key)
	} else {
		m.a.keep(m.To)
	}
	m.a.report(m.To.Partition)
}

// report notes how far the partitions are applied, lanes included, for
// the Kafka group.
func (a *assignment) report(partitions ...int) {
	low := make(map[int]int64, len(partitions))
	for _, p := range partitions {
		low[p] = a.claims[p].Next
	}
	a.backlogs.Lower(low)
	a.offsets.note(low)
}
