package resume

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// A consumer is a group on a topic, with all its partitions.
type consumer struct {
	group, topic      string
	partitions, moved int
	again, lost       int64
}

// table shows the outcome of each consumer, and then the losses in words.
func table(out io.Writer, steps []Step) error {
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "CONSUMER\tTOPIC\tPARTITIONS\tMOVED\tTO READ\tLOST")
	for _, c := range consumers(steps) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\n", c.group, c.topic, c.partitions, c.moved, c.again, c.lost)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return explain(out, steps)
}

func consumers(steps []Step) (all []*consumer) {
	of := map[[2]string]*consumer{}
	for _, step := range steps {
		for _, o := range step.Outcomes {
			c := of[[2]string{o.Group, o.Topic}]
			if c == nil {
				c = &consumer{group: o.Group, topic: o.Topic}
				of[[2]string{o.Group, o.Topic}], all = c, append(all, c)
			}
			c.partitions, c.again, c.lost = c.partitions+1, c.again+o.Again, c.lost+o.Lost
			if o.Moved {
				c.moved++
			}
		}
	}
	return all
}

// explain says which offsets are in no log, what nobody can count, and
// where logs continue.
func explain(out io.Writer, steps []Step) error {
	var text strings.Builder
	changed := false
	for _, step := range steps {
		changed = changed || step.Changed() || slices.ContainsFunc(step.Outcomes, func(o Outcome) bool { return o.Lost > 0 })
		step.explain(&text)
	}
	if recreated := recreatedTopics(steps); len(recreated) > 0 {
		fmt.Fprintf(&text, "recreated: %s. Records of their old logs that no consumer of these databases has applied are lost too, and can't be counted.\n",
			strings.Join(recreated, ", "))
	}
	if !changed {
		text.WriteString("Every position is in its log: consumers go on where they were, and read again what they lack. Each record still takes effect once.\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// explain says where the log of one partition continues, and what it lacks.
func (s Step) explain(text io.Writer) {
	if s.Move {
		fmt.Fprintf(text, "moves: partition %d of %s: its log [%d, %d) begins at %d from then on, with what it has now\n",
			s.Partition, s.Topic, s.Log.Start, s.Log.End, s.To)
	}
	if s.Fill {
		fmt.Fprintf(text, "fills: partition %d of %s: its log [%d, %d) has lost its end, and goes on at %d\n",
			s.Partition, s.Topic, s.Log.Start, s.Log.End, s.To)
	}
	for _, o := range s.Outcomes {
		if o.Differs && !s.Compacted {
			fmt.Fprintf(text, "again: partition %d of %s has other records than %s has applied, and is read again from offset %d on\n",
				s.Partition, s.Topic, o.Group, o.To)
		}
		if o.Lost > 0 {
			fmt.Fprintf(text, "lost: %s never applied %d records of partition %d of %s, from offset %d on: no log has them\n",
				o.Group, o.Lost, s.Partition, s.Topic, o.Next)
		}
	}
}

// recreatedTopics are the topics that are others than those that were applied, sorted.
// What is compacted is published again.
func recreatedTopics(steps []Step) []string {
	topics := map[string]bool{}
	for _, step := range steps {
		for _, o := range step.Outcomes {
			if isOther(o.Position, step.ID) && !step.Compacted {
				topics[step.Topic] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(topics))
}
