package resume

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// A consumer is one on a topic, in all its partitions.
type consumer struct {
	group, topic      string
	partitions, moved int
	again, lost       int64
}

// table shows what becomes of each consumer, and then in words what is missing.
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

// explain says which offsets are in no log, what nobody can count, and where
// logs go on.
func explain(out io.Writer, steps []Step) error {
	var text strings.Builder
	changed, lost, anew := false, false, map[string]bool{}
	for _, step := range steps {
		changed = changed || step.Changed()
		if step.Move {
			with := "with what it has now"
			if step.Drop {
				with = "without what it has now, which everybody has applied"
			}
			fmt.Fprintf(&text, "moves: partition %d of %s: its log [%d, %d) begins at %d from then on, %s\n",
				step.Partition, step.Topic, step.Log.Start, step.Log.End, step.To, with)
		}
		for _, o := range step.Outcomes {
			if o.Lost > 0 {
				lost = true
				fmt.Fprintf(&text, "lost: %s never applied %d records of partition %d of %s, from offset %d on: no log has them\n",
					o.Group, o.Lost, step.Partition, step.Topic, o.Next)
			}
			if isOther(o.Position, step.ID) && !step.Compacted {
				anew[step.Topic] = true
			}
		}
	}
	if len(anew) > 0 {
		fmt.Fprintf(&text, "made anew: %s. What their old logs had, and no consumer of these databases has applied, is lost as well, and nobody can count it.\n",
			strings.Join(slices.Sorted(maps.Keys(anew)), ", "))
	}
	if !changed && !lost {
		text.WriteString("Every position is in its log: consumers go on where they were, and read again what they lack. Each record still takes effect once.\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}
