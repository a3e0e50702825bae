package ingest

import (
	"bytes"
	"slices"
)

// names holds the unknown names of an object's members, to find duplicates.
// Objects nest: an inner object's names are on top of the outer one's.
type names struct {
	text  []byte // all names, unescaped
	spans []span
}

type span struct{ start, end int }

func (n *names) add(name []byte) {
	start := len(n.text)
	n.text = append(n.text, name...)
	n.spans = append(n.spans, span{start, len(n.text)})
}

// close drops the names from base on and returns a duplicate, or
// nil. It is valid until the next add.
func (n *names) close(base int) []byte {
	mine := n.spans[base:]
	if len(mine) == 0 {
		return nil
	}
	start := mine[0].start
	twice := n.twice(mine)
	n.spans = n.spans[:base]
	n.text = n.text[:start]
	return twice
}

func (n *names) twice(mine []span) []byte {
	if len(mine) < 2 {
		return nil
	}
	compare := func(a, b span) int { return bytes.Compare(n.text[a.start:a.end], n.text[b.start:b.end]) }
	slices.SortFunc(mine, compare)
	for i := 1; i < len(mine); i++ {
		if compare(mine[i-1], mine[i]) == 0 {
			return n.text[mine[i].start:mine[i].end:mine[i].end]
		}
	}
	return nil
}
